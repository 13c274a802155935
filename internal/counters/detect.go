package counters

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"rota/internal/cpulist"
	"rota/internal/kernfile"
)

const devices = "sys/bus/event_source/devices/"

// raw is an event of an x86 processor as its manual names it. With a threshold those
// cycles count in which there are at least so many.
type raw struct {
	name                    string
	number, mask, threshold uint64
}

func (r raw) config() uint64 {
	return r.number&0xff | r.mask<<8 | r.threshold<<24 | r.number>>8<<32
}

// model is a range of processors of one design, and what to count on each kind of its
// cores.
type model struct {
	vendor      string
	family      int
	first, last int            // the model number
	cores       map[string]raw // by the name of the kernel's device
	note        string         // what is wrong with it
}

// The devices of x86: of machines with one kind of core, and of those with two.
const (
	allCores   = "cpu"
	bigCores   = "cpu_core"
	smallCores = "cpu_atom"
)

// models are the processors of which we know what to count, from the tables of events in
// the kernel's tools/perf/pmu-events (7.2). Where models of several designs have numbers
// in between each has a line.
func models() []model {
	const intel, amd = "GenuineIntel", "AuthenticAMD"
	beyondL3 := raw{"CYCLE_ACTIVITY.STALLS_L3_MISS", 0xa3, 0x06, 6}
	loads := raw{"RESOURCE_STALLS.LOAD", 0xa2, 0x02, 0}
	unfinished := raw{"ex_no_retire.load_not_complete", 0xd6, 0xa2, 0}
	const (
		lower   = "what waits for the last-level cache, which may have a clock of its own, is not in it"
		upper   = "what waits for the second-level cache, which runs at the core's clock, is in it"
		flights = "cycles with a miss of the first-level cache in flight: what the core did meanwhile is in it"
	)
	one := func(r raw) map[string]raw { return map[string]raw{allCores: r} }
	var all []model
	add := func(vendor string, family int, cores map[string]raw, note string, numbers ...[2]int) {
		for _, n := range numbers {
			all = append(all, model{vendor, family, n[0], n[1], cores, note})
		}
	}
	single := func(numbers ...int) (ranges [][2]int) {
		for _, n := range numbers {
			ranges = append(ranges, [2]int{n, n})
		}
		return ranges
	}
	// Nehalem and Westmere, the time of the paper.
	add(intel, 6, one(loads), upper, single(0x1a, 0x1e, 0x1f, 0x2e, 0x25, 0x2c, 0x2f)...)
	// Skylake, Cascade Lake, Kaby Lake, Comet Lake; Ice Lake, Tiger Lake, Rocket Lake.
	add(intel, 6, one(beyondL3), lower, single(0x4e, 0x5e, 0x55, 0x8e, 0x9e, 0xa5, 0xa6, 0x7d, 0x7e, 0x6a, 0x6c, 0x8c, 0x8d, 0xa7)...)
	// Sapphire, Emerald and Granite Rapids.
	add(intel, 6, one(beyondL3), lower, single(0x8f, 0xcf, 0xad, 0xae)...)
	// Alder and Raptor Lake: the table has nothing like it for their small cores.
	add(intel, 6, map[string]raw{bigCores: beyondL3}, lower+"; on the small cores nothing is counted", single(0x97, 0x9a, 0xb7, 0xba, 0xbf)...)
	add(intel, 6, map[string]raw{
		bigCores:   {"MEMORY_STALLS.MEM", 0x46, 0x08, 0},
		smallCores: {"MEM_BOUND_STALLS_LOAD.LLC_MISS", 0x34, 0x78, 0},
	}, "", single(0xbd)...) // Lunar Lake
	// Zen 4 before Zen 3, whose numbers lie around; Zen 5.
	add(amd, 0x19, one(unfinished), upper, [2]int{0x10, 0x1f}, [2]int{0x60, 0x7f}, [2]int{0xa0, 0xaf})
	add(amd, 0x19, one(raw{"ls_alloc_mab_count", 0x5f, 0, 1}), flights, [2]int{0x00, 0xff})
	add(amd, 0x1a, one(unfinished), upper, [2]int{0x00, 0xff})
	return all
}

// Detect finds what to count on this machine. root is its "/". The error says why there is
// nothing, and wraps ErrNone.
func Detect(root fs.FS) (Source, error) {
	if source, found, err := detectArm(root); found || err != nil {
		return source, err
	}
	info, err := processor(root)
	if err != nil {
		return Source{}, err
	}
	vendor, family, number := info["vendor_id"], atoi(info["cpu family"]), atoi(info["model"])
	if family == 0 {
		return Source{}, fmt.Errorf("%w: /proc/cpuinfo names no processor that rota knows", ErrNone)
	}
	name := fmt.Sprintf("%s, family %d, model %d", kernfile.Clip(info["model name"]), family, number)
	for _, m := range models() {
		if m.vendor == vendor && m.family == family && m.first <= number && number <= m.last {
			return m.source(root, name, strings.Contains(" "+info["flags"]+" ", " hypervisor "))
		}
	}
	return Source{}, fmt.Errorf("%w that rota knows, of %s: declare memoryBound of classes, or name an event (scheduler.counters)", ErrNone, name)
}

