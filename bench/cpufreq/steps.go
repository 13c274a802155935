package cpufreq

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"rota/internal/kernfile"
)

const (
	evenSteps = 7   // where the driver has no list, or a long one
	maxSteps  = 16  // of a driver's list
	roundTo   = 100 // MHz: many drivers know multiples of it only
	// near is how far the frequency may be from what was asked for, as a part of it.
	near      = 0.05
	lookEvery = 20 * time.Millisecond
)

// FollowWithin is how long a CPU may take until it has the frequency that was asked for.
const FollowWithin = time.Second

// Steps are frequencies to measure at, in kHz, from the highest to the lowest: those that
// the driver lists, or else seven even ones over all that the hardware has.
func (p *Policy) Steps() ([]int, error) {
	text, err := p.read("scaling_available_frequencies")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, p.refused("scaling_available_frequencies", err)
	}
	var steps []int
	for _, word := range strings.Fields(text) {
		khz, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("%s: scaling_available_frequencies: %q is not a frequency in kHz", p.Name, kernfile.Clip(word))
		}
		if khz >= p.Bottom && khz <= p.Top {
			steps = append(steps, khz)
		}
	}
	steps = descending(steps)
	if len(steps) < 2 || len(steps) > maxSteps {
		steps = p.even()
	}
	if len(steps) < 2 {
		return nil, fmt.Errorf("%s: it has one frequency, %d MHz: nothing to compare: choose another CPU", p.Name, p.Top/1000)
	}
	return steps, nil
}

func (p *Policy) even() []int {
	steps := []int{p.Top, p.Bottom}
	for i := 1; i < evenSteps-1; i++ {
		khz := float64(p.Top) - float64(i*(p.Top-p.Bottom))/(evenSteps-1)
		khz = math.Round(khz/1000/roundTo) * 1000 * roundTo
		steps = append(steps, min(max(int(khz), p.Bottom), p.Top))
	}
	return descending(steps)
}

// descending sorts and leaves out what is there twice.
func descending(steps []int) []int {
	slices.Sort(steps)
	steps = slices.Compact(steps)
	slices.Reverse(steps)
	return steps
}

// Follow waits until the CPUs have the frequency that they are held at, to within 5 %, and
// returns it in kHz. That is seen under load only. It fails after FollowWithin.
func (p *Policy) Follow(ctx context.Context, khz int) (now int, err error) {
	for from := time.Now(); ; {
		if now, err = p.Now(); err != nil {
			return 0, err
		}
		if isNear(now, khz) {
			return now, nil
		}
		if time.Since(from) > FollowWithin {
			return 0, p.elsewhere(khz, now)
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}

// isNear tells whether a frequency is that which was asked for.
func isNear(now, khz int) bool { return math.Abs(float64(now-khz)) <= near*float64(khz) }

// Held returns the frequency that the CPUs have, and fails unless it is that which they are
// held at, to within 5 %.
func (p *Policy) Held(khz int) (now int, err error) {
	if now, err = p.Now(); err == nil && !isNear(now, khz) {
		err = p.elsewhere(khz, now)
	}
	return now, err
}

// elsewhere says why a CPU may have another frequency than it was asked for.
func (p *Policy) elsewhere(khz, now int) error {
	why := "boost is on (cpufreq/boost), the firmware chooses by itself, or a sibling on the same core wants more: turn that off, choose another CPU, or leave this frequency out (--frequencies)"
	if now < khz {
		why = "the driver does not reach it with so many CPUs busy, or heat or power limits it: name lower ones (--frequencies)"
	}
	return fmt.Errorf("%s: asked for %d MHz, runs at %d MHz: %s", p.Name, khz/1000, now/1000, why)
}
