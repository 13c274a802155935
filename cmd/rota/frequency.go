package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"rota/bench/cpufreq"
	"rota/bench/fairness"
	"rota/bench/pipe"
	"rota/internal/counters"
)

// instructionsWord is what counts as progress unless something else is asked for.
const instructionsWord = "instructions"

// frequencyOptions is what was asked for.
type frequencyOptions struct {
	fairness.Options
	megahertz []int
	against   string // the file of an earlier result; "": none
}

func frequencyCommand() *cobra.Command {
	var o frequencyOptions
	c := &cobra.Command{
		Use:   "frequency COMMAND COMMAND...",
		Short: "Measure how alike programs lose when their CPU runs slower",
		Long: `frequency runs copies of several commands on one CPU, holds it at one frequency after
the other, and counts how far each command gets. It prints which part of its progress
at the highest frequency each command keeps at the others, and

  Fair_Degree = the standard deviation of these parts over the commands

of Gao and Li, 2012: 0 where all lose alike. Who waits for memory loses less than who
computes, where they share time. "sample" is the same with n - 1 in the place of n. The
last row is the highest frequency again: what differs there did not come from the
frequency, and lesser differences in other rows say nothing.

Each COMMAND is one argument for /bin/sh. It reads nothing, what it writes is not shown,
and it is started again when it ends; let it last for seconds, and do the same work all the
time. --progress says what of it is counted, with all that it starts:

  instructions  those of the program, outside the kernel, by the processor's counter
  lines         each line on its standard output is a piece of work: for machines
                without counters, and the most honest where a program reports its work.
                Most programs hold back lines in a pipe: try stdbuf -oL
  rHEX          a raw event of the processor, outside the kernel
  GROUP:NAME    a tracepoint of the kernel, as raw_syscalls:sys_enter

It needs root and cpufreq, which virtual machines do not have. The limits of the frequency
(scaling_min_freq, scaling_max_freq) of all CPUs that share it are put back at the end, also
after an error and after Ctrl-C. If this program is killed (SIGKILL) the commands end, but
the limits stay: it says at the start what to write then.

With --json the result can be kept, and a later one compared with it (--against): with the
kernel's own scheduler, say, and then with rota.`,
		Example: `  sudo rota bench frequency "gzip -c /tmp/big" "sort /tmp/big"
  sudo rota bench frequency --json "gzip -c /tmp/big" "sort /tmp/big" > before.json
  sudo rota bench frequency --against before.json "gzip -c /tmp/big" "sort /tmp/big"
  sudo rota bench frequency --progress lines --frequencies 2400,1800,1200 ./encode ./solve`,
		RunE: func(c *cobra.Command, args []string) error {
			o.Commands = args
			return runFrequency(c, o)
		},
	}
	f := c.Flags()
	f.IntVar(&o.Copies, "copies", 8, "how many of each command run at a time")
	f.IntVar(&o.CPU, "cpu", -1, "the CPU (default: the last that may be used and whose frequency can be set)")
	f.DurationVar(&o.Span, "span", 10*time.Second, "how long to measure at each frequency")
	f.DurationVar(&o.Settle, "settle", 300*time.Millisecond, "how long to wait after the frequency has changed")
	f.IntSliceVar(&o.megahertz, "frequencies", nil, "where to measure, in MHz; the highest is what others are compared with (default: those of the driver, or seven even steps)")
	f.StringVar(&o.Progress, "progress", instructionsWord, "what counts as progress: instructions, lines, rHEX or GROUP:NAME")
	f.StringVar(&o.against, "against", "", "compare with this file, an earlier result of --json")
	return c
}

func runFrequency(c *cobra.Command, o frequencyOptions) error {
	measuring()
	name := c.CommandPath()
	// Whatever ends this program, what it set must be put back first. SIGPIPE comes from
	// words to a terminal that is gone.
	ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	defer stop()
	result, err := o.measure(ctx, c.Flags().Changed("cpu"), func(words string) { fmt.Fprintf(c.ErrOrStderr(), "%s: %s\n", name, words) })
	switch {
	case err != nil && err == ctx.Err():
		return &exitError{exitInterrupted, fmt.Errorf("%s: interrupted; the frequency is no longer held, and nothing is left behind", name)}
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	}
	report := frequencyReport{Context: surroundings(runtime.NumCPU()), Result: result}
	if wantJSON(c) {
		return writeJSON(c, report)
	}
	return report.write(c.OutOrStdout())
}

