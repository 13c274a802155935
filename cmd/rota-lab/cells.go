package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"rota/lab/cell"
	"rota/lab/guest"
	"rota/lab/kernels"
	"rota/lab/machine"
	"rota/lab/report"
	"rota/lab/scenario"
)

// job is one cell and what is known of it before it runs.
type job struct {
	cell      cell.Cell
	row       scenario.Row
	scheduler string // the row's, as results name it
	kernel    kernels.Kernel
	shown     string // the kernel's release, and more where others have the same
	seed      int64
	again     bool // it ran before, and must give the same once more
	boot      func(context.Context) (cell.Outcome, error)
}

func (j job) name() string {
	return fmt.Sprintf("kernel %s, row %s, seed %d", j.shown, j.row.Name, j.seed)
}

// scenario runs all cells of one scenario. With an error it returns those runs that are finished.
func (f runFlags) scenario(ctx context.Context, s scenario.Scenario) (report.Results, error) {
	jobs, err := f.cells(ctx, s)
	if err != nil {
		return report.Results{}, err
	}
	return f.runJobs(ctx, s, jobs)
}

func (f runFlags) runJobs(ctx context.Context, s scenario.Scenario, jobs []job) (report.Results, error) {
	r := report.Results{Scenario: s.Name, CPUs: jobs[0].cell.Machine.CPUs, Seed: f.seed}
	say("%s: %s", s.Name, counted(len(jobs), "run"))
	var err error
	r.Runs, err = f.runAll(ctx, jobs)
	if len(r.Runs) > 0 {
		r.Kernel = r.Runs[0].Kernel
	}
	if err != nil {
		return r, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	if !f.twice {
		return r, nil
	}
	say("%s: all of it once more", s.Name)
	again, err := f.runAll(ctx, onceMore(jobs))
	if err != nil {
		return r, fmt.Errorf("scenario %s, once more: %w", s.Name, err)
	}
	return r, compareRuns(r, again)
}

// onceMore are the same jobs, marked.
func onceMore(jobs []job) []job {
	again := slices.Clone(jobs)
	for i := range again {
		again[i].again = true
	}
	return again
}

// compareRuns fails unless both sets of runs have the same bytes.
func compareRuns(r report.Results, again []report.Run) error {
	for i := range r.Runs {
		var a, b bytes.Buffer
		one := report.Results{Scenario: r.Scenario, CPUs: r.CPUs, Kernel: r.Runs[i].Kernel, Seed: r.Seed}
		one.Runs = r.Runs[i : i+1]
		errA := report.Write(&a, one)
		one.Runs = again[i : i+1]
		errB := report.Write(&b, one)
		if err := errors.Join(errA, errB); err != nil {
			return err
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			return fmt.Errorf("row %s, seed %d: the second run differs from the first: %s", again[i].Row, again[i].Seed, difference(a.String(), b.String()))
		}
	}
	say("the same, byte for byte")
	return nil
}

// difference is the first line in which two texts differ, and how many do.
func difference(a, b string) string {
	first, second := strings.Split(a, "\n"), strings.Split(b, "\n")
	words, differ := "", 0
	for i := range max(len(first), len(second)) {
		var x, y string
		if i < len(first) {
			x = first[i]
		}
		if i < len(second) {
			y = second[i]
		}
		if x == y {
			continue
		}
		if differ++; differ == 1 {
			words = fmt.Sprintf("line %d: %.200q, then %.200q", i+1, x, y)
		}
	}
	return words + fmt.Sprintf("; %s of %d", counted(differ, "line"), max(len(first), len(second)))
}

// cells lists kernels x rows x seeds in the order of the report.
func (f runFlags) cells(ctx context.Context, s scenario.Scenario) ([]job, error) {
	rows, err := f.rowsOf(s)
	if err != nil {
		return nil, err
	}
	for _, row := range rows { // before a kernel is fetched
		if _, _, err := schedulerCommand(row.Scheduler); err != nil {
			return nil, err
		}
	}
	places := f.places(rows)
	known := map[string]kernels.Kernel{}
	for _, p := range places {
		if _, fetched := known[p.kernel]; fetched {
			continue
		}
		if known[p.kernel], err = kernelWith(ctx, p.kernel, s.Modules); err != nil {
			return nil, err
		}
	}
	shown, err := kernelNames(f.kernels, known)
	if err != nil {
		return nil, err
	}
	var jobs []job
	for _, p := range places {
		for i := range f.repeat {
			j := job{row: p.row, kernel: known[p.kernel], shown: shown[p.kernel], seed: f.seed + int64(i)}
			if err = f.complete(s, &j); err != nil {
				return nil, err
			}
			jobs = append(jobs, j)
		}
	}
	return jobs, nil
}

// complete fills in what the machine and the guest need for a job.
func (f runFlags) complete(s scenario.Scenario, j *job) (err error) {
	row := j.row
	if row.Scheduler, j.scheduler, err = schedulerCommand(row.Scheduler); err != nil {
		return err
	}
	j.cell, err = f.cell(s, *j, row)
	j.boot = j.cell.Run
	return err
}

// cell is the boot of a job; row has the command that starts its scheduler.
func (f runFlags) cell(s scenario.Scenario, j job, row scenario.Row) (cell.Cell, error) {
	m := f.machine
	if m.CPUs == 0 {
		m.CPUs = s.CPUs
	}
	if m.MemoryMB == 0 {
		m.MemoryMB = s.MemoryMB
	}
	c, err := newCell(j.kernel, m)
	if err != nil {
		return c, err
	}
	limit := f.limit
	if limit == 0 {
		limit = s.Limit
	}
	c.Plan = guest.Plan{Scenario: s.Name, Row: guest.Row(row), Seed: j.seed, CPUs: c.Machine.CPUs, Limit: limit, Turns: s.Turns}
	if f.turns != "" {
		c.Plan.Turns = guest.Turns(f.turns)
	}
	c.Tools, c.Modules = s.Tools, s.Modules
	if s.Bench && row.Scheduler != "rota" { // which brings it along
		if c.Rota == "" {
			return c, errors.New("rota: not beside this program; build it with: make build")
		}
		c.Tools = append(slices.Clone(c.Tools), c.Rota)
	}
	for _, load := range s.Loads {
		path := built(filepath.Join("load", load), j.kernel.Arch)
		if path == "" {
			return c, fmt.Errorf("load %q: not beside this program; build it with: make build", load)
		}
		c.Loads = append(c.Loads, path)
	}
	return c, nil
}

// runAll runs the jobs, some at once, and keeps their order. A run that fails
// is a result too; only the end of ctx ends the whole, and then those runs are
// returned that are finished.
func (f runFlags) runAll(ctx context.Context, jobs []job) ([]report.Run, error) {
	runs := make([]*report.Run, len(jobs))
	var wait sync.WaitGroup
	var mu sync.Mutex
	done := 0
	slots := make(chan struct{}, f.jobs)
	for i, j := range jobs {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wait.Add(1)
		go func() {
			defer func() { <-slots; wait.Done() }()
			start := time.Now()
			out, err := j.boot(ctx)
			mu.Lock()
			defer mu.Unlock()
			f.keepConsole(j, out)
			if err != nil && ctx.Err() != nil { // whatever it says: a terminal interrupts QEMU, too
				return
			}
			run := toRun(j, out, err)
			runs[i] = &run
			done++
			say("[%d/%d] %s", done, len(jobs), progress(j, out, err, time.Since(start)))
		}()
	}
	wait.Wait()
	return finished(runs)
}

// finished are the runs that there are, and an error where some are missing.
func finished(runs []*report.Run) ([]report.Run, error) {
	var list []report.Run
	for _, run := range runs {
		if run != nil {
			list = append(list, *run)
		}
	}
	if len(list) == len(runs) {
		return list, nil
	}
	err := fmt.Errorf("interrupted: %d of %d runs are finished", len(list), len(runs))
	say("%v", err)
	return list, err
}

func progress(j job, out cell.Outcome, err error, host time.Duration) string {
	used, _ := out.Results.Event("virtual_time_s")
	text := fmt.Sprintf("%s: %.1f s of virtual time in %.0f s", j.name(), used.Value, host.Seconds())
	if err != nil {
		text += fmt.Sprintf(": FAILED: %v", err)
	}
	return text
}

// toRun turns an outcome into the report's words.
func toRun(j job, out cell.Outcome, err error) report.Run {
	r := report.Run{
		Row: j.row.Name, Scheduler: j.scheduler, Config: j.row.Config,
		Kernel: j.shown, Seed: j.seed, Note: j.kernel.Note,
		Metrics: out.Results.Metrics, Histograms: map[string][]report.Bucket{},
	}
	if err != nil {
		r.Exit = err.Error()
	}
	for name, buckets := range out.Results.Histograms {
		for _, b := range buckets {
			r.Histograms[name] = append(r.Histograms[name], report.Bucket(b))
		}
	}
	attached, _ := out.Results.Event("attached")
	r.Attached = attached.Text == "true"
	clock, _ := out.Results.Event("clocksource")
	r.Clocksource = clock.Text
	for _, e := range out.Results.Events {
		switch e.Name {
		case "kernel", "clocksource", "attached":
		case "virtual_time_s":
			r.Events = append(r.Events, report.Event{Name: e.Name, Text: fmt.Sprintf("%.6f", e.Value)})
		default:
			r.Events = append(r.Events, report.Event{Name: e.Name, Text: e.Text})
		}
	}
	return r
}

// consoleFile is the name of the file with a run's console, another one for each run.
func (j job) consoleFile() string {
	name := fmt.Sprintf("%s_%s_%s_%d", j.cell.Plan.Scenario, j.shown, j.row.Name, j.seed)
	if j.again {
		name += "_again"
	}
	// No folder: names of rows may have parts of paths in them.
	return strings.NewReplacer("%", "%25", "/", "%2F").Replace(name) + ".txt"
}

// keepConsole keeps what a run printed, for who wants to know why.
func (f runFlags) keepConsole(j job, out cell.Outcome) {
	if f.console == "" {
		return
	}
	text := machine.Plain(out.Console) + "\n" + strings.Join(out.Results.Log, "\n") + "\n"
	err := os.MkdirAll(f.console, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(f.console, j.consoleFile()), []byte(text), 0o644)
	}
	if err != nil {
		say("console: %v", err)
	}
}

func counted(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
