package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"rota/bench/binder/latency"
	"rota/bench/peer"
	"rota/bench/pipe"
)

const (
	switchRounds  = 100_000
	switchRepeats = 7
)

func switchCommand() *cobra.Command {
	o := pipe.SwitchOptions{}
	c := &cobra.Command{
		Use:   "switch",
		Short: "Measure what a context switch costs",
		Long: `switch lets two processes on one CPU hand a message of 16 bytes to and fro over
a pair of pipes, and one process write and read the same messages alone, where
nobody ever waits. It prints the time of

  round   a message there and one back: two writes, two reads, two switches
  pair    one write and one read by one process, without a switch
  switch  what a round takes beyond two pairs, for each switch that the kernel counted

each as minimum, median and maximum of the repetitions.

A switch is all that it takes to go on in the other process: the reader goes to
sleep, the writer wakes it, the scheduler picks it, registers and address space
change, and it comes back out of its system call with colder caches. It is not the
scheduler's part alone, and not what a program loses whose data were in the cache.
Compare it on one machine, between kernels or schedulers. On a CPU with other work
the figures contain that, too. It needs neither root nor a daemon.`,
		Example: `  rota bench switch
  rota bench switch --cpu 3 --iterations 20000 --json`,
		Args: atMost(0),
		RunE: func(c *cobra.Command, _ []string) error { return runSwitch(c, o) },
	}
	f := c.Flags()
	f.IntVar(&o.CPU, "cpu", -1, "the CPU (default: the last that may be used)")
	f.IntVarP(&o.Rounds, "iterations", "i", switchRounds, "rounds in each repetition")
	f.IntVar(&o.Repeats, "repeat", switchRepeats, "repetitions")
	return c
}

func runSwitch(c *cobra.Command, o pipe.SwitchOptions) error {
	measuring()
	name := c.CommandPath()
	cpus, err := pipe.CPUs()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !c.Flags().Changed("cpu") {
		o.CPU = cpus[len(cpus)-1]
	} else if !slices.Contains(cpus, o.CPU) {
		return fmt.Errorf("%s: --cpu %d: must be one of those that this process may run on: %s", name, o.CPU, cpuList(cpus))
	}
	g := peer.NewGroup(c.Context(), os.Stderr)
	defer g.Stop()
	all, err := pipe.MeasureSwitch(g, o)
	switch {
	case c.Context().Err() != nil:
		return &exitError{exitInterrupted, fmt.Errorf("%s: interrupted; nothing is left behind", name)}
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	}
	report := switchReport{
		Context: surroundings(runtime.NumCPU()), CPU: o.CPU, Iterations: o.Rounds, Repeats: o.Repeats,
		SwitchCost: pipe.CostOf(all),
	}
	if wantJSON(c) {
		return writeJSON(c, report)
	}
	return report.write(c.OutOrStdout())
}

// switchReport is the answer.
type switchReport struct {
	Context    latency.Context `json:"context"`
	CPU        int             `json:"cpu"`
	Iterations int             `json:"iterations"` // rounds in each repetition
	Repeats    int             `json:"repeats"`
	pipe.SwitchCost
}

func (r switchReport) write(w io.Writer) error {
	fmt.Fprintf(w, "CPU %d, %s of %s, kernel %s, scheduler %s\n\n", r.CPU, plural(r.Repeats, "repetition"), plural(r.Iterations, "round"), r.Context.Kernel, r.Context.Scheduler)
	rows := [][]string{{"ns", "min", "median", "max"}}
	for _, figure := range []struct {
		name string
		pipe.Spread
	}{{"round", r.Round}, {"pair", r.Pair}, {"switch", r.Switch}} {
		rows = append(rows, []string{figure.name, nanos(figure.Min), nanos(figure.Median), nanos(figure.Max)})
	}
	if err := writeColumns(w, 1, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%.2f switches a round\n", r.SwitchesPerRound)
	return err
}

func nanos(ns float64) string { return fmt.Sprintf("%.0f", ns) }

// cpuList writes ascending numbers as the kernel does: 0-3,8.
func cpuList(cpus []int) (list string) {
	for i := 0; i < len(cpus); {
		last := i
		for last+1 < len(cpus) && cpus[last+1] == cpus[last]+1 {
			last++
		}
		if list != "" {
			list += ","
		}
		list += fmt.Sprint(cpus[i])
		if last > i {
			list += fmt.Sprintf("-%d", cpus[last])
		}
		i = last + 1
	}
	return list
}
