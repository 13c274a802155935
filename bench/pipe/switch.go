package pipe

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"rota/bench/level"
	"rota/bench/peer"
)

// Bounds of what can be asked for.
const (
	MaxRounds  = 10_000_000
	MaxRepeats = 1000
)

// SwitchOptions is what to measure.
type SwitchOptions struct {
	CPU     int // where both processes run
	Rounds  int // in each repetition
	Repeats int
}

// Repetition is one measurement; times are of one round: two messages are
// written and two read.
type Repetition struct {
	Passed   time.Duration // all rounds, between two processes
	Alone    time.Duration // all rounds, by one process that never waits
	Rounds   int
	Switches int64 // of the CPU between the two, while they passed
}

// Nanoseconds of one repetition.
func (r Repetition) round() float64 { return float64(r.Passed) / float64(r.Rounds) }
func (r Repetition) pair() float64  { return float64(r.Alone) / float64(r.Rounds) / 2 }
func (r Repetition) cost() float64  { return float64(r.Passed-r.Alone) / float64(r.Switches) }

// Spread is a figure over the repetitions, in nanoseconds.
type Spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

func spread(all []Repetition, figure func(Repetition) float64) Spread {
	var values []float64
	for _, r := range all {
		values = append(values, figure(r))
	}
	slices.Sort(values)
	n := len(values)
	return Spread{values[0], (values[(n-1)/2] + values[n/2]) / 2, values[n-1]}
}

// SwitchCost is what a context switch costs.
type SwitchCost struct {
	Round            Spread  `json:"roundNanos"`  // a message there and one back
	Pair             Spread  `json:"pairNanos"`   // a message written and read by one process
	Switch           Spread  `json:"switchNanos"` // what remains of a round without its two pairs, for one switch
	SwitchesPerRound float64 `json:"switchesPerRound"`
}

// CostOf is the cost by at least one repetition.
func CostOf(all []Repetition) SwitchCost {
	c := SwitchCost{Round: spread(all, Repetition.round), Pair: spread(all, Repetition.pair), Switch: spread(all, Repetition.cost)}
	rounds, switches := 0, int64(0)
	for _, r := range all {
		rounds, switches = rounds+r.Rounds, switches+r.Switches
	}
	c.SwitchesPerRound = float64(switches) / float64(rounds)
	return c
}

// check says what is wrong with what was asked for.
func (o SwitchOptions) check() error {
	if o.Rounds < 1 || o.Rounds > MaxRounds {
		return fmt.Errorf("--iterations %d: must be 1..%d", o.Rounds, MaxRounds)
	}
	if o.Repeats < 1 || o.Repeats > MaxRepeats {
		return fmt.Errorf("--repeat %d: must be 1..%d", o.Repeats, MaxRepeats)
	}
	return nil
}

// MeasureSwitch lets two processes on one CPU hand a message to and fro, and one
// of them make the same system calls alone.
func MeasureSwitch(g *peer.Group, o SwitchOptions) ([]Repetition, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	mine, err := level.Mine()
	if err != nil {
		return nil, err
	}
	var near *peer.Process
	far, err := join(g, &near, SwitchRole, order{Trips: o.Rounds, Level: mine, CPU: &o.CPU})
	if err != nil {
		return nil, err
	}
	defer far.Stop()
	defer near.Stop()
	all := make([]Repetition, o.Repeats)
	for i := range all {
		if err := near.Tell(ready{}); err != nil {
			return nil, err
		}
		if err := near.Hear(&all[i]); err != nil {
			return nil, err
		}
		// The message can't come back while this process has the CPU.
		if all[i].Switches < 2*int64(o.Rounds) {
			return nil, fmt.Errorf("CPU %d: %d switches in %d rounds: the two processes were not on one CPU", o.CPU, all[i].Switches, o.Rounds)
		}
	}
	return all, nil
}

// switchNear measures once for each order.
func switchNear(p *peer.Peer) error {
	o, err := begin(p)
	if err != nil {
		return err
	}
	own := make([]int, 2)
	if err := unix.Pipe2(own, unix.O_CLOEXEC); err != nil {
		return err
	}
	if err := p.Say(ready{}); err != nil {
		return err
	}
	warm := max(o.Trips/10, 1)
	for {
		if err := p.Order(&ready{}); err != nil {
			return err
		}
		r := Repetition{Rounds: o.Trips}
		// Twice as often: a round has two messages.
		if _, err = rounds(2*warm, uintptr(own[1]), uintptr(own[0])); err == nil {
			r.Alone, err = rounds(2*o.Trips, uintptr(own[1]), uintptr(own[0]))
		}
		if err == nil {
			_, err = rounds(warm, writeFd, readFd)
		}
		before := left()
		if err == nil {
			r.Passed, err = rounds(o.Trips, writeFd, readFd)
		}
		// Each time that this process left the CPU the other one came, and back.
		r.Switches = 2 * (left() - before)
		if err != nil {
			return err
		}
		if err := p.Say(r); err != nil {
			return err
		}
	}
}

// rounds writes and reads a message so many times.
func rounds(n int, write, read uintptr) (time.Duration, error) {
	message := make([]byte, messageBytes)
	from := time.Now()
	for i := range n {
		if !transfer(unix.SYS_WRITE, write, message) || !transfer(unix.SYS_READ, read, message) {
			return 0, fmt.Errorf("pipes: broken after %d rounds", i)
		}
	}
	return time.Since(from), nil
}

// left is how often this thread has left its CPU.
func left() int64 {
	var usage unix.Rusage
	unix.Getrusage(unix.RUSAGE_THREAD, &usage)
	return usage.Nvcsw + usage.Nivcsw
}

// CPUs are those that this process may run on, ascending.
func CPUs() (list []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("read the own CPUs: %w", err)
	}
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("read the own CPUs: there is none")
	}
	return list, nil
}

// pin keeps the calling thread on one CPU.
func pin(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("keep to CPU %d: %w", cpu, err)
	}
	return nil
}
