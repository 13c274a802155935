package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"rota/lab/guest"
)

func execCommand() *cobra.Command {
	var b boot
	c := &cobra.Command{
		Use:   "exec [flags] -- COMMAND...",
		Short: "Boot a kernel, run one shell command line under a scheduler, print its output",
		Long: `Boot a kernel, run one shell command line under a scheduler, print its output.

The command line runs in busybox sh. Copy host programs with --tool.`,
		Example: `  rota-lab exec --sched rota --tool hackbench -- hackbench -g 4 -l 200`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			lab, err := b.cell(c.Context(), guest.Plan{Scenario: execPlan, Command: strings.Join(args, " ")})
			if err != nil {
				return err
			}
			lab.Machine.Watch = crDropper{os.Stdout}
			out, err := lab.Run(c.Context())
			printFacts(out.Results)
			return err
		},
	}
	b.flags(c)
	return c
}

// printFacts says on standard error what the guest found out about itself.
func printFacts(r guest.Results) {
	for _, l := range r.Log {
		say("%s", l)
	}
	release, _ := r.Event("kernel")
	clock, _ := r.Event("clocksource")
	attached, _ := r.Event("attached")
	used, _ := r.Event("virtual_time_s")
	say("kernel %s, clocksource %s, sched_ext attached %s, virtual time %.3f s", release.Text, clock.Text, attached.Text, used.Value)
}

// crDropper turns the line ends of a serial console into plain ones.
type crDropper struct{ w *os.File }

func (d crDropper) Write(p []byte) (int, error) {
	_, err := d.w.Write(bytes.ReplaceAll(p, []byte{'\r'}, nil))
	return len(p), err
}

func shellCommand() *cobra.Command {
	var b boot
	c := &cobra.Command{
		Use:   "shell",
		Short: "Boot a kernel and talk to it: an interactive shell under a scheduler",
		Long: `Boot a kernel and talk to it: an interactive busybox shell under a scheduler.

Leave it with "exit"; the machine then ends.`,
		Example: `  rota-lab shell --kernel 7.2 --sched rota --tool cyclictest`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if st, err := os.Stdin.Stat(); err != nil || st.Mode()&os.ModeCharDevice == 0 {
				return errors.New("shell: standard input is not a terminal; use exec for a script")
			}
			b.limit = 0
			lab, err := b.cell(c.Context(), guest.Plan{Scenario: shellPlan})
			if err != nil {
				return err
			}
			lab.Machine.HostLimit = 0
			fmt.Fprintln(os.Stderr, "booting kernel", lab.Kernel.Release, "- leave the shell with: exit")
			return lab.Shell(c.Context())
		},
	}
	b.flags(c)
	return c
}
