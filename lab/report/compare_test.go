package report

import (
	"bytes"
	"strings"
	"testing"
)

// compared is what Compare says of two small files, and its error.
func compared(a, b []Run) (string, string) {
	var out bytes.Buffer
	file := func(runs []Run) Results { return Results{Scenario: "wake", Kernel: "6.18", CPUs: 4, Runs: runs} }
	info := Info{OwnKernel: map[string]bool{"cfs": true}}
	if err := Compare(&out, file(a), file(b), info, Style{}); err != nil {
		return out.String(), err.Error()
	}
	return out.String(), ""
}

// ran is a run with one figure, called name.
func ran(row, kernel string, seed int64, name string) Run {
	return Run{Row: row, Kernel: kernel, Seed: seed, Metrics: map[string]float64{name: 1}}
}

func failed(run Run, why string) Run {
	run.Exit = why
	return run
}

// A run that failed is told of, and fails the comparison unless it failed before, too.
func TestCompareTellsOfFailures(t *testing.T) {
	good, other := ran("rota", "6.18", 1, "a_us"), ran("rota", "6.18", 2, "a_us")
	own, newer := ran("cfs", "6.1.1", 1, "a_us"), ran("cfs", "6.1.2", 1, "a_us")
	const fault = "compare: 1 run failed in the second file and not in the first; the first of them: row rota, seed 1: ended early: stall"
	for name, c := range map[string]struct {
		a, b        []Run
		text, fault string
	}{
		"none":        {[]Run{good}, []Run{good}, "", ""},
		"in both":     {[]Run{failed(good, "stall")}, []Run{failed(good, "stall"), other}, "kernel 6.18, second file: 1 of 2 runs failed\n  row rota, seed 1: ended early: stall\n", ""},
		"in the old":  {[]Run{failed(good, "stall")}, []Run{good}, "kernel 6.18, first file: 1 of 1 runs failed\n", ""},
		"in the new":  {[]Run{good}, []Run{failed(good, "st\x1ball")}, "kernel 6.18, second file: 1 of 1 runs failed\n", fault},
		"other seed":  {[]Run{good, failed(other, "x")}, []Run{failed(good, "stall"), failed(other, "x")}, "2 of 2 runs failed", fault},
		"own kernel":  {[]Run{good, failed(own, "x")}, []Run{good, failed(newer, "x")}, "1 of 2 runs failed", ""},
		"only in new": {[]Run{good}, []Run{good, failed(ran("rota", "7.2", 1, "a_us"), "stall")}, "kernel 7.2, second file: 1 of 1 runs failed\n", fault},
	} {
		text, err := compared(c.a, c.b)
		if !strings.Contains(text, c.text) || (c.fault == "") != (err == "") || !strings.HasPrefix(err, c.fault) {
			t.Errorf("%s: error %q, want %q:\n%s", name, err, c.fault, text)
		}
		if c.text == "" && strings.Contains(text, "failed") || strings.Contains(text, "\x1b") {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// What is in one of the files only is named.
func TestCompareNamesWhatIsAlone(t *testing.T) {
	text, err := compared(
		[]Run{ran("rota", "6.18", 1, "gone_us"), ran("old", "6.18", 1, "a_us"), ran("rota", "6.1", 1, "a_us")},
		[]Run{ran("rota", "6.18", 1, "new_us"), ran("new", "6.18", 1, "a_us"), ran("rota", "7.2", 1, "a_us")})
	for _, want := range []string{
		"other figures: gone  1 us     -    only in the first file\n",
		"other figures: new      -  1 us    only in the second file\n",
		"row old, kernel 6.18: only in the first file\n", "row new, kernel 6.18: only in the second file\n",
		"kernel 6.1: only in the first file\n", "kernel 7.2: only in the second file\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	if err != "" {
		t.Error(err)
	}
	text, err = compared([]Run{ran("rota", "6.1", 1, "a_us")}, []Run{ran("rota", "7.2", 1, "a_us")})
	if !strings.Contains(text, "kernel 7.2: only in the second file\n") || !strings.Contains(err, "no kernel and row in common") {
		t.Errorf("%s: %s", err, text)
	}
}
