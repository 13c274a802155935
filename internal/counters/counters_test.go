package counters

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"
)

// tree is a machine's files.
func tree(files map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	for name, text := range files {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

func cpuinfo(vendor string, family, model int, flags string) string {
	one := fmt.Sprintf("processor\t: 0\nvendor_id\t: %s\ncpu family\t: %d\nmodel\t\t: %d\nmodel name\t: A Processor\nflags\t\t: fpu %s sse\n\n", vendor, family, model, flags)
	return one + strings.ReplaceAll(one, "processor\t: 0", "processor\t: 1")
}

const (
	intelName, amdName = "GenuineIntel", "AuthenticAMD"
	cpuDevice          = "sys/bus/event_source/devices/cpu/type"
)

// TestDetect: for each processor the event of the kernel's own tables, as perf encodes it.
func TestDetect(t *testing.T) {
	for name, test := range map[string]struct {
		files  map[string]string
		config []uint64 // of the waits, by unit
		kind   uint32
		says   string
	}{
		"Westmere":     {map[string]string{"proc/cpuinfo": cpuinfo(intelName, 6, 0x2c, ""), cpuDevice: "4\n"}, []uint64{0x2a2}, 4, "RESOURCE_STALLS.LOAD (what"},
		"Skylake":      {map[string]string{"proc/cpuinfo": cpuinfo(intelName, 6, 0x5e, ""), cpuDevice: "4\n"}, []uint64{0x060006a3}, 4, "STALLS_L3_MISS"},
		"Granite":      {map[string]string{"proc/cpuinfo": cpuinfo(intelName, 6, 0xad, ""), cpuDevice: "4\n"}, []uint64{0x060006a3}, 4, "STALLS_L3_MISS"},
		"Zen 3":        {map[string]string{"proc/cpuinfo": cpuinfo(amdName, 0x19, 0x21, ""), cpuDevice: "4\n"}, []uint64{0x0100005f}, 4, "ls_alloc_mab_count"},
		"Zen 4":        {map[string]string{"proc/cpuinfo": cpuinfo(amdName, 0x19, 0x61, ""), cpuDevice: "4\n"}, []uint64{0xa2d6}, 4, "load_not_complete"},
		"Zen 5":        {map[string]string{"proc/cpuinfo": cpuinfo(amdName, 0x1a, 0x44, ""), cpuDevice: "4\n"}, []uint64{0xa2d6}, 4, "load_not_complete"},
		"Raptor Lake":  {map[string]string{"proc/cpuinfo": cpuinfo(intelName, 6, 0xb7, ""), "sys/bus/event_source/devices/cpu_core/type": "4\n", "sys/bus/event_source/devices/cpu_core/cpus": "0-1\n", "sys/bus/event_source/devices/cpu_atom/type": "10\n", "sys/bus/event_source/devices/cpu_atom/cpus": "2-5\n"}, []uint64{0x060006a3}, 4, "on the small cores nothing"},
		"Lunar Lake":   {map[string]string{"proc/cpuinfo": cpuinfo(intelName, 6, 0xbd, ""), "sys/bus/event_source/devices/cpu_core/type": "4\n", "sys/bus/event_source/devices/cpu_core/cpus": "0-3\n", "sys/bus/event_source/devices/cpu_atom/type": "10\n", "sys/bus/event_source/devices/cpu_atom/cpus": "4-7\n"}, []uint64{0x846, 0x7834}, 4, "MEMORY_STALLS.MEM and MEM_BOUND"},
		"no small one": {map[string]string{"proc/cpuinfo": cpuinfo(intelName, 6, 0xbd, ""), "sys/bus/event_source/devices/cpu_core/type": "4\n", "sys/bus/event_source/devices/cpu_core/cpus": "0-3\n", "sys/bus/event_source/devices/cpu_atom/type": "10\n", "sys/bus/event_source/devices/cpu_atom/cpus": "\n"}, []uint64{0x846}, 4, "MEMORY_STALLS.MEM"},
		"Neoverse":     {armFiles("stall_backend_mem", "event=0x4005\n"), []uint64{0x4005}, 8, "STALL_BACKEND_MEM of armv8_pmuv3_0"},
		"an older Arm": {armFiles("stall_backend", "event=0x0024\n"), []uint64{0x24}, 8, "own caches"},
	} {
		s, err := Detect(tree(test.files))
		if err != nil || !strings.Contains(s.Name, test.says) || len(s.units) != len(test.config) {
			t.Errorf("%s: %+v, %v", name, s, err)
			continue
		}
		for i, u := range s.units {
			if u.waits.config != test.config[i] || u.cycles == nil {
				t.Errorf("%s: unit %d: %+v, want config %#x", name, i, u.waits, test.config[i])
			}
		}
		if s.units[0].waits.kind != test.kind {
			t.Errorf("%s: type %d, want %d", name, s.units[0].waits.kind, test.kind)
		}
	}
}

func armFiles(event, text string) map[string]string {
	dir := "sys/bus/event_source/devices/armv8_pmuv3_0/"
	files := map[string]string{dir + "type": "8\n", dir + "cpus": "0-3\n", dir + "events/cpu_cycles": "event=0x0011\n", "proc/cpuinfo": "processor\t: 0\nBogoMIPS\t: 125.00\n"}
	if event != "" {
		files[dir+"events/"+event] = text
	}
	return files
}

// TestDetectNone: why there is nothing, in words.
func TestDetectNone(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		says  string
	}{
		"a guest":         {map[string]string{"proc/cpuinfo": cpuinfo(intelName, 6, 0x5e, "hypervisor")}, "a hypervisor hides them (A Processor, family 6, model 94)"},
		"no driver":       {map[string]string{"proc/cpuinfo": cpuinfo(amdName, 0x19, 0x61, "")}, "no device for them"},
		"not known":       {map[string]string{"proc/cpuinfo": cpuinfo(intelName, 6, 0xff, ""), cpuDevice: "4"}, "that rota knows, of A Processor"},
		"another vendor":  {map[string]string{"proc/cpuinfo": cpuinfo("CentaurHauls", 7, 0x5b, ""), cpuDevice: "4"}, "that rota knows"},
		"no model at all": {map[string]string{"proc/cpuinfo": "processor : 0\nisa : rv64imafdc\n"}, "names no processor"},
	} {
		if s, err := Detect(tree(test.files)); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	if _, err := Detect(tree(nil)); err == nil {
		t.Error("without /proc/cpuinfo")
	}
	if _, err := Detect(tree(armFiles("stall_backend_mem", "config=7\n"))); err == nil || !strings.Contains(err.Error(), "stall_backend_mem") {
		t.Errorf("an event of another form: %v", err)
	}
	if s, err := Detect(tree(armFiles("", ""))); err != nil || s.units[0].waits != nil || s.units[0].cycles.config != 0x11 || !strings.Contains(s.Name, "counts no waits") {
		t.Errorf("an Arm core with cycles alone: %+v, %v", s, err)
	}
}

// TestEvent: one event by itself.
func TestEvent(t *testing.T) {
	root := tree(map[string]string{"sys/kernel/tracing/events/raw_syscalls/sys_enter/id": "412\n"})
	for name, want := range map[string]event{"raw_syscalls:sys_enter": {unix.PERF_TYPE_TRACEPOINT, 412}, "r20cb": {unix.PERF_TYPE_RAW, 0x20cb}} {
		if kind, config, err := Event(root, name); err != nil || (event{kind, config}) != want {
			t.Errorf("%s: %d, %d, %v", name, kind, config, err)
		}
	}
	if _, _, err := Event(root, "r1/r2"); err == nil || !strings.Contains(err.Error(), `event "r1/r2"`) {
		t.Error(err)
	}
}

// TestNamed: what an operator may name.
func TestNamed(t *testing.T) {
	root := tree(map[string]string{"sys/kernel/tracing/events/raw_syscalls/sys_enter/id": "412\n"})
	s, err := Named(root, "raw_syscalls:sys_enter", 2*time.Microsecond)
	if err != nil || *s.units[0].waits != (event{unix.PERF_TYPE_TRACEPOINT, 412}) || s.units[0].cycles != nil || s.Latency != 2*time.Microsecond {
		t.Errorf("%+v, %v", s, err)
	}
	s, err = Named(root, "r20cb", 0)
	if err != nil || *s.units[0].waits != (event{unix.PERF_TYPE_RAW, 0x20cb}) || s.units[0].cycles == nil {
		t.Errorf("%+v, %v", s, err)
	}
	s, err = Named(root, "r20cb/raw_syscalls:sys_enter", 0)
	if err != nil || *s.units[0].waits != (event{unix.PERF_TYPE_RAW, 0x20cb}) || *s.units[0].cycles != (event{unix.PERF_TYPE_TRACEPOINT, 412}) || !s.NoClock {
		t.Errorf("%+v, %v", s, err)
	}
	for _, name := range []string{"r1/", "/r1", "r1/r2/r3"} {
		if s, err := Named(root, name, 0); err == nil || !strings.Contains(err.Error(), "write rHEX") {
			t.Errorf("%q: %+v, %v", name, s, err)
		}
	}
	for name, says := range map[string]string{
		"": "write rHEX", "r": "write rHEX", "rxyz": "write rHEX", "cycles": "write rHEX", "..:y": "write rHEX", "a:..": "write rHEX",
		"sched:nothing": "no such tracepoint", ":": "write rHEX",
	} {
		if s, err := Named(root, name, 0); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			t.Errorf("%q: %+v, %v", name, s, err)
		}
	}
}

// TestOpen: each CPU's own events, CPUs without any left out, and all closed where one
// can't be opened.
func TestOpen(t *testing.T) {
	waits, cycles := event{4, 1}, event{0, 0}
	small := event{10, 2}
	s := Source{Name: "waits", units: []unit{{cpus: []int{0, 1}, waits: &waits, cycles: &cycles}, {cpus: []int{2}, waits: &small}}}
	fake := func(fault error) opener {
		return func(e event, cpu int) (int, error) {
			if cpu == 1 && fault != nil {
				return 0, fault
			}
			return 1<<20 + 100*cpu + int(e.kind), nil // beyond what is open
		}
	}
	set, err := s.open([]int{0, 1, 2, 3}, fake(nil))
	if err != nil || set.Waits[1] != 1<<20+104 || set.Cycles[1] != 1<<20+100 || set.Waits[2] != 1<<20+210 || len(set.Waits) != 3 || len(set.Cycles) != 2 {
		t.Fatalf("%+v, %v", set, err)
	}
	if got := set.CPUs(); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("CPUs %v", got)
	}
	for fault, says := range map[error]string{
		unix.ENOENT: "a hypervisor may hide it", unix.EOPNOTSUPP: "a hypervisor may hide it", unix.EACCES: "CAP_PERFMON",
		unix.EINVAL: "does not know",
	} {
		if _, err := s.open([]int{0, 1, 2}, fake(fault)); !errors.Is(err, fault) || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), "waits: ") {
			t.Errorf("%v: %v", fault, err)
		}
	}
	if set, err := s.open([]int{0, 1, 2}, fake(unix.ENODEV)); err != nil || !slices.Equal(set.CPUs(), []int{0, 2}) {
		t.Errorf("one that goes offline: %+v, %v", set, err)
	}
	if _, err := s.open([]int{3}, fake(nil)); !errors.Is(err, ErrNone) {
		t.Errorf("a CPU with nothing to count: %v", err)
	}
}

func FuzzDetect(f *testing.F) {
	f.Add(cpuinfo(intelName, 6, 0xbd, "hypervisor"), "4\n", "0-3\n", "event=0x11\n")
	f.Add("model", "x", "1-0", "event=0x")
	f.Fuzz(func(t *testing.T, info, kind, cpus, event string) {
		dir := "sys/bus/event_source/devices/armv8_pmuv3_0/"
		files := map[string]string{"proc/cpuinfo": info}
		for _, device := range []string{"cpu", "cpu_core", "cpu_atom"} {
			files["sys/bus/event_source/devices/"+device+"/type"], files["sys/bus/event_source/devices/"+device+"/cpus"] = kind, cpus
		}
		if s, err := Detect(tree(files)); (err == nil) != (len(s.units) > 0) {
			t.Errorf("%+v, %v", s, err)
		}
		files[dir+"type"], files[dir+"cpus"], files[dir+"events/cpu_cycles"] = kind, cpus, event
		if s, err := Detect(tree(files)); err == nil && s.Name == "" {
			t.Errorf("%+v", s)
		}
	})
}
