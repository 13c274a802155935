package where

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/google/go-cmp/cmp"

	"rota/internal/identity"
)

// The object has what Go asks of it, in the layout that Go reads.
func TestObject(t *testing.T) {
	spec, err := readObject()
	if err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]ebpf.AttachType{
		"where_fentry": ebpf.AttachTraceFEntry, "where_kprobe": ebpf.AttachNone, "where_hardirq": ebpf.AttachTraceRawTp,
		"where_hardirq_end": ebpf.AttachTraceRawTp, "where_softirq": ebpf.AttachTraceRawTp, "where_softirq_end": ebpf.AttachTraceRawTp,
	} {
		if p := spec.Programs[name]; p == nil || p.AttachType != kind {
			t.Errorf("program %s: %v, want %v", name, p, kind)
		}
	}
	if len(spec.Programs) != 6 {
		t.Errorf("%d programs, want 6", len(spec.Programs))
	}
	for _, tt := range []struct {
		of     btf.Type
		mirror any
		layout string
	}{
		{spec.Maps["seen"].Key, seenKey{}, "started_ns@0 tid@8 cpu@12 context@16 source@20 "},
		{spec.Maps["seen"].Value, seenValue{}, "count@0 cgroup@8 comm@16 tgid@32 flags@36 uid@40 unused@44 "},
		{spec.Maps["recent"].Value, recent{}, "key@0 count@24 era@32 task@40 cgroups@48 cred@56 comm@64 "},
		{spec.Maps["serving"].Value, serving{}, "hardirq@0 softirq@4 lost@8 "},
	} {
		s, ok := btf.As[*btf.Struct](tt.of)
		if !ok || int(s.Size) != binary.Size(tt.mirror) {
			t.Fatalf("%v, want %d bytes", s, binary.Size(tt.mirror))
		}
		layout := ""
		for _, m := range s.Members {
			layout += fmt.Sprintf("%s@%d ", m.Name, m.Offset.Bytes())
		}
		if layout != tt.layout {
			t.Errorf("%s: %s, want %s", s.Name, layout, tt.layout)
		}
	}
}

