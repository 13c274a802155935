package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"rota/lab/cell"
	"rota/lab/guest"
	"rota/lab/report"
	"rota/lab/scenario"
)

// printed is what f prints and how it ends when these are the results.
func printed(f runFlags, out io.Writer, r report.Results, err error) error {
	c := &cobra.Command{}
	c.SetOut(out)
	return f.keep(c, scenario.Scenario{Name: "wake", Title: "Wakes"}, r, false, err)
}

// With the results on standard output only the table is left out.
func TestReportBesideResultsOnStandardOutput(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	if err := printed(runFlags{json: "-", report: dir}, &out, results(1), nil); err != nil {
		t.Fatal(err)
	}
	if r, err := report.Read(&out); err != nil || r.Scenario != "wake" {
		t.Errorf("standard output: %+v, %v", r, err)
	}
	if !written(t, filepath.Join(dir, resultsFile)) {
		t.Error("no results beside the report")
	}
	alone(t, dir, 2)
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("nobody reads") }

// What can't be written keeps nothing else from it.
func TestWriteGoesOn(t *testing.T) {
	var out bytes.Buffer
	dir := t.TempDir()
	err := printed(runFlags{json: "/dev/full", report: dir}, &out, results(1), errors.New("interrupted"))
	if err == nil || !strings.Contains(err.Error(), "results /dev/full: ") || !strings.HasSuffix(err.Error(), "\ninterrupted") {
		t.Error(err)
	}
	if !strings.HasPrefix(out.String(), "Wakes\n") || !written(t, filepath.Join(dir, resultsFile)) {
		t.Errorf("table %q", out.String())
	}
	path := filepath.Join(dir, "mine.json")
	if err := printed(runFlags{json: path}, brokenWriter{}, results(1), nil); err == nil || !strings.Contains(err.Error(), "nobody reads") || !written(t, path) {
		t.Error(err)
	}
	if err := printed(runFlags{json: path}, brokenWriter{}, report.Results{}, errors.New("interrupted")); err == nil || err.Error() != "interrupted" || !written(t, path) {
		t.Errorf("nothing is finished: %v", err)
	}
}

// testJobs are n jobs of one row; boot is told how often one was booted before.
func testJobs(n int, boot func(ctx context.Context, before int) error) []job {
	booted := 0
	var jobs []job
	for i := range n {
		j := job{row: scenario.Row{Name: "rota", Scheduler: "rota"}, shown: "6.18", seed: int64(1 + i)}
		j.cell.Machine.CPUs = 4
		j.boot = func(ctx context.Context) (cell.Outcome, error) {
			before := booted
			booted++
			out := cell.Outcome{Results: guest.Results{Metrics: map[string]float64{"boots": float64(before)}}}
			return out, boot(ctx, before)
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// An interrupted scenario gives the runs that are finished, failed ones too, and says how many.
func TestInterruptedRuns(t *testing.T) {
	for name, c := range map[string]struct {
		twice       bool
		interrupted int // the boot in which it happens
		runs        int
		fault       string
	}{
		"not":          {false, -1, 4, ""},
		"at once":      {false, 0, 0, "scenario wake: interrupted: 0 of 4 runs are finished"},
		"in the third": {false, 2, 2, "scenario wake: interrupted: 2 of 4 runs are finished"},
		"once more":    {true, 5, 4, "scenario wake, once more: interrupted: 1 of 4 runs are finished"},
	} {
		ctx, interrupt := context.WithCancel(context.Background())
		jobs := testJobs(4, func(ctx context.Context, before int) error {
			if before == c.interrupted {
				interrupt()
				return errors.New("qemu: signal: interrupt")
			}
			return errors.New("broke")
		})
		f := runFlags{jobs: 1, twice: c.twice, seed: 1}
		r, err := f.runJobs(ctx, scenario.Scenario{Name: "wake"}, jobs)
		interrupt()
		if len(r.Runs) != c.runs || c.fault != "" && (err == nil || err.Error() != c.fault) || c.fault == "" && err != nil {
			t.Errorf("%s: %d runs, %v, want %d, %s", name, len(r.Runs), err, c.runs, c.fault)
		}
		for i, run := range r.Runs {
			if run.Exit != "broke" || run.Seed != int64(i+1) || r.Kernel != "6.18" {
				t.Errorf("%s: %+v on %s", name, run, r.Kernel)
			}
		}
	}
}

// Runs that are not the same twice are results all the same.
func TestDifferentRunsAreKept(t *testing.T) {
	jobs := testJobs(2, func(context.Context, int) error { return nil })
	f := runFlags{jobs: 1, twice: true, seed: 1, console: t.TempDir()}
	r, err := f.runJobs(context.Background(), scenario.Scenario{Name: "wake"}, jobs)
	if err == nil || !strings.Contains(err.Error(), "row rota, seed 1: the second run differs from the first") {
		t.Error(err)
	}
	var out bytes.Buffer
	if again := printed(f, &out, r, err); len(r.Runs) != 2 || again == nil || again.Error() != err.Error() || !strings.Contains(out.String(), "seeds 1 2") {
		t.Errorf("%v: %s", again, out.String())
	}
	alone(t, f.console, 4)
}

// Signals that end a program at once let this one remove what it has in /tmp.
func TestUntilSignal(t *testing.T) {
	// This may have been started to outlive the terminal itself.
	outlives := make(chan os.Signal, 4)
	signal.Notify(outlives, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(outlives)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		ctx, stop := untilSignal(context.Background())
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
			t.Errorf("%v: nothing happened", s)
		}
		stop()
	}
}

// Who was started to outlive the terminal does.
func TestUntilSignalKeepsWhatIsIgnored(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	ctx, stop := untilSignal(context.Background())
	defer stop()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ctx.Done():
		t.Error("it ended: ", fmt.Sprint(context.Cause(ctx)))
	case <-time.After(100 * time.Millisecond):
	}
}
