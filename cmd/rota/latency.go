package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"rota/bench/binder/latency"
	"rota/internal/api"
)

// exitInterrupted is that of a program that SIGINT has ended.
const exitInterrupted = 130

func latencyCommand(kind latency.Kind) *cobra.Command {
	o := latency.Options{Kind: kind}
	var deadlineMicros int64
	var samples string
	var socket *string
	c := &cobra.Command{
		Use:   string(kind) + "-latency",
		Short: fmt.Sprintf("Measure how long a %s call takes, as AOSP's test does", kind),
		Long: fmt.Sprintf(`%s-latency measures how long calls from one process to another take: pairs of a
client and a server, and in each iteration one call by a new SCHED_FIFO thread of
priority 99 and one by an ordinary thread. Options and output are those of AOSP's
test; its defects are not, unless asked for with --aosp-compat.

It needs a binder device and root, and nothing of Android.`, kind),
		Example: fmt.Sprintf(`  sudo rota bench %[1]s-latency -i 5000 -pair 3
  sudo rota bench %[1]s-latency -i 5000 -pair 3 --extended
  sudo rota bench %[1]s-latency -i 100000 -deadline_us 1000 -trace`, kind),
		Args: atMost(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("deadline_us") {
				o.Deadline = time.Duration(deadlineMicros) * time.Microsecond
			}
			about := surroundings(runtime.NumCPU())
			if about.Scheduler == "rota" {
				o.Boosts = callsOf(api.NewClient(*socket))
			}
			return runLatency(c, o, about, samples)
		},
	}
	socket = addSocket(c)
	f := c.Flags()
	f.IntVarP(&o.Iterations, "iterations", "i", latency.DefaultIterations, "iterations of each pair, two calls each")
	f.IntVar(&o.Pairs, "pairs", latency.DefaultPairs, "pairs of a server and a client (-pair); more than CPUs tell nothing")
	f.DurationVar(&o.Deadline, "deadline", latency.DefaultDeadline, "a call that takes longer is a miss")
	f.Int64Var(&deadlineMicros, "deadline_us", latency.DefaultDeadline.Microseconds(), "the same in microseconds (-deadline_us)")
	f.BoolVarP(&o.Verbose, "verbose", "v", false, "say of each call which thread ran where, on standard error")
	f.BoolVar(&o.Trace, "trace", false, "stop the kernel's tracing at the first missed deadline, and keep the trace (-trace)")
	f.StringVar(&o.TraceFile, "trace-file", string(kind)+"-trace.txt", "where to keep the trace; Perfetto opens it")
	f.BoolVar(&o.Compat, "aosp-compat", false, "count as the original does, defects included")
	f.BoolVar(&o.Extended, "extended", false, "add percentiles, histograms, verdicts and a scale, under the key \"extended\"")
	f.StringVar(&samples, "samples", "", "write each call's times to this file, as CSV")
	f.StringVar(&o.Device, "device", "/dev/"+string(kind), "the binder device")
	return c
}

// callsOf asks the daemon for the calls that the servers answered.
func callsOf(client *api.Client) func(context.Context, []int) (latency.Boosts, error) {
	return func(ctx context.Context, servers []int) (sum latency.Boosts, err error) {
		for _, pid := range servers {
			answer, err := client.Explain(ctx, pid)
			if err != nil {
				return latency.Boosts{}, err
			}
			// In another PID namespace a number means another process.
			if name := leaderOf(answer); name != latency.ServerName {
				return latency.Boosts{}, fmt.Errorf("process %d is %q and not a server of this bench: run it in the daemon's PID namespace", pid, safe(name))
			}
			for _, t := range answer.Threads {
				sum.Given += t.Calls.Given
				sum.Boosted += t.Calls.Boosted
			}
		}
		return sum, nil
	}
}

// leaderOf is the name of a process's first thread. Another may still be called as the
// program is: it was being made while its process took its name.
func leaderOf(e api.Explanation) string {
	for _, t := range e.Threads {
		if t.TID == e.PID {
			return t.Name
		}
	}
	return ""
}

func runLatency(c *cobra.Command, o latency.Options, about latency.Context, samples string) error {
	measuring()
	name := c.CommandPath()
	text := os.Stderr
	if o.Compat {
		text = os.Stdout // as the original mixes them
	}
	r, err := latency.Run(c.Context(), o, text)
	missed := errors.Is(err, latency.ErrMissed)
	switch {
	case c.Context().Err() != nil:
		return &exitError{exitInterrupted, fmt.Errorf("%s: interrupted; nothing is left behind", name)}
	case o.Compat && errors.Is(err, latency.ErrNotTracing):
		fmt.Fprintln(c.OutOrStdout(), latency.ErrNotTracing)
		return &exitError{255, fmt.Errorf("%s: %w", name, err)}
	case err != nil && !missed:
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := r.Report(c.OutOrStdout(), about); err != nil {
		return err
	}
	if samples != "" {
		if err := r.WriteSamples(samples); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if !missed {
		return nil
	}
	if err := latency.KeepTrace(o.TraceFile); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return fmt.Errorf("%s: %w: a call took longer than %v; the trace is in %s", name, latency.ErrMissed, o.Deadline, o.TraceFile)
}
