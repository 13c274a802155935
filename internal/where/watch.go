package where

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"rota/internal/preemptcount"
)

//go:embed where.bpf.o
var objectELF []byte

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
	links []link.Link    // of the entry
	hooks *hooks         // nil: interrupts are of no interest
	names map[int]string // of interrupts
	tasks *tasks
	root  fs.FS
	era   uint64 // as variable era of the object: how often was forgotten, plus 1
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
	w := &Watch{plain: plain, era: 1, tasks: newTasks(), root: os.DirFS("/")}
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
	if len(w.coll.Programs) > 1 {
		w.hooks = newHooks(w.coll.Programs)
		if err := w.hooks.take(); err != nil {
			return err
		}
	}
	if entry == "where_kprobe" {
		return w.attachKprobes(f)
	}
	return w.attach(w.entry)
}

// loadCollection does without the preempt count where the kernel does not give it away; without
// it, or where interrupts are to be named, the programs on those are needed too.
func (w *Watch) loadCollection(spec *ebpf.CollectionSpec, cache *btf.Cache, entry string) error {
	kernel, err := cache.Kernel()
	if err != nil {
		return &noTypesError{err}
	}
	count := preemptcount.Find(kernel).Usable()
	if w.plain && count.Known() {
		maps.DeleteFunc(spec.Programs, func(name string, _ *ebpf.ProgramSpec) bool { return name != entry })
	}
	if err := count.Bind(spec); err != nil {
		return err
	}
	w.coll, err = ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: cache})
	w.Blind = !count.Known()
	return err
}

func (w *Watch) attach(program *ebpf.Program) error {
	l, err := link.AttachTracing(link.TracingOptions{Program: program})
	if err == nil {
		w.links = append(w.links, l)
	}
	return err
}

// Close ends the watch.
func (w *Watch) Close() {
	for _, l := range w.links {
		l.Close()
	}
	w.links = nil
	if w.hooks != nil {
		w.hooks.close()
		w.hooks = nil
	}
	if w.coll != nil {
		w.coll.Close()
		w.coll = nil
	}
}
