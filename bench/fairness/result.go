// Package fairness measures how alike programs lose when their CPU runs slower: the
// Fair_Degree of Gao and Li, "Dynamic time-slice scaling for DVFS" (2012). It starts any
// commands, counts how far they get at each frequency, and compares.
//
// It knows nothing of any scheduler; the command line rota bench frequency calls it.
package fairness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// Result is what a measurement found.
type Result struct {
	Commands []string `json:"commands"`
	Copies   int      `json:"copies"` // of each
	CPU      int      `json:"cpu"`    // where all of them ran
	Policy   string   `json:"policy"` // of cpufreq
	Siblings []int    `json:"siblings"`
	Progress string   `json:"progress"` // what was counted
	Seconds  float64  `json:"seconds"`  // at each frequency
	Steps    []Step   `json:"steps"`    // the highest frequency first
	// Again is the highest frequency once more, at the end. What it lost or won since the
	// beginning did not come from the frequency.
	Again Step `json:"again"`
}

// Step is what was found at one frequency.
type Step struct {
	KHz       int       `json:"kHz"`       // asked for
	RunsAtKHz int       `json:"runsAtKHz"` // as the kernel said: the farthest from KHz, within 5 %
	PerSecond []float64 `json:"perSecond"` // progress of each command, all copies together
	Kept      []float64 `json:"kept"`      // CRSR: PerSecond as a part of that at the highest frequency
	MeanKept  float64   `json:"meanKept"`  // over the commands
	// Degree is the standard deviation of Kept over the commands, which are all that there
	// are (population): 0 where all lose alike, at most 0.5 where none gains. SampleDegree is the
	// same, with n - 1 in the place of n. The paper does not say which of them it means.
	Degree       float64 `json:"fairDegree"`
	SampleDegree float64 `json:"fairDegreeSample"`
	// Before is Degree of the earlier result, and Improvement 100 * (1 - Degree/Before), in
	// percent; nil: there is none, or Before was less than a measurement can find.
	Before      *float64 `json:"fairDegreeBefore,omitempty"`
	Improvement *float64 `json:"improvementPercent,omitempty"`
}

// leastDegree is more than a rounding error, and less than any measurement finds.
const leastDegree = 1e-9

// compare fills in what follows from the progress at the highest frequency, where each
// command made some.
func (s *Step) compare(top []float64) {
	s.Kept = make([]float64, len(top))
	s.MeanKept = 0
	for i := range top {
		s.Kept[i] = s.PerSecond[i] / top[i]
		s.MeanKept += s.Kept[i] / float64(len(top))
	}
	s.Degree, s.SampleDegree = deviation(s.Kept)
}

// deviation is the standard deviation of at least two values.
func deviation(values []float64) (population, sample float64) {
	n, mean, squares := float64(len(values)), 0.0, 0.0
	for _, v := range values {
		mean += v / n
	}
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return math.Sqrt(squares / n), math.Sqrt(squares / (n - 1))
}

// Against compares with an earlier result of the same commands, see Matches.
func (r *Result) Against(earlier Result) {
	for i := range r.Steps {
		s := &r.Steps[i]
		before, known := earlier.step(s.KHz)
		if i == 0 || !known {
			continue
		}
		s.Before = &before.Degree
		if before.Degree >= leastDegree {
			improvement := 100 * (1 - s.Degree/before.Degree)
			s.Improvement = &improvement
		}
	}
}

func (r *Result) step(khz int) (Step, bool) {
	i := slices.IndexFunc(r.Steps, func(s Step) bool { return s.KHz == khz })
	if i < 0 {
		return Step{}, false
	}
	return r.Steps[i], true
}

// Matches says why an earlier result can't be compared with what these options measure.
func (r *Result) Matches(o Options) error {
	switch {
	case !slices.Equal(r.Commands, o.Commands):
		return fmt.Errorf("it measured the commands %q: give it the same, in that order", r.Commands)
	case r.CPU != o.CPU:
		return fmt.Errorf("it measured on CPU %d: use --cpu %d", r.CPU, r.CPU)
	case r.Copies != o.Copies:
		return fmt.Errorf("it measured %d copies of each command: use --copies %d", r.Copies, r.Copies)
	case r.Progress != o.Progress:
		return fmt.Errorf("it counted %s: use --progress %s", r.Progress, r.Progress)
	case r.Steps[0].KHz != o.Frequencies[0]:
		return fmt.Errorf("its highest frequency was %d MHz, now it is %d: choose the same (--frequencies)", r.Steps[0].KHz/1000, o.Frequencies[0]/1000)
	}
	for _, khz := range o.Frequencies[1:] {
		if _, known := r.step(khz); known {
			return nil
		}
	}
	return errors.New("it has none of these frequencies: choose the same (--frequencies)")
}

// maxResult bounds an earlier result, in bytes.
const maxResult = 1 << 20

// ReadResult reads what was written as JSON. What it returns can be compared: it has
// commands, and at least two steps with a number for each command.
func ReadResult(in io.Reader) (r Result, err error) {
	text, err := io.ReadAll(io.LimitReader(in, maxResult+1))
	if err != nil {
		return r, err
	}
	if len(text) > maxResult {
		return r, fmt.Errorf("it has more than %d bytes: it is no result of --json", maxResult)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("it is no result of --json: %w", err)
	}
	return r, r.check()
}

func (r *Result) check() error {
	if len(r.Commands) < minCommands || len(r.Commands) > maxCommands {
		return fmt.Errorf("it is no result of --json: %d commands, must be %d..%d", len(r.Commands), minCommands, maxCommands)
	}
	if len(r.Steps) < 2 || len(r.Steps) > MaxFrequencies {
		return fmt.Errorf("it is no result of --json: %d frequencies, must be 2..%d", len(r.Steps), MaxFrequencies)
	}
	for i, s := range r.Steps {
		if i > 0 && s.KHz >= r.Steps[i-1].KHz || s.KHz < 1 {
			return fmt.Errorf("it is no result of --json: %d kHz is not below the frequency before it", s.KHz)
		}
		if len(s.Kept) != len(r.Commands) || !(s.Degree >= 0 && s.Degree <= math.MaxFloat32) {
			return fmt.Errorf("it is no result of --json: at %d kHz: %d programs with Fair_Degree %v", s.KHz, len(s.Kept), s.Degree)
		}
	}
	return nil
}
