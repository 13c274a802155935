// Package where says who executes a function of the running kernel: which tasks,
// in which cgroups, on which CPUs, and which interrupts. It has a small BPF object
// of its own, which counts at the function's entry and needs no scheduler of ours.
//
// Find looks a function up and refuses what must not be watched, Open begins to
// watch it, Read says what was seen so far. It gives nobody a class: the command
// `rota where` calls it, and writes the rules; the daemon asks for the tasks whose
// class a rule gives by a function.
package where

import (
	"cmp"
	"slices"
)

// Context is in which of the kernel's contexts something runs.
type Context uint32

// The contexts: enum context of bpf/where.bpf.c.
const (
	InTask Context = iota
	InSoftirq
	InHardirq
	InNMI
)

func (c Context) String() string {
	names := []string{"task", "softirq", "hardirq", "NMI"}
	if int(c) >= len(names) {
		return "unknown"
	}
	return names[c]
}

// Unknown is the number of an interrupt that no driver serves, or that began while nobody
// noted which there are (see hooks).
const Unknown = -1

// Report is what was seen since Open.
type Report struct {
	Executors []Executor // the most frequent first
	Count     uint64     // calls, of all
	Lost      uint64     // calls of tasks and interrupts for which there was no room
	Missed    uint64     // calls during the count of another one
}

// Executor is a task or an interrupt that executes the function.
type Executor struct {
	Context Context
	Task    Task // in a task only: in an interrupt the current task is a bystander
	// Number and Interrupt say which interrupt, Unknown and "" when that is not known.
	Number    int
	Interrupt string
	Count     uint64
	CPUs      []CPUCount // in the order of the CPUs
}

// CPUCount is how often something happened on a CPU.
type CPUCount struct {
	CPU   int    `json:"cpu"`
	Count uint64 `json:"count"`
}

// Task is a thread that was seen. Its names are those it had when it was seen last.
type Task struct {
	TID, TGID    uint32
	Comm         string
	KernelThread bool
	Cgroup       string // path in the v2 tree; empty: the cgroup is gone
	Exe          string // path of the program; empty: not known, the task had ended
	UID          uint32 // effective user
}

// Executed is a task that executed the function, outside of interrupts.
type Executed struct {
	TID, TGID uint32
	Started   uint64 // ns since boot, as the kernel's start_boottime
	Count     uint64
}

// by is how many calls were in this context.
func (r Report) by(context Context) (calls uint64) {
	for _, e := range r.Executors {
		if e.Context == context {
			calls += e.Count
		}
	}
	return calls
}

// CPUs is how often each CPU executed the function.
func (r Report) CPUs() []CPUCount {
	counts := map[int]uint64{}
	for _, e := range r.Executors {
		for _, c := range e.CPUs {
			counts[c.CPU] += c.Count
		}
	}
	return sortedCPUs(counts)
}

// CgroupCount is how often the tasks of a cgroup executed the function.
type CgroupCount struct {
	Cgroup string `json:"cgroup"` // empty: cgroups that are gone
	Count  uint64 `json:"count"`
}

// Cgroups is how often the tasks of each cgroup executed the function, the most
// frequent first. Interrupts belong to none.
func (r Report) Cgroups() (list []CgroupCount) {
	counts := map[string]uint64{}
	for _, e := range r.Executors {
		if e.Context == InTask {
			counts[e.Task.Cgroup] += e.Count
		}
	}
	for path, n := range counts {
		list = append(list, CgroupCount{path, n})
	}
	slices.SortFunc(list, func(a, b CgroupCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Cgroup, b.Cgroup))
	})
	return list
}

func sortedCPUs(counts map[int]uint64) (list []CPUCount) {
	for cpu, n := range counts {
		list = append(list, CPUCount{cpu, n})
	}
	slices.SortFunc(list, func(a, b CPUCount) int { return a.CPU - b.CPU })
	return list
}
