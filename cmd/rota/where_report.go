package main

import (
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"time"

	"rota/bench/binder/latency"
	"rota/internal/where"
)

const (
	mostRows = 40 // of a table that stays
	liveRows = 15 // of one that is renewed
)

// whereReport is the answer.
type whereReport struct {
	Function   string              `json:"function"`
	Module     string              `json:"module"`  // empty: the kernel itself
	Copies     int                 `json:"copies"`  // functions of that name there, all of which are counted
	Method     string              `json:"method"`  // fentry or kprobe
	Instead    string              `json:"instead"` // why not fentry; empty: it is
	Context    latency.Context     `json:"context"`
	Seconds    float64             `json:"seconds"`
	EndedEarly string              `json:"endedEarly"` // why; empty: it did not
	Count      uint64              `json:"count"`
	PerSecond  float64             `json:"perSecond"`
	Lost       uint64              `json:"lost"`   // calls of tasks for which there was no room
	Missed     uint64              `json:"missed"` // calls during the count of another
	Blind      bool                `json:"blind"`  // interrupts that no driver serves count as tasks
	Executors  []whereExecutor     `json:"executors"`
	Cgroups    []where.CgroupCount `json:"cgroups"`
	CPUs       []where.CPUCount    `json:"cpus"`
	Rules      *whereRules         `json:"rules,omitempty"`     // of --add-to
	RuleFault  string              `json:"ruleFault,omitempty"` // why they are not in force

	seen where.Report
}

// whereExecutor is a task or an interrupt that executes the function.
type whereExecutor struct {
	Context      string           `json:"context"`   // task, softirq, hardirq or NMI
	Interrupt    string           `json:"interrupt"` // name; empty: none, or not known
	Number       *int             `json:"number"`    // of the interrupt; null: none, or not known
	TID          uint32           `json:"tid"`
	TGID         uint32           `json:"tgid"`
	Comm         string           `json:"comm"`
	KernelThread bool             `json:"kernelThread"`
	Cgroup       string           `json:"cgroup"`
	Exe          string           `json:"exe"`
	Count        uint64           `json:"count"`
	PerSecond    float64          `json:"perSecond"`
	CPUs         []where.CPUCount `json:"cpus"`
}

func newWhereReport(f where.Function, w *where.Watch, span time.Duration, end string, seen where.Report) whereReport {
	r := whereReport{
		Function: f.Name, Module: f.Module, Copies: f.Copies(), Method: w.Method, Instead: w.Instead, Blind: w.Blind,
		Context: surroundings(runtime.NumCPU()), Seconds: span.Seconds(), EndedEarly: end,
		Count: seen.Count, PerSecond: float64(seen.Count) / span.Seconds(), Lost: seen.Lost, Missed: seen.Missed,
		Executors: []whereExecutor{}, Cgroups: seen.Cgroups(), CPUs: seen.CPUs(), seen: seen,
	}
	for _, e := range seen.Executors {
		x := whereExecutor{
			Context: e.Context.String(), Interrupt: e.Interrupt, Count: e.Count, PerSecond: float64(e.Count) / span.Seconds(), CPUs: e.CPUs,
			TID: e.Task.TID, TGID: e.Task.TGID, Comm: e.Task.Comm, KernelThread: e.Task.KernelThread, Cgroup: e.Task.Cgroup, Exe: e.Task.Exe,
		}
		if e.Context != where.InTask && e.Number != where.Unknown {
			x.Number = &e.Number
		}
		r.Executors = append(r.Executors, x)
	}
	return r
}

// what says in which context, and in an interrupt in which.
func (e whereExecutor) what() string {
	switch {
	case e.Context == "hardirq" && e.Number == nil:
		return "hardirq of no driver (timer, other CPUs)"
	case e.Context == "hardirq" && e.Interrupt != "":
		return fmt.Sprintf("hardirq %d %s", *e.Number, safe(e.Interrupt))
	case e.Number != nil && e.Interrupt == "":
		return fmt.Sprintf("%s %d", e.Context, *e.Number)
	}
	return strings.TrimSpace(e.Context + " " + safe(e.Interrupt))
}

