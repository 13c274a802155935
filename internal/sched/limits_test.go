package sched

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cilium/ebpf/btf"

	"rota/internal/btftest"
)

// opsOf is a kernel whose schedulers have these callbacks.
func opsOf(t *testing.T, callbacks ...string) *btf.Spec {
	t.Helper()
	ops := &btf.Struct{Name: "sched_ext_ops", Size: uint32(8 * len(callbacks))}
	for i, name := range callbacks {
		ops.Members = append(ops.Members, btf.Member{Name: name, Type: &btf.Pointer{Target: &btf.Void{}}, Offset: btf.Bits(64 * i)})
	}
	return btftest.Kernel(t, ops)
}

func TestCheckLimits(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	knows, old := opsOf(t, "enqueue", "cgroup_set_bandwidth"), opsOf(t, "enqueue", "cgroup_set_weight")
	crowd := fstest.MapFS{}
	for i := range maxGroups {
		crowd[fmt.Sprintf("c%d/cpu.weight", i)] = file("100\n")
	}
	one := fstest.MapFS{"a/cpu.max": file("max 100000\n"), "a/b/cpu.max": file("50000 100000\n")}
	for name, c := range map[string]struct {
		kernel *btf.Spec
		tree   fstest.MapFS
		ok     bool
		want   string
	}{
		"no tree":      {old, fstest.MapFS{}, true, "0, of which 0 have a cpu.max"},
		"unlimited":    {old, fstest.MapFS{"a/cpu.max": file("max 100000\n"), "a/b/cpu.weight": file("100\n")}, true, "2, of which 0 have a cpu.max"},
		"kept":         {knows, one, true, "2, of which 1 have a cpu.max"},
		"not told":     {old, one, false, "1 have a cpu.max, of which this kernel does not tell: /a/b (50000 100000)"},
		"types absent": {nil, one, false, "1 have a cpu.max, of which this kernel does not tell: /a/b (50000 100000)"},
		"many": {old, fstest.MapFS{"a/cpu.max": file("1 2\n"), "b/cpu.max": file("1 2\n"), "c/cpu.max": file("1 2\n"), "d/cpu.max": file("1 2\n")}, false,
			"4 have a cpu.max, of which this kernel does not tell: /a (1 2), /b (1 2), /c (1 2), ..."},
		"empty": {old, fstest.MapFS{"a/cpu.max": file("")}, true, "1, of which 0 have a cpu.max"},
		"crowd": {knows, crowd, false, "2048, of which rota knows 2047 apart: the cpu.weight and cpu.max of those made last do not count"},
	} {
		f := checkLimits(c.kernel, c.tree)
		if f.OK != c.ok || f.Detail != c.want || f.OK != (f.Fix == "") || f.Fatal || f.Unfit {
			t.Errorf("%s: %+v, want %q", name, f, c.want)
		}
	}
	if got := oneLine("a\x1b[2J\nb"); strings.ContainsRune(got, '\x1b') || got != "a?[2J" {
		t.Errorf("%q", got)
	}
}
