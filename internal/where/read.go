package where

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cilium/ebpf"
)

// kernelThread is PF_KTHREAD of bpf/kernel.h.
const kernelThread = 0x00200000

// seenKey and seenValue are structs seen_key and seen of bpf/where.bpf.c, recent and
// serving those of the same names.
type seenKey struct {
	Started     uint64
	TID, CPU    uint32
	Context     Context
	SourcePlus1 uint32
}

type seenValue struct {
	Count, Cgroup    uint64
	Comm             [16]byte
	TGID, Flags, UID uint32
	_                uint32
}

type recent struct {
	Key        seenKey
	Count, Era uint64
	_          [5]uint64
}

type serving struct {
	Hardirq, Softirq uint32
	Lost             uint64
}

// Read is what has been seen since Open. Which interrupt a call was in is known from the
// Read on that sees the first such call, or from Open on if that was before the first Read
// that saw a task's.
func (w *Watch) Read() (Report, error) {
	var cpus []serving
	if err := w.coll.Maps["serving"].Lookup(uint32(0), &cpus); err != nil {
		return Report{}, fmt.Errorf("read what was seen: %w", err)
	}
	var c collector
	for _, cpu := range cpus {
		c.report.Lost += cpu.Lost
	}
	if stats, err := w.entry.Stats(); err == nil {
		c.report.Missed = stats.RecursionMisses
	}
	seen, err := w.seen()
	if err != nil {
		return Report{}, err
	}
	for key, value := range seen {
		c.add(key, value)
	}
	report := c.finish(w)
	if w.hooks == nil || w.Blind {
		return report, nil
	}
	tasks := report.by(InTask)
	if err := w.hooks.follow(tasks, report.Count-tasks); err != nil {
		return report, fmt.Errorf("see which interrupts there are: %w", withFix(err))
	}
	return report, nil
}

// Tasks are those that executed the function since Tasks was called last, or since Open,
// and forgets what was counted. It is for who watches for long: ended tasks keep no room.
func (w *Watch) Tasks() ([]Executed, error) {
	seen, err := w.seen()
	if err != nil {
		return nil, err
	}
	found := map[taskID]*Executed{}
	for key, value := range seen {
		if key.Context != InTask || key.TID == 0 {
			continue
		}
		id := taskID{key.TID, key.Started}
		if found[id] == nil {
			found[id] = &Executed{TID: key.TID, TGID: value.TGID, Started: key.Started}
		}
		found[id].Count += value.Count
	}
	// What CPUs remember first: they write no more to what goes then.
	w.era++
	if err := w.coll.Variables["era"].Set(w.era); err != nil {
		return nil, fmt.Errorf("forget what was seen: %w", err)
	}
	for key := range seen {
		if err := w.coll.Maps["seen"].Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return nil, fmt.Errorf("forget what was seen: %w", err)
		}
	}
	tasks := make([]Executed, 0, len(found))
	for _, id := range slices.SortedFunc(maps.Keys(found), func(a, b taskID) int { return cmp.Or(cmp.Compare(a.tid, b.tid), cmp.Compare(a.started, b.started)) }) {
		tasks = append(tasks, *found[id])
	}
	return tasks, nil
}

// seen is what is in the table, with what CPUs have counted beside it. What is put back
// into the table meanwhile is missing this time rather than there twice.
func (w *Watch) seen() (map[seenKey]seenValue, error) {
	seen := map[seenKey]seenValue{}
	var key seenKey
	var value seenValue
	all := w.coll.Maps["seen"].Iterate()
	for all.Next(&key, &value) {
		seen[key] = value
	}
	if err := all.Err(); err != nil {
		return nil, fmt.Errorf("read what was seen: %w", err)
	}
	for place := range w.coll.Maps["recent"].MaxEntries() {
		var cpus []recent
		if err := w.coll.Maps["recent"].Lookup(place, &cpus); err != nil {
			return nil, fmt.Errorf("read what was seen lately: %w", err)
		}
		addRecent(seen, cpus, w.era)
	}
	return seen, nil
}

// addRecent adds what CPUs have counted beside the table in this era.
func addRecent(seen map[seenKey]seenValue, cpus []recent, era uint64) {
	for _, last := range cpus {
		value, known := seen[last.Key]
		if last.Era != era || !known {
			continue
		}
		value.Count += last.Count
		seen[last.Key] = value
	}
}

// collector puts the entries of the CPUs together.
type collector struct {
	report Report
	found  map[seenKey]*collected // by the key without its CPU
}

type collected struct {
	Executor
	id     taskID
	cgroup uint64
	most   uint64 // calls of the entry that the names are from
	cpus   map[int]uint64
}

func (c *collector) add(key seenKey, value seenValue) {
	if c.found == nil {
		c.found = map[seenKey]*collected{}
	}
	cpu := int(key.CPU)
	key.CPU = 0
	if key.TID == 0 && key.Context == InTask {
		key.CPU = uint32(cpu) // the idle tasks have one number
	}
	e := c.found[key]
	if e == nil {
		e = &collected{cpus: map[int]uint64{}, id: taskID{key.TID, key.Started}}
		e.Context, e.Number, e.Task.TID = key.Context, int(key.SourcePlus1)-1, key.TID
		c.found[key] = e
	}
	e.cpus[cpu] += value.Count
	e.Count += value.Count
	c.report.Count += value.Count
	if key.Context != InTask || value.Count < e.most {
		return
	}
	comm, _, _ := bytes.Cut(value.Comm[:], []byte{0})
	e.most, e.cgroup = value.Count, value.Cgroup
	e.Task.TGID, e.Task.UID, e.Task.Comm = value.TGID, value.UID, string(comm)
	e.Task.KernelThread = value.Flags&kernelThread != 0
}

func (c *collector) finish(w *Watch) Report {
	for _, e := range c.found {
		e.Executor.CPUs = sortedCPUs(e.cpus)
		switch e.Context {
		case InTask:
			e.Task.Cgroup = w.tasks.path(e.cgroup)
			w.tasks.describe(e.id, &e.Task)
		case InHardirq:
			e.Interrupt = w.interrupt(e.Number)
		case InSoftirq:
			e.Interrupt = vectorName(e.Number)
		}
		c.report.Executors = append(c.report.Executors, e.Executor)
	}
	slices.SortFunc(c.report.Executors, func(a, b Executor) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Context, b.Context), cmp.Compare(a.Task.TID, b.Task.TID), a.Number-b.Number)
	})
	return c.report
}

// interrupt is the name of an interrupt, which may have come after Open.
func (w *Watch) interrupt(number int) string {
	if _, known := w.names[number]; !known && number != Unknown {
		w.names = readInterrupts(w.root)
		w.names[number] += ""
	}
	return w.names[number]
}
