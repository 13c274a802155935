// Package counters finds and opens the counters of this machine's processor that say how
// much of its time a program waits for memory, and how many cycles a CPU has.
//
// It knows processors, not the scheduler: package daemon gives what it opens to package
// sched.
package counters

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rota/internal/kernfile"
)

// ErrNone is that this machine shows no counters.
var ErrNone = errors.New("the kernel shows no counters of the processor")

// Source is what to count, and where.
type Source struct {
	// Name says in words what is counted.
	Name string
	// Latency is how long each counted access takes; 0: what is counted are cycles.
	Latency time.Duration
	// NoClock: the cycles are not known to be those of the CPU, and say no frequency.
	NoClock bool

	units []unit
}

// A unit is a kind of core: a machine may have several, with events of their own.
type unit struct {
	cpus   []int // empty: all
	waits  *event
	cycles *event
}

// event is what perf_event_open calls type and config.
type event struct {
	kind   uint32
	config uint64
}

// Set are opened counters, one of each kind per CPU.
type Set struct {
	Source Source
	Waits  map[int]int // descriptors by the number of the CPU
	Cycles map[int]int
}

// opener is perf_event_open for a CPU.
type opener func(e event, cpu int) (int, error)

// Open opens the counters of these CPUs, which are online. It fails where not one CPU has
// what the source counts.
func (s Source) Open(cpus []int) (*Set, error) { return s.open(cpus, perfOpen) }

func (s Source) open(cpus []int, open opener) (*Set, error) {
	set := &Set{Source: s, Waits: map[int]int{}, Cycles: map[int]int{}}
	var fault error
	for _, cpu := range cpus {
		// One may go offline meanwhile.
		if fault = set.openCPU(cpu, open); fault != nil && !errors.Is(fault, unix.ENODEV) {
			break
		}
		fault = nil
	}
	if fault != nil || len(set.Waits)+len(set.Cycles) == 0 {
		set.Close()
		if fault == nil {
			fault = ErrNone
		}
		return nil, fmt.Errorf("%s: %w", s.Name, fault)
	}
	return set, nil
}

func (set *Set) openCPU(cpu int, open opener) error {
	for _, u := range set.Source.units {
		if len(u.cpus) > 0 && !slices.Contains(u.cpus, cpu) {
			continue
		}
		for _, want := range []struct {
			e  *event
			in map[int]int
		}{{u.waits, set.Waits}, {u.cycles, set.Cycles}} {
			if want.e == nil {
				continue
			}
			fd, err := open(*want.e, cpu)
			if err != nil {
				return fmt.Errorf("open the counter of CPU %d: %w%s", cpu, err, why(err))
			}
			want.in[cpu] = fd
		}
	}
	return nil
}

// why says what an error of perf_event_open means.
func why(err error) string {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP):
		return ": this machine does not count that; a hypervisor may hide it"
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return ": not permitted; it takes CAP_PERFMON"
	case errors.Is(err, unix.EINVAL):
		return ": the kernel does not know this event"
	}
	return ""
}

// Close closes them; what holds the descriptors keeps the counters.
func (set *Set) Close() {
	for _, fds := range []map[int]int{set.Waits, set.Cycles} {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}
}

// CPUs are those that anything is counted on, in their order.
func (set *Set) CPUs() []int {
	all := map[int]int{}
	maps.Copy(all, set.Waits)
	maps.Copy(all, set.Cycles)
	return slices.Sorted(maps.Keys(all))
}

func perfOpen(e event, cpu int) (int, error) {
	attr := unix.PerfEventAttr{Type: e.kind, Config: e.config, Size: unix.PERF_ATTR_SIZE_VER7}
	return unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
}

// Named is the source that an operator names: an event, "rHEX", a raw one of the processor, or
// "GROUP:NAME", a tracepoint of the kernel; with a latency, accesses that take so long each.
// "EVENT/EVENT" are cycles that wait, and all of them. root is "/" of the machine.
func Named(root fs.FS, name string, latency time.Duration) (Source, error) {
	waits, cycles, both := strings.Cut(name, "/")
	e, err := namedEvent(root, waits)
	if err != nil {
		return Source{}, fmt.Errorf("event %q: %w", waits, err)
	}
	u := unit{waits: &e}
	switch {
	case both:
		of, err := namedEvent(root, cycles)
		if err != nil {
			return Source{}, fmt.Errorf("event %q: %w", cycles, err)
		}
		u.cycles = &of
		return Source{Name: waits + " of " + cycles, NoClock: true, units: []unit{u}}, nil
	case latency > 0:
		return Source{Name: fmt.Sprintf("%s, each takes %v", name, latency), Latency: latency, units: []unit{u}}, nil
	}
	u.cycles = &event{unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES}
	return Source{Name: name + ", cycles that wait", units: []unit{u}}, nil
}

func namedEvent(root fs.FS, name string) (event, error) {
	if hex, isRaw := strings.CutPrefix(name, "r"); isRaw && !strings.Contains(name, ":") {
		config, err := strconv.ParseUint(hex, 16, 64)
		if err != nil {
			return event{}, errors.New("is no event: write rHEX or GROUP:NAME")
		}
		return event{unix.PERF_TYPE_RAW, config}, nil
	}
	group, point, ok := strings.Cut(name, ":")
	if !ok || !fs.ValidPath(group) || !fs.ValidPath(point) || strings.Contains(name, "/") {
		return event{}, errors.New("is no event: write rHEX or GROUP:NAME")
	}
	id, err := kernfile.Number(root, "sys/kernel/tracing/events/"+group+"/"+point+"/id", 0, math.MaxUint32)
	if errors.Is(err, fs.ErrNotExist) {
		return event{}, errors.New("the kernel has no such tracepoint, or tracefs is not mounted on /sys/kernel/tracing")
	}
	return event{unix.PERF_TYPE_TRACEPOINT, id}, err
}

// Open opens on these CPUs, which are online, the counters of an event as Named has it, or
// without one those that Detect finds. root is "/" of the machine.
func Open(root fs.FS, event string, latency time.Duration, cpus []int) (*Set, error) {
	source, err := Detect(root)
	if event != "" {
		source, err = Named(root, event, latency)
	}
	if err != nil {
		return nil, err
	}
	return source.Open(cpus)
}

// Event is what perf_event_open calls type and config of an event that Named knows by itself:
// "rHEX" or "GROUP:NAME". root is "/" of the machine.
func Event(root fs.FS, name string) (kind uint32, config uint64, err error) {
	e, err := namedEvent(root, name)
	if err != nil {
		return 0, 0, fmt.Errorf("event %q: %w", name, err)
	}
	return e.kind, e.config, nil
}
