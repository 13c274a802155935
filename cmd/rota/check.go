package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"rota/bench/binder"
	"rota/internal/counters"
	"rota/internal/frequency"
	"rota/internal/sched"
)

func checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Tell whether this machine can run rota, and what to do if not",
		Long: `check looks at the kernel, its type information and functions, at our privileges,
for binder and for the frequencies and counters of the CPUs, without changing anything.

Exit code: 0 rota can run; 78 this kernel can't run it; 1 anything else.`,
		Example: `  rota check
  rota check --json`,
		Args: atMost(0),
		RunE: func(c *cobra.Command, _ []string) error {
			findings := append(sched.Check(), checkBinder(os.DirFS("/")), checkFrequency(os.DirFS("/")), checkCounters(os.DirFS("/"), counters.Open))
			if wantJSON(c) {
				if err := writeJSON(c, checkAnswer(findings)); err != nil {
					return err
				}
			} else if err := writeFindings(c.OutOrStdout(), findings); err != nil {
				return err
			}
			return verdict(findings)
		},
	}
}

type finding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Fatal  bool   `json:"fatal"`
	Unfit  bool   `json:"unfit"`
	Detail string `json:"detail"`
	Fix    string `json:"fix"`
}

type findings struct {
	Fit      bool      `json:"fit"` // rota can run
	Findings []finding `json:"findings"`
}

func checkAnswer(list []sched.Finding) findings {
	out := findings{Fit: verdict(list) == nil, Findings: []finding{}}
	for _, f := range list {
		out.Findings = append(out.Findings, finding(f))
	}
	return out
}

// verdict is nil when nothing keeps rota from running. The error has no text:
// the findings have been shown.
func verdict(list []sched.Finding) error {
	code := 0
	for _, f := range list {
		switch {
		case f.OK || !f.Fatal:
		case f.Unfit:
			code = exitUnfit
		case code == 0:
			code = exitFailed
		}
	}
	if code == 0 {
		return nil
	}
	return &exitError{code: code}
}

func writeFindings(w io.Writer, list []sched.Finding) error {
	t := table(w)
	for _, f := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\n", mark(f), f.Name, safe(f.Detail))
		if !f.OK && f.Fix != "" {
			fmt.Fprintf(t, "\t\tfix: %s\n", safe(f.Fix))
		}
	}
	return t.Flush()
}

func mark(f sched.Finding) string {
	switch {
	case f.OK:
		return "ok"
	case f.Fatal:
		return "FAULT"
	}
	return "note"
}

// refusal puts the reasons not to start into an error, nil when there is none.
func refusal(list []sched.Finding) error {
	var exit *exitError
	if !errors.As(verdict(list), &exit) {
		return nil
	}
	text := "this machine can't run rota; see: rota check"
	for _, f := range list {
		if !f.OK && f.Fatal {
			text += fmt.Sprintf("\n  %s: %s: %s", f.Name, safe(f.Detail), safe(f.Fix))
		}
	}
	exit.err = errors.New(text)
	return exit
}

// checkFrequency looks for the frequencies of the CPUs, which frequencyFairness needs.
func checkFrequency(root fs.FS) sched.Finding {
	speeds, err := frequency.Read(root, false)
	f := sched.Finding{Name: "frequencies", OK: err == nil}
	if err != nil {
		f.Detail, f.Fix = err.Error(), "only for scheduler.frequencyFairness: where no speed is known time counts as it is"
	}
	if len(speeds) == 0 {
		return f
	}
	slowest := 1.0
	for _, speed := range speeds {
		slowest = min(slowest, speed)
	}
	known := fmt.Sprintf("of %s, the slowest at %.0f %% of its top now", plural(len(speeds), "CPU"), 100*slowest)
	if err != nil {
		known += "; not of all: " + f.Detail
	}
	f.Detail = known
	return f
}

// checkCounters looks whether this processor counts how much programs wait for memory.
func checkCounters(root fs.FS, open func(fs.FS, string, time.Duration, []int) (*counters.Set, error)) sched.Finding {
	f := sched.Finding{Name: "counters"}
	set, err := open(root, "", 0, []int{0})
	if err != nil {
		f.Detail, f.Fix = err.Error(), "only for scheduler.frequencyFairness: declare memoryBound of the classes there"
		return f
	}
	defer set.Close()
	f.OK, f.Detail = true, set.Source.Name
	return f
}

// checkBinder looks for binder, which rota can do without: its benches cannot.
func checkBinder(root fs.FS) sched.Finding {
	var name unix.Utsname
	unix.Uname(&name)
	p := binder.Look(root, unix.ByteSliceToString(name.Release[:]))
	f := sched.Finding{Name: "binder", OK: p.Fix == "", Fix: p.Fix, Detail: "no driver"}
	if p.Driver != "" {
		f.Detail = p.Driver + ", devices: none"
		if len(p.Devices) > 0 {
			f.Detail = p.Driver + ", devices: " + strings.Join(p.Devices, " ")
		}
		if p.BTF {
			f.Detail += ", BTF present"
		} else {
			f.Detail += ", no BTF"
		}
	}
	return f
}
