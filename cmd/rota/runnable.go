package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rota/bench/binder/latency"
	"rota/bench/runnable"
	"rota/internal/api"
)

const (
	leastRunnable = 100 * time.Millisecond
	mostRunnable  = 24 * time.Hour
	progressEvery = 5 * time.Second
	cgroupRoot    = "/sys/fs/cgroup"
)

// runnableOptions is what was asked for.
type runnableOptions struct {
	by                    string // the flag that says whose waits: class, pid or cgroup
	class, cgroup, socket string
	pid                   int
	span                  time.Duration
}

func runnableCommand() *cobra.Command {
	var o runnableOptions
	c := &cobra.Command{
		Use:   "runnable",
		Short: "Measure how long tasks wait for a CPU, from ready to running",
		Long: `runnable counts how long tasks wait from the moment that they are ready until
they run, and how these waits spread: 0-4, 4-16, 16-128 and 128-1024 us, 1-4 ms
and more (1 ms is 1024 us here, so that each limit is a power of two). A task is
ready when it is woken, when it is born, and when it loses its CPU while it could
go on; being kept off a CPU by cpu.max is a wait, too.

--pid takes a process with all its threads, --cgroup a cgroup with everything
below it. They need root and any kernel from 6.1 on that describes its types (BTF),
and measure whatever scheduler it has. A wait that began before the measurement is
not counted. --class takes a class of rota and needs its
daemon, which counts the waits of each class in any case; it keeps no mean, and of
the longest wait a bound where that was not in this time.

Ctrl-C ends early and prints what there is.`,
		Example: `  sudo rota bench runnable --pid 4321
  sudo rota bench runnable --cgroup system.slice/nginx.service --for 30s
  rota bench runnable --class audio --json`,
		Args: atMost(0),
	}
	f := c.Flags()
	f.StringVar(&o.class, "class", "", "count the waits of this class of rota")
	f.IntVar(&o.pid, "pid", 0, "count those of this process, with all its threads")
	f.StringVar(&o.cgroup, "cgroup", "", "count those in this cgroup (v2) and below, by its path below "+cgroupRoot)
	f.DurationVar(&o.span, "for", 10*time.Second, "how long to measure")
	socket := addSocket(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		o.socket = *socket
		err := o.check(c)
		if err == nil {
			err = runRunnable(c, o)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.CommandPath(), err)
		}
		return nil
	}
	return c
}

func (o *runnableOptions) check(c *cobra.Command) error {
	var given []string
	for _, name := range []string{"class", "pid", "cgroup"} {
		if c.Flags().Changed(name) {
			given = append(given, name)
		}
	}
	if len(given) != 1 {
		return fmt.Errorf("whose waits: name one of --class, --pid and --cgroup; see: %s --help", c.CommandPath())
	}
	o.by = given[0]
	if o.span < leastRunnable || o.span > mostRunnable {
		return fmt.Errorf("--for %v: must be %v..24h", o.span, leastRunnable)
	}
	return nil
}

// counter is what counts waits: the kernel side of the bench, or rota's daemon.
type counter interface {
	Waits() (runnable.Waits, error)
	Close()
}

func runRunnable(c *cobra.Command, o runnableOptions) error {
	measuring()
	ctx := c.Context()
	target, counter, err := o.begin(ctx)
	if err != nil {
		return err
	}
	defer counter.Close()
	from := time.Now()
	end := await(ctx, o.span, target.Ended, func(passed time.Duration) {
		fmt.Fprintf(os.Stderr, "%s: %v of %v\n", c.CommandPath(), passed.Round(time.Second), o.span)
	})
	span := time.Since(from)
	waits, err := counter.Waits()
	if err != nil {
		return err
	}
	report := newRunnableReport(target.Name, span, end, waits)
	if wantJSON(c) {
		return writeJSON(c, report)
	}
	return report.write(c.OutOrStdout())
}

