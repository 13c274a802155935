// Package throughput is AOSP's binder throughput test, for binder and for
// hwbinder: one client sends a vector of bytes, the server sends it back, and
// the size of the vector grows from 4 bytes to 64 KiB. hwbinder's vectors are
// gathered by the driver (scatter-gather).
//
// It chooses the number of iterations, the table and the JSON as
// google-benchmark does, which the original is written with. It does not make
// load and does not know which scheduler runs.
package throughput

import (
	"context"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"rota/bench/binder/pairs"
	"rota/bench/peer"
)

// Sizes of the payload: 4 bytes to 64 KiB by powers of two.
const (
	minPayload = 4
	maxPayload = 64 << 10
)

// Bounds of the options.
const (
	DefaultMinTime = 500 * time.Millisecond
	maxMinTime     = time.Hour
	maxIterations  = 1_000_000_000
)

// Options is what is asked for.
type Options struct {
	Device string
	Gather bool           // hwbinder: vectors in memory of their own
	Filter *regexp.Regexp // of the names; nil: all
	// MinTime is for how long each size is measured at least. Iterations is how
	// often instead, when it is not 0.
	MinTime    time.Duration
	Iterations int
}

// ParseMinTime reads what google-benchmark's option takes: "0.5", "0.5s", or
// "1000x" for that many iterations.
func ParseMinTime(text string) (time.Duration, int, error) {
	fault := func() (time.Duration, int, error) {
		return 0, 0, fmt.Errorf("--benchmark_min_time %q: must be a time such as 0.5s, at most %v, or a number of iterations such as 1000x", text, maxMinTime)
	}
	if times, ok := strings.CutSuffix(text, "x"); ok {
		n, err := strconv.Atoi(times)
		if err != nil || n < 1 || n > maxIterations {
			return fault()
		}
		return 0, n, nil
	}
	seconds, err := strconv.ParseFloat(strings.TrimSuffix(text, "s"), 64)
	if err != nil || !(seconds > 0 && seconds <= maxMinTime.Seconds()) {
		return fault()
	}
	return time.Duration(seconds * float64(time.Second)), 0, nil
}

// Name is the name of the row of a payload, as in the original.
func (o Options) Name(payload int) string {
	if o.Gather {
		return "BM_sendVec_binderize/" + strconv.Itoa(payload)
	}
	return "BM_sendVec_binder/" + strconv.Itoa(payload)
}

// payloads lists the sizes that the filter lets through.
func (o Options) payloads() (list []int, err error) {
	for n := minPayload; n <= maxPayload; n *= 2 {
		if o.Filter == nil || o.Filter.MatchString(o.Name(n)) {
			list = append(list, n)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("--benchmark_filter %q: no name matches; they are %s to %s", o.Filter, o.Name(minPayload), o.Name(maxPayload))
	}
	return list, nil
}

// Measured is one row.
type Measured struct {
	Name       string
	Payload    int // bytes each way
	Iterations int
	Real       time.Duration // all iterations together
	Client     time.Duration // CPU time of the client process
	Server     time.Duration // CPU time of the server process
	MoreIoctls int           // calls that took more than one
	// Descriptors is how many more both processes had open afterwards.
	Descriptors int
}

// Result is all rows, and what the driver holds more than before.
type Result struct {
	Rows      []Measured
	Left      *pairs.Books
	LeftFault error
}

// Roles are the processes that Run starts; Main of the program has them.
func Roles() map[string]peer.Role {
	return map[string]peer.Role{serverRole: serve, clientRole: call, pairs.ManagerRole: pairs.Manage}
}

// Run measures; row is called with each row when it is done.
func Run(ctx context.Context, o Options, row func(Measured)) (*Result, error) {
	payloads, err := o.payloads()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g := peer.NewGroup(ctx, os.Stderr)
	defer g.Stop()
	before, booksErr := pairs.OpenBooks()
	all, err := pairs.Start(g, o.Device, 1, serverRole, clientRole, work{Gather: o.Gather})
	if err != nil {
		return nil, err
	}
	if err := all[0].Client.Tell(pairs.Ready{}); err != nil {
		return nil, err
	}
	r := &Result{}
	for _, n := range payloads {
		m, err := o.measure(all[0].Client, n)
		if err != nil {
			return nil, err
		}
		r.Rows = append(r.Rows, m)
		row(m)
	}
	g.Stop()
	if r.LeftFault = booksErr; booksErr == nil {
		left, err := pairs.Left(before)
		r.Left, r.LeftFault = &left, err
	}
	return r, nil
}

// measure repeats with more and more iterations until they take long enough.
func (o Options) measure(client *peer.Process, payload int) (Measured, error) {
	for n := max(o.Iterations, 1); ; {
		m := Measured{Name: o.Name(payload), Payload: payload, Iterations: n}
		var b batch
		err := client.Tell(batchOrder{payload, n})
		if err == nil {
			err = client.Hear(&b)
		}
		if err != nil {
			return m, err
		}
		m.Real, m.Client, m.Server, m.MoreIoctls = b.Real, b.Client, b.Server, b.MoreIoctls
		m.Descriptors = b.Descriptors
		if o.Iterations > 0 || m.Real >= o.MinTime || n >= maxIterations {
			return m, nil
		}
		n = o.next(m)
	}
}

// next is google-benchmark's guess: 40 % more than should be enough, and at most
// ten times as many while too little is known.
func (o Options) next(m Measured) int {
	least := o.MinTime.Seconds()
	seconds := max(m.Real.Seconds(), 1e-9)
	times := least * 1.4 / seconds
	if seconds/least <= 0.1 {
		times = min(10, times)
	}
	return min(max(int(math.Round(times*float64(m.Iterations))), m.Iterations+1), maxIterations)
}
