package runnable

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
)

//go:embed runnable.bpf.o
var objectELF []byte

// buckets is BUCKETS of bpf/runnable.bpf.c.
const buckets = 32

// countedWaits is what one CPU counted: struct waits of bpf/runnable.bpf.c.
type countedWaits struct {
	Histogram [buckets]uint64
	TotalNs   uint64
	LongestNs uint64
	Lost      uint64
}

// Watch counts waits from Begin on until it is closed.
type Watch struct {
	coll  *ebpf.Collection
	links []link.Link
}

func readObject() (*ebpf.CollectionSpec, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(objectELF))
	if err != nil {
		return nil, fmt.Errorf("object that counts waits: %w: build it again with: make build", err)
	}
	return spec, nil
}

// Begin begins to count the waits of t.
func Begin(t Target) (*Watch, error) {
	w := &Watch{}
	err := w.begin(t)
	if err != nil {
		w.Close()
		return nil, withFix(err)
	}
	return w, nil
}

func (w *Watch) begin(t Target) error {
	spec, err := readObject()
	if err != nil {
		return err
	}
	for name, value := range map[string]any{"wanted_process": t.process, "wanted_cgroup": t.cgroup} {
		variable, ok := spec.Variables[name]
		if !ok {
			return fmt.Errorf("object that counts waits: no variable %q: build it again with: make build", name)
		}
		if err := variable.Set(value); err != nil {
			return fmt.Errorf("object that counts waits: variable %q: %w", name, err)
		}
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		return fmt.Errorf("locked memory: %w", err)
	}
	cache := btf.NewCache()
	if _, err := cache.Kernel(); err != nil {
		return &noTypesError{err}
	}
	if w.coll, err = ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: cache}); err != nil {
		return fmt.Errorf("load what counts waits: %w", err)
	}
	for name, program := range w.coll.Programs {
		l, err := link.AttachTracing(link.TracingOptions{Program: program})
		if err != nil {
			return fmt.Errorf("attach %s: %w", name, err)
		}
		w.links = append(w.links, l)
	}
	return w.coll.Variables["begun"].Set(uint32(1))
}

// noTypesError says that the kernel does not describe its types.
type noTypesError struct{ err error }

func (e *noTypesError) Error() string { return "kernel: does not describe its types: " + e.err.Error() }
func (e *noTypesError) Unwrap() error { return e.err }

// withFix adds what to do about an error.
func withFix(err error) error {
	var types *noTypesError
	var verifier *ebpf.VerifierError
	switch {
	case errors.As(err, &verifier):
		return fmt.Errorf("%w: this kernel differs from those that it is tried on: please report it with the version of the kernel", err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: run as root", err)
	case errors.As(err, &types):
		return fmt.Errorf("%w: boot a kernel that is built with CONFIG_DEBUG_INFO_BTF=y", err)
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, btf.ErrNotFound):
		return fmt.Errorf("%w: boot a kernel 6.1 or newer", err)
	}
	return err
}

// Waits is what has been counted since Begin.
func (w *Watch) Waits() (Waits, error) {
	var cpus []countedWaits
	if err := w.coll.Maps["waits"].Lookup(uint32(0), &cpus); err != nil {
		return Waits{}, fmt.Errorf("read the counted waits: %w", err)
	}
	return sum(cpus), nil
}

// sum adds up what the CPUs counted.
func sum(cpus []countedWaits) Waits {
	out := Waits{Histogram: make([]uint64, buckets), MeanMicros: Unknown}
	var total, longest time.Duration
	for _, cpu := range cpus {
		for i, n := range cpu.Histogram {
			out.Histogram[i] += n
		}
		total += time.Duration(cpu.TotalNs)
		longest = max(longest, time.Duration(cpu.LongestNs))
		out.Lost += cpu.Lost
	}
	if n := out.Count(); n > 0 {
		out.MeanMicros = float64(total) / 1e3 / float64(n)
	}
	out.MaxMicros = float64(longest) / 1e3
	return out
}

// Close ends the counting.
func (w *Watch) Close() {
	for _, l := range w.links {
		l.Close()
	}
	if w.coll != nil {
		w.coll.Close()
	}
}
