package fairness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"rota/bench/cpufreq"
)

// Bounds of what can be asked for.
const (
	minCommands    = 2
	maxCommands    = 16
	maxCommand     = 4096 // bytes
	MaxCopies      = 64
	maxProcesses   = 256
	MinSpan        = 100 * time.Millisecond
	MaxSpan        = time.Hour
	MaxSettle      = time.Minute
	MaxFrequencies = 64
)

// warmUp is how long programs run before anything is measured, beside the time to settle.
const warmUp = time.Second

// heldEvery is how often it is seen whether a CPU has the frequency that it is held at.
const heldEvery = 250 * time.Millisecond

// Lines is the progress of programs that report their work, a line for each piece.
const Lines = "lines"

// Options is what to measure.
type Options struct {
	Commands    []string // for /bin/sh
	Copies      int      // of each
	CPU         int      // where all of them run
	Span        time.Duration
	Settle      time.Duration // after the frequency has changed
	Frequencies []int         // in kHz, from the highest to the lowest
	Progress    string        // what is counted, in words
	Event       *Event        // nil: lines
}

// Check says what is wrong with what was asked for; the frequencies are the policy's affair.
func (o Options) Check() error {
	if n := len(o.Commands); n < minCommands || n > maxCommands {
		return fmt.Errorf("commands: %d given, must be %d..%d, each of them in quotes", n, minCommands, maxCommands)
	}
	for _, command := range o.Commands {
		if strings.TrimSpace(command) == "" || len(command) > maxCommand || strings.ContainsRune(command, 0) {
			return fmt.Errorf("command %.40q: must be 1..%d bytes for a shell", command, maxCommand)
		}
	}
	switch {
	case o.Copies < 1 || o.Copies > MaxCopies:
		return fmt.Errorf("--copies %d: must be 1..%d", o.Copies, MaxCopies)
	case o.Copies*len(o.Commands) > maxProcesses:
		return fmt.Errorf("--copies %d: of %d commands, at most %d", o.Copies, len(o.Commands), maxProcesses/len(o.Commands))
	case o.Span < MinSpan || o.Span > MaxSpan:
		return fmt.Errorf("--span %v: must be %v..%v", o.Span, MinSpan, MaxSpan)
	case o.Settle < 0 || o.Settle > MaxSettle:
		return fmt.Errorf("--settle %v: must be 0s..%v", o.Settle, MaxSettle)
	}
	return nil
}

// Measure lets all copies of all commands share a CPU, holds it at each frequency in turn,
// at the end once more at the highest, and counts. It takes what is set from the policy and
// returns after that is put back and all programs have ended, with everything that they
// started, also when ctx ends, which is its error then. say hears what happens.
func Measure(ctx context.Context, policy *cpufreq.Policy, o Options, say func(string)) (r Result, err error) {
	if err := o.Check(); err != nil {
		return r, err
	}
	r = Result{
		Commands: o.Commands, Copies: o.Copies, CPU: o.CPU, Policy: policy.Name, Progress: o.Progress, Seconds: o.Span.Seconds(),
		Siblings: slices.DeleteFunc(slices.Clone(policy.CPUs), func(cpu int) bool { return cpu == o.CPU }),
	}
	crew, err := start(ctx, o)
	defer crew.stop()
	defer func() { // before the programs are gone, which may take long
		if fault := policy.Restore(); fault != nil {
			err = errors.Join(err, fault)
		}
	}()
	if err == nil {
		err = crew.sleep(ctx, warmUp)
	}
	if err != nil {
		return r, err
	}
	for _, khz := range append(slices.Clone(o.Frequencies), o.Frequencies[0]) {
		say(fmt.Sprintf("%s at %d MHz", policy.Name, khz/1000))
		s, err := crew.step(ctx, policy, khz, o)
		if err != nil {
			return r, err
		}
		if len(r.Steps) == 0 {
			if err := o.moved(s.PerSecond); err != nil {
				return r, err
			}
			s.compare(s.PerSecond)
		} else {
			s.compare(r.Steps[0].PerSecond)
		}
		if len(r.Steps) < len(o.Frequencies) {
			r.Steps = append(r.Steps, s)
		} else {
			r.Again = s
		}
	}
	return r, nil
}

// moved sees that each command makes progress, without which there is nothing to compare.
func (o Options) moved(perSecond []float64) error {
	for i, n := range perSecond {
		if n > 0 {
			continue
		}
		why := "it does none of that, or this processor does not count it: choose another --progress"
		if o.Event == nil {
			why = "it wrote no line, or keeps lines back in a buffer: try stdbuf -oL, or a longer --span"
		}
		return fmt.Errorf("command %q: no %s in %v: %s", o.Commands[i], o.Progress, o.Span, why)
	}
	return nil
}

// step measures at one frequency.
func (c *crew) step(ctx context.Context, policy *cpufreq.Policy, khz int, o Options) (s Step, err error) {
	if err := policy.Hold(khz); err != nil {
		return s, err
	}
	if _, err := policy.Follow(ctx, khz); err != nil {
		return s, err
	}
	if err := c.sleep(ctx, o.Settle); err != nil {
		return s, err
	}
	s = Step{KHz: khz, PerSecond: make([]float64, len(o.Commands))}
	before, from := c.counts()
	if s.RunsAtKHz, err = c.hold(ctx, policy, khz, o.Span); err != nil {
		return s, err
	}
	after, to := c.counts()
	for i, p := range c.programs {
		if p.fault() != nil {
			return s, p.fault()
		}
		s.PerSecond[p.command] += (after[i] - before[i]) / to.Sub(from).Seconds()
	}
	return s, nil
}

// hold lets the programs run for that long, and sees that the CPU keeps its frequency: it
// returns the one that was farthest from what was asked for.
func (c *crew) hold(ctx context.Context, policy *cpufreq.Policy, khz int, span time.Duration) (farthest int, err error) {
	farthest = khz
	for end := time.Now().Add(span); ; {
		rest := time.Until(end)
		if rest <= 0 {
			return farthest, nil
		}
		if err := c.sleep(ctx, min(rest, heldEvery)); err != nil {
			return 0, err
		}
		now, err := policy.Held(khz)
		if err != nil {
			return 0, err
		}
		if max(now-khz, khz-now) > max(farthest-khz, khz-farthest) {
			farthest = now
		}
	}
}
