// Command rota is the node daemon and the command line of rota: a CPU
// scheduler for Linux that knows what matters.
//
// Each command has a file of its own and is thin: what a command does lives
// in the packages under internal.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"rota/bench/peer"
)

// version is set by the linker.
var version = "dev"

// Exit codes.
const (
	exitFailed = 1
	exitUnfit  = 78 // EX_CONFIG of sysexits.h: this kernel can't run rota
)

// maxThreads is how many threads of Go run at a time.
const maxThreads = 2

// exitError is an error with the exit code that it asks for. Without a text
// everything has been said already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func main() {
	peer.Main(os.Args, benchRoles()) // does not return in a process of a bench
	// The daemon attaches without collecting garbage over and over while it
	// reads the kernel's types: with a limit of 24 MB that took as long as the
	// kernel's verifier. Package daemon turns the collector up once it is
	// attached, and gives the memory back. The other commands are over before
	// any of this matters. More threads would only take memory: there is
	// little to do.
	debug.SetMemoryLimit(48 << 20)
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(maxThreads)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	root := newCommand()
	root.SetArgs(benchArgs(os.Args[1:]))
	err := root.ExecuteContext(ctx)
	stop()
	os.Exit(report(err))
}

// report prints the error and returns the exit code.
func report(err error) int {
	if err == nil {
		return 0
	}
	var exit *exitError
	ended := errors.As(err, &exit)
	if !ended && errors.Is(err, context.Canceled) {
		exit = &exitError{exitInterrupted, errors.New("interrupted")}
		err, ended = exit, true
	}
	switch text := err.Error(); {
	case text == "":
	case strings.HasPrefix(text, "rota ") || strings.HasPrefix(text, "rota: "):
		fmt.Fprintln(os.Stderr, text) // it names the command already
	default:
		fmt.Fprintln(os.Stderr, "rota: "+text)
	}
	if ended {
		return exit.code
	}
	return exitFailed
}

func newCommand() *cobra.Command {
	root := group(&cobra.Command{
		Use:   "rota",
		Short: "A CPU scheduler for Linux that knows what matters",
		Long: `rota schedules the tasks of this machine: classes say what matters and how,
rules say which tasks are in which class. Everything else keeps a fair share
and never starves.

The daemon is started with "rota run"; the other commands ask it.`,
		Example: `  rota check                        can this machine run rota?
  rota run --config rota.yaml       schedule until asked to stop
  rota status                       what each class got`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}, checkCommand(), runCommand(), statusCommand(), topCommand(), explainCommand(), reloadCommand(), configCommand(), classCommand(),
		whereCommand(), benchCommand(), versionCommand())
	root.PersistentFlags().Bool("json", false, "write JSON")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%s: %w; see: %s --help", c.CommandPath(), err, c.CommandPath())
	})
	return root
}
