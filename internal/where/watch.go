package where

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

//go:embed where.bpf.o
var objectELF []byte

// kernelThread is PF_KTHREAD of bpf/kernel.h.
const kernelThread = 0x00200000

// seenKey and seenValue are structs seen_key and seen of bpf/where.bpf.c, serving
// its struct serving.
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

type serving struct {
	Hardirq, Softirq uint32
	Lost             uint64
}

// Watch counts who executes a function from Open on until it is closed.
type Watch struct {
	// Method is how the function is hooked: "fentry" or "kprobe".
	Method string
	// Instead says why it is not fentry, empty when it is.
	Instead string
	// Blind is that the kernel hides its count of contexts: interrupts that no driver
	// serves, as that of the timer, are taken for the task below them.
	Blind bool

	plain bool // interrupts are of no interest
	coll  *ebpf.Collection
	entry *ebpf.Program
	links []link.Link
	names map[int]string // of interrupts
	tasks *tasks
	root  fs.FS
}

func readObject() (*ebpf.CollectionSpec, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(objectELF))
	if err != nil {
		return nil, fmt.Errorf("object that sees who executes a function: %w: build it again with: make build", err)
	}
	return spec, nil
}

// Open begins to watch a function that Find has found.
func Open(f Function) (*Watch, error) { return openWatch(f, false) }

// OpenTasks is Open for who only wants Tasks: interrupts cost nothing then, where the
// kernel does not hide its count of contexts.
func OpenTasks(f Function) (*Watch, error) { return openWatch(f, true) }

func openWatch(f Function, plain bool) (*Watch, error) {
	w := &Watch{plain: plain, tasks: newTasks(), root: os.DirFS("/")}
	if err := w.open(f); err != nil {
		w.Close()
		return nil, fmt.Errorf("%s: %w", f, withFix(err))
	}
	w.names = readInterrupts(w.root)
	return w, nil
}

// open tries fentry, which costs less, and then a kprobe. fentry finds a function by
// its name alone, so it is for names that there is one of.
func (w *Watch) open(f Function) error {
	if err := rlimit.RemoveMemlock(); err != nil {
		return fmt.Errorf("locked memory: %w", err)
	}
	cache := btf.NewCache()
	if _, err := cache.Kernel(); err != nil {
		return &noTypesError{err}
	}
	err := errors.New("the name is not the only one")
	if !f.shared {
		if err = w.load(cache, "where_fentry", f); err == nil {
			w.Method = "fentry"
			return nil
		}
		w.Close()
	}
	if errors.Is(err, os.ErrPermission) {
		return err
	}
	w.Instead = instead(err)
	if again := w.load(cache, "where_kprobe", f); again != nil {
		return fmt.Errorf("can't be hooked, neither by fentry (%w) nor by kprobe (%w)", err, again)
	}
	w.Method = "kprobe"
	return nil
}

// instead puts into words why fentry was not possible.
func instead(err error) string {
	var verifier *ebpf.VerifierError
	switch {
	case errors.Is(err, btf.ErrNotFound):
		return "the kernel's types do not have it"
	case errors.As(err, &verifier), errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EBUSY):
		return "the kernel refuses it"
	}
	return err.Error()
}

// load loads the program for the function's entry and those for interrupts, and
// attaches them, the entry last: what it asks must be known by then.
func (w *Watch) load(cache *btf.Cache, entry string, f Function) (err error) {
	spec, err := readObject()
	if err != nil {
		return err
	}
	for _, other := range []string{"where_fentry", "where_kprobe"} {
		if other != entry {
			delete(spec.Programs, other)
		}
	}
	if entry == "where_fentry" {
		spec.Programs[entry].AttachTo = f.Name
	}
	if err := w.loadCollection(spec, cache, entry); err != nil {
		return fmt.Errorf("load what sees it: %w", err)
	}
	w.entry = w.coll.Programs[entry]
	// Backwards, ends stand before beginnings: nothing is noted that does not end.
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(w.coll.Programs))) {
		if name == entry {
			continue
		}
		if err := w.attach(w.coll.Programs[name]); err != nil {
			return fmt.Errorf("attach %s: %w", name, err)
		}
	}
	if entry == "where_kprobe" {
		return w.attachKprobes(f)
	}
	return w.attach(w.entry)
}

// loadCollection does without the preempt count where the kernel has it, but gives
// nobody its address (CONFIG_KALLSYMS_ALL).
func (w *Watch) loadCollection(spec *ebpf.CollectionSpec, cache *btf.Cache, entry string) error {
	kernel, err := cache.Kernel()
	if err != nil {
		return &noTypesError{err}
	}
	place, ids := findCount(kernel)
	for {
		ready := spec.Copy()
		if w.plain && place != placeNone {
			maps.DeleteFunc(ready.Programs, func(name string, _ *ebpf.ProgramSpec) bool { return name != entry })
		}
		if err := placeCount(ready, entry, place, ids); err != nil {
			return err
		}
		w.coll, err = ebpf.NewCollectionWithOptions(ready, ebpf.CollectionOptions{Cache: cache})
		w.Blind = place == placeNone
		if place == placeNone || !errors.Is(err, unix.ENOENT) {
			return err
		}
		place, ids = placeNone, nil
	}
}

func (w *Watch) attach(program *ebpf.Program) error {
	l, err := link.AttachTracing(link.TracingOptions{Program: program})
	if err == nil {
		w.links = append(w.links, l)
	}
	return err
}

// Read is what has been seen since Open.
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
	var key seenKey
	var value seenValue
	all := w.coll.Maps["seen"].Iterate()
	for all.Next(&key, &value) {
		c.add(key, value)
	}
	if err := all.Err(); err != nil {
		return Report{}, fmt.Errorf("read what was seen: %w", err)
	}
	return c.finish(w), nil
}

// Tasks are those that executed the function since Tasks was called last, or since Open,
// and forgets what was counted. It is for who watches for long: ended tasks keep no room.
func (w *Watch) Tasks() ([]Executed, error) {
	var key seenKey
	var value seenValue
	var keys []seenKey
	found := map[taskID]*Executed{}
	all := w.coll.Maps["seen"].Iterate()
	for all.Next(&key, &value) {
		keys = append(keys, key)
		if key.Context != InTask || key.TID == 0 {
			continue
		}
		id := taskID{key.TID, key.Started}
		if found[id] == nil {
			found[id] = &Executed{TID: key.TID, TGID: value.TGID, Started: key.Started}
		}
		found[id].Count += value.Count
	}
	if err := all.Err(); err != nil {
		return nil, fmt.Errorf("read what was seen: %w", err)
	}
	for _, key := range keys {
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

// Close ends the watch.
func (w *Watch) Close() {
	for _, l := range w.links {
		l.Close()
	}
	w.links = nil
	if w.coll != nil {
		w.coll.Close()
		w.coll = nil
	}
}