func (o runnableOptions) begin(ctx context.Context) (t runnable.Target, w counter, err error) {
	switch o.by {
	case "class":
		t.Name = fmt.Sprintf("class %q", o.class)
		w, err = newClassWaits(ctx, api.NewClient(o.socket), o.class)
		return t, w, err
	case "cgroup":
		t, err = runnable.FindCgroup(cgroupRoot, o.cgroup)
	default:
		t, err = runnable.FindProcess("/proc", o.pid)
	}
	if err != nil {
		return t, nil, err
	}
	watch, err := runnable.Begin(t)
	if err != nil {
		return t, nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	return t, watch, nil
}

// Why a measurement ended before its time.
const (
	endInterrupted = "interrupted"
	endGone        = "the process has ended"
)

// await waits until the time is over and says why it was over earlier.
func await(ctx context.Context, span time.Duration, gone func() bool, progress func(time.Duration)) string {
	from := time.Now()
	over := time.After(span)
	look, tell := time.NewTicker(leastRunnable), time.NewTicker(progressEvery)
	defer look.Stop()
	defer tell.Stop()
	for {
		select {
		case <-ctx.Done():
			return endInterrupted
		case <-over:
			return ""
		case <-tell.C:
			progress(time.Since(from))
		case <-look.C:
			if gone() {
				return endGone
			}
		}
	}
}

// runnableReport is the answer.
type runnableReport struct {
	Of            string            `json:"of"`
	Context       latency.Context   `json:"context"`
	Seconds       float64           `json:"seconds"`
	EndedEarly    string            `json:"endedEarly"` // why; empty: it did not
	Count         uint64            `json:"count"`
	MeanMicros    *float64          `json:"meanMicros"` // null: not known
	MaxMicros     *float64          `json:"maxMicros"`  // null: nobody waited
	MaxIsBound    bool              `json:"maxIsBound"` // the longest wait was not longer than maxMicros
	Lost          uint64            `json:"lost"`       // waits that could not be counted
	Buckets       []runnable.Bucket `json:"buckets"`
	WaitHistogram []uint64          `json:"waitHistogram"` // bucket i: waits in [2^(i-1), 2^i) us; bucket 0: below 1 us
}

func newRunnableReport(of string, span time.Duration, end string, w runnable.Waits) runnableReport {
	r := runnableReport{
		Of: of, Context: surroundings(runtime.NumCPU()), Seconds: span.Seconds(), EndedEarly: end,
		Count: w.Count(), Lost: w.Lost, Buckets: w.Buckets(), WaitHistogram: w.Histogram,
	}
	if r.Count > 0 {
		r.MaxMicros, r.MaxIsBound = &w.MaxMicros, w.MaxIsBound
		if w.MeanMicros != runnable.Unknown {
			r.MeanMicros = &w.MeanMicros
		}
	}
	return r
}

func (r runnableReport) write(w io.Writer) error {
	fmt.Fprintf(w, "waits of %s in %s, kernel %s, scheduler %s\n\n", safe(r.Of), seconds(r.Seconds), r.Context.Kernel, r.Context.Scheduler)
	rows := [][]string{{"wait", "count", "share"}}
	for _, b := range r.Buckets {
		rows = append(rows, []string{b.Name, number(b.Count), fmt.Sprintf("%.2f%%", b.SharePercent)})
	}
	if err := writeColumns(w, 0, rows); err != nil {
		return err
	}
	words := []string{"count " + number(r.Count)}
	if r.MeanMicros != nil {
		words = append(words, "mean "+tenths(*r.MeanMicros))
	}
	if r.MaxMicros != nil && r.MaxIsBound {
		words = append(words, "max at most "+tenths(*r.MaxMicros))
	} else if r.MaxMicros != nil {
		words = append(words, "max "+tenths(*r.MaxMicros))
	}
	if r.Lost > 0 {
		words = append(words, number(r.Lost)+" more waits were lost: too many tasks were ready")
	}
	if r.EndedEarly != "" {
		words = append(words, "ended early: "+r.EndedEarly)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", strings.Join(words, ", "))
	return err
}

// tenths is micros with a digit more where that says something.
func tenths(us float64) string {
	if us < 100 {
		return fmt.Sprintf("%.1fus", us)
	}
	return micros(us)
}