func (e whereExecutor) row() []string {
	row := []string{"-", e.what(), "-", "-", "-", number(e.Count), perSecond(e.PerSecond), e.cpus()}
	if e.Context != "task" {
		return row
	}
	row[0], row[3], row[4] = safe(e.Comm), number(uint64(e.TID)), number(uint64(e.TGID))
	if row[2] = safe(e.Cgroup); row[2] == "" {
		row[2] = "gone"
	}
	return row
}

func (e whereExecutor) cpus() string {
	var numbers []int
	for _, c := range e.CPUs {
		numbers = append(numbers, c.CPU)
	}
	return cpuList(numbers)
}

// write writes a table. One that is renewed is short.
func (r whereReport) write(w io.Writer, live bool) error {
	place := "kernel"
	if r.Module != "" {
		place = "module " + r.Module
	}
	fmt.Fprintf(w, "%s (%s) by %s in %s, kernel %s, scheduler %s\n\n", r.Function, place, r.Method, seconds(r.Seconds), r.Context.Kernel, r.Context.Scheduler)
	most := mostRows
	if live {
		most = liveRows
	}
	if len(r.Executors) > 0 {
		rows := [][]string{{"name", "context", "cgroup", "tid", "pid", "count", "per s", "CPUs"}}
		for _, e := range r.Executors[:min(most, len(r.Executors))] {
			rows = append(rows, e.row())
		}
		if err := writeColumns(w, 3, rows); err != nil {
			return err
		}
		if more := len(r.Executors) - most; more > 0 {
			fmt.Fprintf(w, "and %d more, which called less often\n", more)
		}
		fmt.Fprintln(w)
		if err := r.writeSums(w); err != nil {
			return err
		}
	}
	for _, note := range r.notes() {
		fmt.Fprintln(w, note)
	}
	return nil
}

// writeSums writes the counts of cgroups and CPUs, where there are several.
func (r whereReport) writeSums(w io.Writer) error {
	if len(r.Cgroups) > 1 {
		rows := [][]string{{"cgroup", "count"}}
		for _, c := range r.Cgroups[:min(len(r.Cgroups), liveRows)] {
			path := safe(c.Cgroup)
			if path == "" {
				path = "gone"
			}
			rows = append(rows, []string{path, number(c.Count)})
		}
		if err := writeColumns(w, 1, rows); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	var words []string
	for _, c := range r.CPUs {
		words = append(words, fmt.Sprintf("%d: %d", c.CPU, c.Count))
	}
	_, err := fmt.Fprintf(w, "CPU %s\n", strings.Join(words, ", "))
	return err
}

// notes are the last lines: the sum, and what the table does not say.
func (r whereReport) notes() []string {
	sum := "count " + number(r.Count) + ", " + perSecond(r.PerSecond) + " per s"
	if r.Count == 0 {
		sum = "nobody executed it"
	}
	if r.EndedEarly != "" {
		sum += ", ended early: " + r.EndedEarly
	}
	list := []string{sum}
	if r.Lost > 0 {
		list = append(list, number(r.Lost)+" more calls are in no row: too many tasks executed it")
	}
	if r.Missed > 0 {
		list = append(list, number(r.Missed)+" more calls came while another one was counted")
	}
	if r.Copies > 1 {
		list = append(list, fmt.Sprintf("%d functions have this name there: all are counted", r.Copies))
	}
	if r.Instead != "" {
		list = append(list, "kprobe, not fentry: "+r.Instead)
	}
	if r.Blind {
		list = append(list, "the kernel hides its count of contexts: interrupts of no driver count as tasks")
	}
	return list
}

// perSecond is a rate with a digit behind the point where that says something.
func perSecond(rate float64) string {
	if rate < 100 {
		return strconv.FormatFloat(rate, 'f', 1, 64)
	}
	return strconv.FormatFloat(rate, 'f', 0, 64)
}