// measure does what was asked for; chosen is that the CPU was named.
func (o *frequencyOptions) measure(ctx context.Context, chosen bool, say func(string)) (r fairness.Result, err error) {
	if err := o.Check(); err != nil {
		return r, err
	}
	if o.Event, err = progressEvent(os.DirFS("/"), o.Progress); err != nil {
		return r, fmt.Errorf("--progress %s: %w", o.Progress, err)
	}
	earlier, err := readEarlier(o.against)
	if err != nil {
		return r, err
	}
	policy, err := o.openPolicy(cpufreq.Dir, chosen)
	if err != nil {
		return r, err
	}
	defer policy.Close()
	if o.Frequencies, err = frequenciesOf(policy, o.megahertz); err != nil {
		return r, err
	}
	if earlier != nil {
		if err := earlier.Matches(o.Options); err != nil {
			return r, fmt.Errorf("--against %s: %w", o.against, err)
		}
	}
	if words := policy.Limited(); words != "" {
		say(words)
	}
	say(fmt.Sprintf("should this be killed (SIGKILL), %s stays where it is held; then: %s", policy.Name, policy.ByHand()))
	r, err = fairness.Measure(ctx, policy, o.Options, say)
	if err == nil && earlier != nil {
		r.Against(*earlier)
	}
	return r, err
}

// progressEvent is what to count; nil: lines.
func progressEvent(root fs.FS, name string) (*fairness.Event, error) {
	switch name {
	case fairness.Lines:
		return nil, nil
	case instructionsWord:
		return fairness.Instructions(), nil
	}
	kind, config, err := counters.Event(root, name)
	if err != nil {
		return nil, fmt.Errorf("must be instructions, lines, rHEX or GROUP:NAME: %w", err)
	}
	return &fairness.Event{Kind: kind, Config: config}, nil
}

// readEarlier reads an earlier result; nil: there is none to compare with.
func readEarlier(path string) (*fairness.Result, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--against: %w", err)
	}
	defer f.Close()
	r, err := fairness.ReadResult(f)
	if err != nil {
		return nil, fmt.Errorf("--against %s: %w", path, err)
	}
	return &r, nil
}

// openPolicy finds the CPU, if it was not chosen, and takes its policy.
func (o *frequencyOptions) openPolicy(dir string, chosen bool) (*cpufreq.Policy, error) {
	cpus, err := pipe.CPUs()
	if err != nil {
		return nil, err
	}
	if chosen {
		if !slices.Contains(cpus, o.CPU) {
			return nil, fmt.Errorf("--cpu %d: must be one of those that this process may run on: %s", o.CPU, cpuList(cpus))
		}
		return cpufreq.Open(dir, o.CPU)
	}
	policy, cpu, err := cpufreq.OpenLast(dir, cpus)
	o.CPU = cpu
	return policy, err
}

// frequenciesOf are those to measure at, in kHz, the highest first.
func frequenciesOf(p *cpufreq.Policy, megahertz []int) (all []int, err error) {
	if len(megahertz) == 0 {
		return p.Steps()
	}
	for _, mhz := range megahertz {
		if mhz < p.Bottom/1000 || mhz > p.Top/1000 {
			return nil, fmt.Errorf("--frequencies %d: must be %d..%d, in MHz, which is what %s has", mhz, p.Bottom/1000, p.Top/1000, p.Name)
		}
		// Hardware has them in kHz.
		all = append(all, min(max(mhz*1000, p.Bottom), p.Top))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	slices.Reverse(all)
	if len(all) < 2 || len(all) > fairness.MaxFrequencies {
		return nil, fmt.Errorf("--frequencies: %d of them: must be 2..%d", len(all), fairness.MaxFrequencies)
	}
	return all, nil
}
