package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"rota/internal/where"
)

const (
	leastWhere   = 100 * time.Millisecond
	mostWhere    = 24 * time.Hour
	refreshWhere = time.Second
)

// whereOptions is what was asked for.
type whereOptions struct {
	function, module string
	span             time.Duration
	adder            whereAdder
}

func whereCommand() *cobra.Command {
	var o whereOptions
	c := &cobra.Command{
		Use:   "where FUNC",
		Short: "Show which tasks, cgroups, CPUs and interrupts execute a kernel function",
		Long: `where counts who executes a function of the kernel or of a module: each task with
its cgroup and its CPUs, and each interrupt. In an interrupt the task below it is a
bystander and is not shown. On a terminal the table is renewed every second; Ctrl-C
ends early and prints what there is.

--add-to CLASS makes rules of what was seen and puts them into the configuration: by
cgroup, or by program where the cgroup is the root, or by name for kernel threads. A
rule stands behind all others, unless another one would win there.

It needs root and any kernel from 6.1 on that describes its types (BTF), and works
whatever scheduler it has. Functions that are not safe to watch are refused.`,
		Example: `  sudo rota where vfs_fsync_range
  sudo rota where veth_xmit --module veth --for 1m30s --json
  sudo rota where gtp_dev_xmit --module gtp --add-to network`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%s: which function: name one, as in /proc/kallsyms; see: %s --help", c.CommandPath(), c.CommandPath())
			}
			return atMost(1)(c, args)
		},
	}
	f := c.Flags()
	f.StringVar(&o.module, "module", "", "the module that has the function; "+where.Kernel+" for the kernel itself")
	f.DurationVar(&o.span, "for", 10*time.Second, "how long to look")
	f.StringVar(&o.adder.class, "add-to", "", "make rules of what was seen, for this class")
	f.StringVarP(&o.adder.path, "config", "c", defaultConfig, "configuration file that --add-to writes to")
	socket := addSocket(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		o.function, o.adder.socket = args[0], *socket
		if err := runWhere(c, o); err != nil {
			var exit *exitError
			if errors.As(err, &exit) && exit.err == nil {
				return err
			}
			return fmt.Errorf("%s: %w", c.CommandPath(), err)
		}
		return nil
	}
	return c
}

// check refuses what can be refused before anything is done.
func (o *whereOptions) check(c *cobra.Command) error {
	if err := where.Check(o.function, o.module); err != nil {
		return err
	}
	if o.span < leastWhere || o.span > mostWhere {
		return fmt.Errorf("--for %v: must be %v..24h", o.span, leastWhere)
	}
	if o.adder.class == "" && c.Flags().Changed("add-to") {
		return errors.New(`--add-to "": which class: name one of the configuration`)
	}
	if o.adder.class == "" && c.Flags().Changed("config") {
		return errors.New("--config: is for --add-to: name a class, or leave it away")
	}
	return o.adder.read()
}

func runWhere(c *cobra.Command, o whereOptions) error {
	measuring()
	if err := o.check(c); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("needs root: run it with sudo")
	}
	function, err := where.Find(os.DirFS("/"), o.function, o.module)
	if err != nil {
		return err
	}
	watch, err := where.Open(function)
	if err != nil {
		return err
	}
	defer watch.Close()
	o.adder.functions = []string{function.Name, cmp.Or(function.Module, where.Kernel) + ":" + function.Name}
	report, err := look(c, o, function, watch)
	if err != nil {
		return err
	}
	var failed error
	if o.adder.class != "" {
		report.Rules, failed = o.adder.add(context.WithoutCancel(c.Context()), report.seen)
	}
	if wantJSON(c) {
		if failed != nil {
			report.RuleFault = failed.Error()
			failed = &exitError{code: exitFailed}
		}
		return errors.Join(writeJSON(c, report), failed)
	}
	if report.Rules != nil {
		fmt.Fprintln(c.OutOrStdout())
		report.Rules.write(c.OutOrStdout())
	}
	return failed
}

// look watches for the time that was asked for and shows the last state, on a terminal
// all of them.
func look(c *cobra.Command, o whereOptions, f where.Function, w *where.Watch) (report whereReport, err error) {
	from := time.Now()
	over := time.After(o.span)
	refresh := time.NewTicker(refreshWhere)
	defer refresh.Stop()
	show := newScreen(c.OutOrStdout())
	if wantJSON(c) {
		show = &screen{w: io.Discard}
	}
	end := ""
	for done := false; !done; {
		select {
		case <-c.Context().Done():
			end, done = endInterrupted, true
		case <-over:
			done = true
		case <-refresh.C:
		}
		// Also where nobody looks: who has ended by the end can't be asked then.
		seen, err := w.Read()
		if err != nil {
			return report, err
		}
		report = newWhereReport(f, w, time.Since(from), end, seen)
		if !done && !show.live {
			continue
		}
		var text bytes.Buffer
		if err := report.write(&text, show.live && !done); err != nil {
			return report, err
		}
		if err := show.show(text.String(), done); err != nil {
			return report, err
		}
	}
	return report, nil
}
