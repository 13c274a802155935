package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
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

The command line runs in busybox sh; its exit code becomes this command's. Copy
host programs with --tool.`,
		Example: `  rota-lab exec --sched rota --tool hackbench -- hackbench -g 4 -l 200`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			lab, err := b.cell(c.Context(), guest.Plan{Scenario: execPlan, Command: strings.Join(args, " ")})
			if err != nil {
				return err
			}
			console := &plainConsole{w: c.OutOrStdout()}
			lab.Machine.Watch = console
			out, err := lab.Run(c.Context())
			console.flush()
			printFacts(out.Results)
			if code, _ := out.Results.Event(exitEvent); err == nil && code.Text != "0" {
				n, _ := strconv.Atoi(code.Text)
				err = commandExit(n)
			}
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

// commandExit is the exit code of exec's command line, passed on.
type commandExit int

func (e commandExit) Error() string {
	return fmt.Sprintf("the command ended with exit code %d", int(e))
}

// plainConsole passes a serial console on line by line, with plain line ends
// and without the kernel's farewell.
type plainConsole struct {
	w    io.Writer
	line []byte
}

func (c *plainConsole) Write(p []byte) (int, error) {
	for _, b := range p {
		if b != '\r' {
			c.line = append(c.line, b)
		}
		if b == '\n' || len(c.line) > 64<<10 {
			c.flush()
		}
	}
	return len(p), nil
}

func (c *plainConsole) flush() {
	if end := bytes.Index(c.line, []byte("] reboot: Power down")); end >= 0 {
		c.line = c.line[:max(0, bytes.LastIndexByte(c.line[:end], '['))]
	}
	c.w.Write(c.line)
	c.line = c.line[:0]
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