func TestWithFix(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("load: %w", syscall.EPERM), "load: operation not permitted: run as root"},
		{&noTypesError{errors.New("no file")}, "kernel: does not describe its types: no file: boot a kernel that is built with CONFIG_DEBUG_INFO_BTF=y"},
		{fmt.Errorf("attach: %w", syscall.EINVAL), elsewhere},
		{fmt.Errorf("load: %w", ebpf.ErrNotSupported), "boot a kernel 6.1 or newer"},
		{errors.New("else"), "else"},
	} {
		if got := withFix(tt.err).Error(); !strings.HasSuffix(got, tt.want) {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
	for err, want := range map[error]string{
		btf.ErrNotFound: "the kernel's types do not have it", syscall.EINVAL: "the kernel refuses it", errors.New("else"): "else",
	} {
		if got := instead(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

const interruptsText = `           CPU0       CPU1
  1:          0          9   IO-APIC   1-edge      i8042
 24:        123        456  PCI-MSIX-0000:00:05.0   0-edge      virtio1-input.0, other one
 27:          5          6     GICv2  27 Level     arch_timer
 30:          5          6     odd     line
NMI:          0          0   Non-maskable interrupts
ERR:          0
`

func TestReadInterrupts(t *testing.T) {
	got := readInterrupts(fstest.MapFS{interruptsFile: {Data: []byte(interruptsText)}})
	want := map[int]string{1: "i8042", 24: "virtio1-input.0, other one", 27: "arch_timer", 30: "line"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestManyCPUs: a line has a count of each CPU.
func TestManyCPUs(t *testing.T) {
	head, line := "  ", "24:"
	for cpu := range 1024 {
		head += fmt.Sprintf(" %10s", "CPU"+strconv.Itoa(cpu))
		line += fmt.Sprintf(" %10d", cpu)
	}
	got := readInterrupts(fstest.MapFS{interruptsFile: {Data: []byte(head + "\n" + line + " PCI-MSI 5-edge eth0\n")}})
	if got[24] != "eth0" {
		t.Errorf("%v", got)
	}
}

func FuzzInterrupts(f *testing.F) {
	f.Add(interruptsText)
	f.Add("CPU0\n1: 5\n")
	f.Fuzz(func(t *testing.T, text string) {
		for number := range readInterrupts(fstest.MapFS{interruptsFile: {Data: []byte(text)}}) {
			if number < 0 {
				t.Errorf("number %d", number)
			}
		}
	})
}

func comm(name string) (b [16]byte) {
	copy(b[:], name)
	return b
}

func TestCollector(t *testing.T) {
	var c collector
	c.add(seenKey{Started: 5, TID: 9, CPU: 1}, seenValue{Count: 3, TGID: 8, Comm: comm("old")})
	c.add(seenKey{Started: 5, TID: 9, CPU: 0}, seenValue{Count: 4, TGID: 8, UID: 7, Comm: comm("new")})
	c.add(seenKey{Started: 6, TID: 9, CPU: 0}, seenValue{Count: 1, TGID: 9, Flags: kernelThread, Comm: comm("other")})
	c.add(seenKey{CPU: 0, Context: InSoftirq, SourcePlus1: 4}, seenValue{Count: 20})
	c.add(seenKey{CPU: 1, Context: InHardirq, SourcePlus1: 25}, seenValue{Count: 2})
	c.add(seenKey{CPU: 1, Context: InHardirq}, seenValue{Count: 10})
	w := &Watch{tasks: &tasks{proc: t.TempDir()}, names: map[int]string{24: "eth0"}}
	got := c.finish(w)
	want := Report{Count: 40, Executors: []Executor{
		{Context: InSoftirq, Number: 3, Interrupt: "NET_RX", Count: 20, CPUs: []CPUCount{{0, 20}}},
		{Context: InHardirq, Number: Unknown, Count: 10, CPUs: []CPUCount{{1, 10}}},
		{Number: Unknown, Task: Task{TID: 9, TGID: 8, UID: 7, Comm: "new"}, Count: 7, CPUs: []CPUCount{{0, 4}, {1, 3}}},
		{Context: InHardirq, Number: 24, Interrupt: "eth0", Count: 2, CPUs: []CPUCount{{1, 2}}},
		{Number: Unknown, Task: Task{TID: 9, TGID: 9, Comm: "other", KernelThread: true}, Count: 1, CPUs: []CPUCount{{0, 1}}},
	}}
	for i := range got.Executors {
		got.Executors[i].Task.Cgroup = "" // number 0 may be there or not
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]CPUCount{{0, 25}, {1, 15}}, got.CPUs()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]CgroupCount{{"", 8}}, got.Cgroups()); diff != "" {
		t.Error(diff)
	}
}

// A task is asked for its names only while it is the one that was seen.
func TestDescribe(t *testing.T) {
	dir := t.TempDir()
	stat := "9 (a) b) S 1 9 9 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 12345 999\n"
	for name, text := range map[string]string{"stat": stat, "comm": "fresh\n", "cgroup": "1:cpu:/old\n0::/apps/one\n"} {
		file := filepath.Join(dir, "9", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/usr/bin/app (deleted)", filepath.Join(dir, "9", "exe")); err != nil {
		t.Fatal(err)
	}
	known := &tasks{proc: dir, exes: map[taskID]string{}}
	const tick = 10_000_000 // ns: the unit of that file
	one, other := taskID{9, 12345*tick + 77}, taskID{9, 12346 * tick}
	seen := Task{TID: 9, Comm: "stale"}
	known.describe(other, &seen)
	if seen != (Task{TID: 9, Comm: "stale"}) {
		t.Errorf("of another task: %+v", seen)
	}
	known.describe(one, &seen)
	if want := (Task{TID: 9, Comm: "fresh", Cgroup: "/apps/one", Exe: "/usr/bin/app"}); seen != want {
		t.Errorf("%+v, want %+v", seen, want)
	}
	os.RemoveAll(filepath.Join(dir, "9"))
	ended := Task{TID: 9, Comm: "fresh"}
	if known.describe(one, &ended); ended.Exe != "/usr/bin/app" {
		t.Errorf("after its end: %+v", ended)
	}
}

func FuzzTask(f *testing.F) {
	f.Add("9 (a) b) S 1 9 9 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 12345 999\n", "0::/a\n")
	f.Add(")", "0::")
	f.Fuzz(func(t *testing.T, stat, cgroup string) {
		identity.StartedAt(stat, 0)
		if path := identity.Cgroup(cgroup); !strings.Contains(cgroup, path) {
			t.Errorf("%q of %q", path, cgroup)
		}
	})
}

func TestMatches(t *testing.T) {
	task := func(n uint64, task Task) Executor { return Executor{Task: task, Count: n} }
	report := Report{Executors: []Executor{
		task(50, Task{TID: 1, TGID: 1, Cgroup: "/apps/a", Exe: "/bin/a"}),
		task(10, Task{TID: 2, TGID: 1, Cgroup: "/apps/a/below"}),
		task(80, Task{TID: 3, TGID: 3, Cgroup: "/", Exe: "/bin/b"}),
		task(70, Task{TID: 4, TGID: 4, Cgroup: "/", Comm: "kworker/0:1", KernelThread: true}),
		task(2, Task{TID: 5, TGID: 5, Cgroup: "/rare"}),
		task(9, Task{TID: 6, TGID: 6, Cgroup: "/", Comm: "gone"}),
		task(9, Task{Comm: "swapper/0", KernelThread: true}),
		task(99, Task{TID: 7, TGID: 42, Cgroup: "/apps/self"}),
		{Context: InSoftirq, Count: 5000},
	}}
	matches, nameless := report.Matches(42)
	got := ""
	for _, m := range matches {
		got += fmt.Sprintf("%s %s %d of %d; ", m.Key, m.Value, m.Count, len(m.Tasks))
	}
	if want := "exe /bin/b 80 of 1; comm kworker/0:1 70 of 1; cgroup /apps/a 60 of 2; "; got != want || nameless != 18 {
		t.Errorf("%s and %d, want %s", got, nameless, want)
	}
}
