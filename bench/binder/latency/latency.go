// Package latency is AOSP's binder latency test, for binder and for hwbinder:
// pairs of a server and a client, and in each iteration one call by a new
// SCHED_FIFO thread and one by an ordinary thread. How long they take, whether
// the server ran on the caller's CPU, and whether it ran at the caller's level.
//
// It measures and judges; what comes out is in the original's form (Report).
// It does not make load and does not know which scheduler runs.
package latency

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"rota/bench/binder/pairs"
	"rota/bench/level"
	"rota/bench/peer"
	"rota/bench/pipe"
)

// Kind is one of the two tests.
type Kind string

// The two kinds differ in the driver's device and in what Android's libraries
// ask of the kernel; the driver is the same.
const (
	Binder   Kind = "binder"
	HwBinder Kind = "hwbinder"
)

// What the original does when nothing is said.
const (
	DefaultIterations = 100
	DefaultPairs      = 1
	DefaultDeadline   = 2500 * time.Microsecond
)

// Bounds of the options.
const (
	MaxIterations = 2_000_000
	MaxPairs      = 256
)

// pipeTrips is how many round trips over pipes are measured for scale.
const pipeTrips = 1000

// Options is what is asked for.
type Options struct {
	Kind       Kind
	Device     string // such as /dev/binder
	Iterations int    // for each pair; two calls each
	Pairs      int
	Deadline   time.Duration
	Verbose    bool // say for each call which thread ran where
	Trace      bool // stop the kernel's tracing at the first missed deadline
	TraceFile  string
	Compat     bool // with the defects of the original
	Extended   bool // percentiles, scale, verdicts

	// Boosts asks the scheduler for its own count of the calls that these processes
	// answered, while they still live; nil when the scheduler has none.
	Boosts func(ctx context.Context, servers []int) (Boosts, error)
}

// Check says what is wrong with what was asked for.
func (o Options) Check() error {
	switch {
	case o.Iterations < 1 || o.Iterations > MaxIterations:
		return fmt.Errorf("--iterations %d: must be 1..%d", o.Iterations, MaxIterations)
	case o.Pairs < 1 || o.Pairs > MaxPairs:
		return fmt.Errorf("--pairs %d: must be 1..%d", o.Pairs, MaxPairs)
	case o.Deadline < time.Microsecond || o.Deadline > time.Hour:
		return fmt.Errorf("--deadline %v: must be 1us..1h", o.Deadline)
	}
	return nil
}

// Roles are the processes that Run starts; Main of the program has them.
func Roles() map[string]peer.Role {
	return map[string]peer.Role{serverRole: serve, clientRole: call,
		pairs.ManagerRole: pairs.Manage, pipe.NearRole: pipe.Near, pipe.FarRole: pipe.Far}
}

// Run measures. After a missed deadline with Trace the result holds the pairs
// that had finished, and the error is ErrMissed.
func Run(ctx context.Context, o Options, text *os.File) (*Result, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g := peer.NewGroup(ctx, text)
	defer g.Stop()
	r := &Result{Options: o, Pairs: map[int]Samples{}}
	if o.Trace {
		if err := tracingIsOn(); err != nil {
			return nil, err
		}
	}
	books, booksErr := pairs.OpenBooks()
	if o.Extended {
		if err := r.scale(g); err != nil {
			return nil, err
		}
	}
	all, err := pairs.Start(g, o.Device, o.Pairs, serverRole, clientRole, orderOf(o))
	if err == nil {
		err = r.collect(all, cancel)
	}
	if err == nil && o.Extended {
		r.askScheduler(ctx, all)
		g.Stop()
		if booksErr == nil {
			r.Left, booksErr = leftOver(books)
		}
		r.LeftFault = booksErr
	}
	return r, err
}

// askScheduler asks for its count, which ends with the servers.
func (r *Result) askScheduler(ctx context.Context, all []pairs.Pair) {
	if r.Options.Boosts == nil {
		return
	}
	var servers []int
	for _, p := range all {
		servers = append(servers, p.Server.PID)
	}
	r.Boosts, r.BoostsFault = r.Options.Boosts(ctx, servers)
}

// scale measures the pipes, at the levels of the calls and in as many pairs.
func (r *Result) scale(g *peer.Group) (err error) {
	trips := min(r.Options.Iterations, pipeTrips)
	if r.PipeOther, err = pipe.Measure(g, r.Options.Pairs, trips, level.Level{}); err != nil {
		return err
	}
	r.PipeFifo, err = pipe.Measure(g, r.Options.Pairs, trips, fifo)
	return err
}

// collect lets the clients begin at once and hears them all.
func (r *Result) collect(all []pairs.Pair, stop func()) error {
	for _, p := range all {
		if err := p.Client.Tell(pairs.Ready{}); err != nil {
			return err
		}
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	var faults []error
	for i, p := range all {
		wait.Go(func() {
			var s Samples
			err := p.Client.Hear(&s)
			if err == nil {
				err = s.check(r.Options)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				faults = append(faults, err)
			} else {
				r.Pairs[i] = s
			}
			if err != nil || s.Missed {
				r.Missed = r.Missed || s.Missed
				stop() // nobody waits for the others
			}
		})
	}
	wait.Wait()
	if r.Missed {
		return ErrMissed
	}
	return errors.Join(cause(faults)...)
}

// cause leaves out those who only heard that the run was over.
func cause(faults []error) []error {
	for _, err := range faults {
		if !errors.Is(err, context.Canceled) {
			return []error{err}
		}
	}
	return faults
}

func leftOver(before pairs.Books) (*pairs.Books, error) {
	left, err := pairs.Left(before)
	if err != nil {
		return nil, err
	}
	return &left, nil
}
