package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"rota/lab/machine"
	"rota/lab/scenario"
)

// runFlags are the flags of the command run.
type runFlags struct {
	kernels, scheds, rows []string
	machine               machine.Machine
	seed                  int64
	repeat, jobs          int
	limit                 time.Duration
	turns, json           string
	report, console       string
	twice                 bool
}

func runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run SCENARIO...",
		Short: "Run scenarios under several schedulers and print the comparison",
		Long: `Run scenarios under several schedulers and print the comparison.

Each row, kernel and seed is a boot of its own. The same inputs give the same
results, byte for byte, where this program may use SCHED_FIFO (as root).
Progress goes to standard error.`,
		Example: `  rota-lab run wake --repeat 3
  rota-lab run ping wake --sched kernel,rota,/usr/sbin/scx_simple --report out/mine
  rota-lab run wake --sched kernel,rota,bpfland
  rota-lab run shares --row rota --json -`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, names []string) error { return f.run(c, names) },
	}
	flags := c.Flags()
	flags.StringSliceVar(&f.kernels, "kernel", nil, "rows of the kernel list, or paths of images (default: the scenario's, else "+defaultKernel+")")
	flags.StringSliceVar(&f.scheds, "sched", nil, "only these schedulers: kernel, rota, a peer (see: rota-lab peers), the path of any sched_ext program (default: the scenario's rows)")
	flags.StringSliceVar(&f.rows, "row", nil, "only these rows, by name")
	flags.Int64Var(&f.seed, "seed", 1, "first seed of the random choices")
	flags.IntVar(&f.repeat, "repeat", 1, "number of seeds, counted up from --seed")
	flags.IntVar(&f.jobs, "jobs", min(2, runtime.NumCPU()), "machines that run at once")
	flags.DurationVar(&f.limit, "limit", 0, "virtual time of one run (default: the scenario's)")
	flags.StringVar(&f.json, "json", "", "write the results to this file, - is standard output")
	flags.StringVar(&f.report, "report", "", "write an HTML report into this directory")
	flags.StringVar(&f.console, "console", "", "keep the consoles of all runs in this directory")
	flags.BoolVar(&f.twice, "twice", false, "run everything twice and fail when anything differs")
	turnsFlag(c, &f.turns, "the scenario's")
	machineFlags(c, &f.machine)
	return c
}

func (f runFlags) run(c *cobra.Command, names []string) error {
	if err := f.check(names); err != nil {
		return err
	}
	if err := f.prepareOutputs(names); err != nil {
		return err
	}
	if err := machine.Ordered(); err != nil && !f.machine.Realtime {
		say("QEMU's threads have no order here: SCHED_FIFO: %v: on a busy host the same run may give other results; run as root or with CAP_SYS_NICE", err)
	}
	// A reader of the table that has gone is an error like others, not the end of this program
	// before the results are in their file.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	failed := 0
	total := 0
	for _, name := range names {
		s, _ := scenario.Find(name)
		f := f.on(s)
		results, err := f.scenario(c.Context(), s)
		if err := f.keep(c, s, results, len(names) > 1, err); err != nil {
			return err
		}
		for _, r := range results.Runs {
			total++
			if r.Exit != "" {
				failed++
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d runs failed", failed, total)
	}
	return nil
}

// on chooses the scenario's kernel when none was asked for.
func (f runFlags) on(s scenario.Scenario) runFlags {
	if len(f.kernels) == 0 {
		f.kernels = []string{defaultKernel}
		if s.Kernel != "" {
			f.kernels = []string{s.Kernel}
		}
	}
	return f
}

func (f runFlags) check(names []string) error {
	for _, name := range names {
		if _, known := scenario.Find(name); !known {
			return fmt.Errorf("scenario %q: not known; see: rota-lab list", name)
		}
	}
	switch {
	case f.repeat < 1 || f.repeat > 1000:
		return fmt.Errorf("--repeat %d: must be 1..1000", f.repeat)
	case f.jobs < 1 || f.jobs > 256:
		return fmt.Errorf("--jobs %d: must be 1..256", f.jobs)
	case f.json != "" && len(names) > 1:
		return fmt.Errorf("--json %s: a results file holds one scenario; run %s one by one", f.json, strings.Join(names, ", "))
	case f.twice && f.machine.Realtime:
		return fmt.Errorf("--twice: --realtime is never the same twice")
	}
	if err := errors.Join(f.machine.Check(), checkTurns(f.turns), onlyOnce("--kernel", f.kernels)); err != nil {
		return err
	}
	for _, name := range names {
		s, _ := scenario.Find(name)
		if err := f.on(s).checkRuns(s); err != nil {
			return err
		}
	}
	return nil
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}
