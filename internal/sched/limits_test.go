package sched

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestCheckLimits(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, c := range map[string]struct {
		tree fstest.MapFS
		want string // "": nothing is limited
	}{
		"no tree":   {fstest.MapFS{}, ""},
		"unlimited": {fstest.MapFS{"a/cpu.max": file("max 100000\n"), "a/b/cpu.weight": file("100\n")}, ""},
		"one":       {fstest.MapFS{"a/cpu.max": file("max 100000\n"), "a/b/cpu.max": file("50000 100000\n")}, "1 cgroups have a limit, which rota does not keep: /a/b (50000 100000)"},
		"many": {fstest.MapFS{"a/cpu.max": file("1 2\n"), "b/cpu.max": file("1 2\n"), "c/cpu.max": file("1 2\n"), "d/cpu.max": file("1 2\n")},
			"4 cgroups have a limit, which rota does not keep: /a (1 2), /b (1 2), /c (1 2), ..."},
		"empty": {fstest.MapFS{"a/cpu.max": file("")}, ""},
	} {
		f := checkLimits(c.tree)
		if f.OK != (c.want == "") || c.want != "" && (f.Detail != c.want || f.Fix == "") || f.Fatal || f.Unfit {
			t.Errorf("%s: %+v, want %q", name, f, c.want)
		}
	}
	if got := oneLine("a\x1b[2J\nb"); strings.ContainsRune(got, '\x1b') || got != "a?[2J" {
		t.Errorf("%q", got)
	}
}