func (m model) source(root fs.FS, name string, guest bool) (Source, error) {
	s := Source{}
	var names []string
	for _, device := range []string{allCores, bigCores, smallCores} {
		r, wanted := m.cores[device]
		kind, err := kernfile.Number(root, devices+device+"/type", 0, math.MaxUint32)
		if !wanted || err != nil {
			continue
		}
		u := unit{waits: &event{uint32(kind), r.config()}, cycles: &event{unix.PERF_TYPE_HARDWARE, kind<<32 | unix.PERF_COUNT_HW_CPU_CYCLES}}
		if device == allCores {
			u.cycles.config = unix.PERF_COUNT_HW_CPU_CYCLES
		} else if u.cpus, err = members(root, device); err != nil {
			return Source{}, err
		} else if len(u.cpus) == 0 {
			continue
		}
		s.units = append(s.units, u)
		names = append(names, r.name)
	}
	switch {
	case len(s.units) > 0:
	case guest:
		return Source{}, fmt.Errorf("%w: a hypervisor hides them (%s)", ErrNone, name)
	default:
		return Source{}, fmt.Errorf("%w (%s): no device for them in /%s", ErrNone, name, devices)
	}
	s.Name = strings.Join(names, " and ")
	if m.note != "" {
		s.Name += " (" + m.note + ")"
	}
	return s, nil
}

// members are the CPUs that a device is for; none where all of that kind are offline.
func members(root fs.FS, device string) ([]int, error) {
	text, err := kernfile.Read(root, devices+device+"/cpus")
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	cpus, err := cpulist.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("/%s%s/cpus: %w", devices, device, err)
	}
	return cpus, nil
}

// Events of Arm's PMUv3; the kernel shows those that the core has.
const (
	armCycles   = "cpu_cycles"
	armWaits    = "stall_backend_mem" // "last level of cache within the PE clock domain": what does not scale
	armAnyStall = "stall_backend"
)

// detectArm finds the devices of Arm cores, one for each kind.
func detectArm(root fs.FS) (s Source, found bool, err error) {
	dirs, _ := fs.Glob(root, devices+"armv*")
	slices.Sort(dirs)
	var names []string
	for _, dir := range dirs {
		device := path.Base(dir)
		kind, err := kernfile.Number(root, dir+"/type", 0, math.MaxUint32)
		if err != nil {
			continue
		}
		u := unit{}
		if u.cpus, err = members(root, device); err != nil {
			return Source{}, true, err
		}
		if len(u.cpus) == 0 {
			continue
		}
		if u.cycles, err = armEvent(root, dir, uint32(kind), armCycles); err != nil {
			return Source{}, true, err
		}
		name := ""
		for _, name = range []string{armWaits, armAnyStall, ""} {
			if name == "" {
				break
			}
			if u.waits, err = armEvent(root, dir, uint32(kind), name); err != nil || u.waits != nil {
				break
			}
		}
		if err != nil {
			return Source{}, true, err
		}
		s.units = append(s.units, u)
		names = append(names, armName(device, name))
	}
	s.Name = strings.Join(names, ", ")
	return s, len(s.units) > 0, nil
}

func armName(device, waits string) string {
	switch waits {
	case armWaits:
		return strings.ToUpper(waits) + " of " + device
	case armAnyStall:
		return strings.ToUpper(waits) + " of " + device + " (what waits for the core's own caches is in it)"
	}
	return "cycles of " + device + ", which counts no waits"
}

// armEvent is an event by the kernel's name, nil: the core does not have it.
func armEvent(root fs.FS, dir string, kind uint32, name string) (*event, error) {
	text, err := kernfile.Read(root, dir+"/events/"+name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	number, isNumber := strings.CutPrefix(strings.TrimSpace(text), "event=0x")
	config, err := strconv.ParseUint(number, 16, 32)
	if !isNumber || err != nil {
		return nil, fmt.Errorf("/%s/events/%s: %q is not an event", dir, name, kernfile.Clip(text))
	}
	return &event{kind, config}, nil
}

// processor is what /proc/cpuinfo says of the first CPU.
func processor(root fs.FS) (map[string]string, error) {
	text, err := kernfile.Read(root, "proc/cpuinfo")
	if err != nil {
		return nil, err
	}
	info := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			break // the next CPU
		}
		info[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	return info, nil
}

func atoi(text string) int {
	n, _ := strconv.ParseUint(text, 10, 16)
	return int(n)
}
