package sched

import (
	"bytes"
	"encoding/binary"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// A field is one member of a struct, on either side.
type field struct {
	name         string
	offset, size int
}

// inC is a Go name as bpf/rota.h spells it: rotaCpuStats, rota_cpu_stats.
func inC(name string) string {
	var c strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			c.WriteByte('_')
		}
		c.WriteRune(unicode.ToLower(r))
	}
	return c.String()
}

// goFields lists the members in the layout that encoding/binary writes, which
// is the one that reaches the kernel: it knows no padding.
func goFields(mirror any) (fields []field) {
	typ, offset := reflect.TypeOf(mirror), 0
	for i := range typ.NumField() {
		size := binary.Size(reflect.Zero(typ.Field(i).Type).Interface())
		fields = append(fields, field{inC(typ.Field(i).Name), offset, size})
		offset += size
	}
	return fields
}

func objectFields(t *testing.T, typ *btf.Struct) (fields []field) {
	t.Helper()
	for _, member := range typ.Members {
		size, err := btf.Sizeof(member.Type)
		if err != nil {
			t.Fatalf("%s.%s: %v", typ.Name, member.Name, err)
		}
		fields = append(fields, field{member.Name, int(member.Offset.Bytes()), size})
	}
	return fields
}

func object(t testing.TB) *ebpf.CollectionSpec {
	t.Helper()
	spec, err := readObject()
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// header is the text of a file of bpf/.
func header(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("../../bpf/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestMirror(t *testing.T) {
	spec := object(t)
	mirrors := []any{
		rotaTopology{}, rotaKnobs{}, rotaClass{}, rotaClassStats{}, rotaCpuStats{},
		rotaSetClass{}, rotaExplain{}, rotaExit{}, rotaKnown{}, rotaKnowing{},
	}
	for _, mirror := range mirrors {
		name := inC(reflect.TypeOf(mirror).Name())
		t.Run(name, func(t *testing.T) {
			var typ *btf.Struct
			if err := spec.Types.TypeByName(name, &typ); err != nil {
				t.Fatal(err)
			}
			if got, want := goFields(mirror), objectFields(t, typ); !reflect.DeepEqual(got, want) {
				t.Errorf("Go has\n%v, the object\n%v", got, want)
			}
			if got := binary.Size(mirror); got != int(typ.Size) {
				t.Errorf("%d bytes in Go, %d in the object", got, typ.Size)
			}
		})
	}
}

// The object does not describe rota_event: the compiler leaves out what only
// local pointers are about. The header says the same.
func TestMirrorEvent(t *testing.T) {
	body := regexp.MustCompile(`(?s)\nstruct rota_event \{\n(.*?)\n\};`).FindStringSubmatch(header(t, "rota.h"))
	if body == nil {
		t.Fatal("rota.h: no struct rota_event")
	}
	var want []field
	offset := 0
	for _, m := range regexp.MustCompile(`(?m)^\s+__[us](8|16|32|64) (\w+);`).FindAllStringSubmatch(body[1], -1) {
		bits, _ := strconv.Atoi(m[1])
		if offset%(bits/8) != 0 {
			t.Errorf("%s: the compiler puts padding before it", m[2])
		}
		want = append(want, field{m[2], offset, bits / 8})
		offset += bits / 8
	}
	if got := goFields(rotaEvent{}); !reflect.DeepEqual(got, want) {
		t.Errorf("Go has\n%v, rota.h\n%v", got, want)
	}
	if len(want) != strings.Count(body[1], ";\n")+1 {
		t.Errorf("understood only %v of:\n%s", want, body[1])
	}
}

// elements is how many elements a variable of the object has.
func elements(t *testing.T, spec *ebpf.CollectionSpec, name string) int {
	t.Helper()
	variable, ok := spec.Variables[name]
	if !ok {
		t.Fatalf("the object has no variable %q", name)
	}
	array, ok := btf.As[*btf.Array](variable.Type.Type)
	if !ok {
		t.Fatalf("variable %q is no array: %v", name, variable.Type)
	}
	return int(array.Nelems)
}

func TestMirrorLimits(t *testing.T) {
	spec := object(t)
	for name, want := range map[string]int{
		"llc_of": maxCPUs, "llc_place": maxCPUs, "llc_cpus": maxCPUs, "cpu_stats": maxCPUs, "cpu_ctxs": maxCPUs,
		"llc_first": maxLLCs, "llc_size": maxLLCs, "llc_ctxs": maxLLCs, "classes": MaxClasses,
	} {
		if got := elements(t, spec, name); got != want {
			t.Errorf("%s has %d elements in the object, %d in Go", name, got, want)
		}
	}
	if got := spec.Maps["class_stats"].MaxEntries; got != MaxClasses {
		t.Errorf("class_stats has %d entries in the object, %d in Go", got, MaxClasses)
	}
	if got, want := int(spec.Maps["class_stats"].ValueSize), binary.Size(rotaClassStats{}); got != want {
		t.Errorf("class_stats has values of %d bytes in the object, %d in Go", got, want)
	}
}

// What is a number in the headers, and in no type of the object.
func TestMirrorConstants(t *testing.T) {
	tests := []struct {
		file, name string
		want       uint64
	}{
		{"rota.h", "ROTA_MAX_CPUS", maxCPUs},
		{"rota.h", "ROTA_MAX_GROUPS", maxGroups},
		{"rota.h", "ROTA_MAX_LLCS", maxLLCs},
		{"rota.h", "ROTA_MAX_CLASSES", MaxClasses},
		{"rota.h", "ROTA_WAIT_BUCKETS", waitBuckets},
		{"rota.h", "ROTA_EXIT_TEXT", exitText},
		{"rota.h", "ROTA_EXIT_DUMP", exitDump},
		{"rota.h", "ROTA_PRIORITY", uint64(Priority)},
		{"rota.h", "ROTA_FAIR", uint64(Fair)},
		{"rota.h", "ROTA_BACKGROUND", uint64(Background)},
		{"rota.h", "ROTA_EVENT_EXEC", uint64(EventExec)},
		{"rota.h", "ROTA_EVENT_COMM", uint64(EventComm)},
		{"rota.h", "ROTA_EVENT_CGROUP", uint64(EventCgroup)},
		{"rota.h", "ROTA_EVENT_USER", uint64(EventUser)},
		{"rota.h", "ROTA_EVENT_FORK", uint64(EventFork)},
		{"rota.h", "ROTA_EVENT_LOST", uint64(EventLost)},
		{"rota.h", "ROTA_EVENT_EXIT", eventExit},
		{"rota.h", "ROTA_RUN_TO_PARITY", fairRunToParity},
		{"rota.h", "ROTA_PREEMPT_SHORT", fairPreemptShort},
		{"rota.h", "ROTA_ELIGIBILITY_CHECK", fairEligibilityCheck},
		{"rota.h", "ROTA_BRIEF_REQUESTS", fairBriefRequests},
		{"rota.h", "ROTA_LAZY_PREEMPTION", fairLazyPreemption},
		{"rota.h", "ROTA_HAND_OVER", fairHandOver},
		{"priority.bpf.h", "PRIORITY_WINDOW_NS", uint64(window / time.Nanosecond)},
	}
	for _, test := range tests {
		defined := regexp.MustCompile(`(?m)^(?:#define\s+` + test.name + `\s+|\s+` + test.name + ` = )(\d+)(?:ULL)?\b`)
		m := defined.FindStringSubmatch(header(t, test.file))
		if m == nil {
			t.Errorf("%s: no %s", test.file, test.name)
			continue
		}
		if got, err := strconv.ParseUint(m[1], 10, 64); err != nil || got != test.want {
			t.Errorf("%s: %s is %s, in Go %d", test.file, test.name, m[1], test.want)
		}
	}
}

// What the loader looks up by name is there, and takes what it is given.
func TestPrepare(t *testing.T) {
	spec := object(t)
	params := Params{
		Slice: 3 * time.Millisecond, StarvationBound: time.Second, Watch: true,
		Classes: []Class{{Name: "default", Tier: Fair, Weight: 100}, {Name: "game", Tier: Priority, Weight: 7, Slice: time.Millisecond, Cap: 900}},
	}
	s := &Scheduler{params: params, topology: topology{
		cpus: 3, llcOf: []uint32{0, 1, 0}, order: []uint32{0, 2, 1}, first: []uint32{0, 2}, size: []uint32{2, 1},
	}}
	if err := s.prepare(spec); err != nil {
		t.Fatal(err)
	}
	wants := map[string]any{
		"topology":        rotaTopology{NrCpus: 3, NrLlcs: 2},
		"llc_of":          []uint32{0, 1, 0, 0},
		"llc_place":       []uint32{0, 0, 1, 0},
		"llc_cpus":        []uint32{0, 2, 1, 0},
		"llc_first":       []uint32{0, 2, 0},
		"llc_size":        []uint32{2, 1, 0},
		"priority_cap_ns": uint64(90_000_000),
		"knobs":           rotaKnobs{SliceNs: 3_000_000, StarvationNs: 1_000_000_000, NrClasses: 2, Watch: 1, Tiers: 3},
		"classes":         []rotaClass{{Weight: 100, Tier: 1}, {SliceNs: 1_000_000, CapNs: 90_000_000, Weight: 7}, {}},
	}
	for name, want := range wants {
		data, err := binary.Append(nil, binary.NativeEndian, want)
		if err != nil {
			t.Fatal(err)
		}
		if got := spec.Variables[name].Value; !bytes.HasPrefix(got, data) {
			t.Errorf("%s begins with %v, want %v", name, got[:len(data)], data)
		}
	}
	for _, name := range []string{"rota_set_class", "rota_explain_task", "rota_reconfigured", "rota_debug_fault", "rota_on_exec", "rota_on_rename"} {
		if spec.Programs[name] == nil {
			t.Errorf("the object has no program %q", name)
		}
	}
	for name, want := range map[string]any{"events_lost": uint64(0), "cpus_came": uint32(0), "exit_record": rotaExit{}} {
		if got := spec.Variables[name]; got == nil || int(got.Size()) != binary.Size(want) {
			t.Errorf("variable %q is %v, want %d bytes", name, got, binary.Size(want))
		}
	}
	if spec.Maps["events"] == nil || spec.Maps["events"].Type != ebpf.RingBuf {
		t.Error("the object has no ring buffer \"events\"")
	}
}
