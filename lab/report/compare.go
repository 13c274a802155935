package report

import (
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
)

// The two files, as they are called.
const (
	firstFile  = "first file"
	secondFile = "second file"
)

// onlyIn says what a file has that the other has not.
func onlyIn(file string) string { return "only in the " + file }

// Compare writes how the figures of b differ from those of a, row by row and
// kernel by kernel: two builds, two machines or two days. It returns an error
// when the files hold different scenarios or have no row in common, and when
// runs failed in b that did not fail in a.
func Compare(w io.Writer, a, b Results, info Info, style Style) error {
	if a.Scenario != b.Scenario {
		return fmt.Errorf("compare: scenarios %q and %q: must be the same", a.Scenario, b.Scenario)
	}
	t := &table{style: style}
	t.line("%s", t.paint(bold, a.Scenario+": first file, second file, second over first"))
	if a.CPUs != b.CPUs {
		t.line("the first file has %s, the second %s", counted(a.CPUs, "CPU"), counted(b.CPUs, "CPU"))
	}
	firsts, seconds := parts(a, info), parts(b, info)
	common := 0
	for _, first := range firsts {
		if second, both := partOf(seconds, first.kernel); both {
			common += t.kernel(first, second)
		} else {
			t.alone(first, firstFile)
		}
	}
	for _, second := range seconds {
		if _, both := partOf(firsts, second.kernel); !both {
			t.alone(second, secondFile)
		}
	}
	if _, err := io.WriteString(w, t.text.String()); err != nil {
		return err
	}
	if common == 0 {
		return fmt.Errorf("compare: no kernel and row in common; run both with the same --kernel and --sched")
	}
	return newFailures(a, b, info)
}

// kernel writes what both files have of one kernel, and says how many rows that are.
func (t *table) kernel(first, second part) (common int) {
	for _, row := range first.rows {
		if slices.Contains(second.rows, row) {
			common++
			t.comparison(first, second, row)
		}
	}
	t.rowsAlone(first, second, firstFile)
	t.rowsAlone(second, first, secondFile)
	t.failures(first, firstFile)
	t.failures(second, secondFile)
	return common
}

// alone writes that a kernel is in one of the files only.
func (t *table) alone(p part, file string) {
	t.line("")
	t.line("kernel %s: %s", printable(p.kernel), onlyIn(file))
	t.failures(p, file)
}

func (t *table) rowsAlone(p, other part, file string) {
	for _, row := range p.rows {
		if !slices.Contains(other.rows, row) {
			t.line("")
			t.line("row %s, kernel %s: %s", printable(row), printable(p.kernel), onlyIn(file))
		}
	}
}

// failures writes which runs failed: figures of the others look as if nothing had happened.
func (t *table) failures(p part, file string) {
	var lines []string
	for _, run := range p.runs {
		if run.Exit != "" {
			lines = append(lines, endedEarly(run))
		}
	}
	if len(lines) == 0 {
		return
	}
	t.line("")
	t.line("%s", t.paint(red, fmt.Sprintf("kernel %s, %s: %d of %d runs failed", printable(p.kernel), file, len(lines), len(p.runs))))
	for _, line := range lines {
		t.line("  %s", printable(line))
	}
}

// newFailures is an error when runs failed in b that did not fail in a.
func newFailures(a, b Results, info Info) error {
	type place struct {
		row, kernel string
		seed        int64
	}
	placeOf := func(r Results, run Run) place {
		kernel := run.Kernel
		switch {
		case info.OwnKernel[run.Row]: // there is one, of whatever release
			kernel = ""
		case kernel == "":
			kernel = r.Kernel
		}
		return place{run.Row, kernel, run.Seed}
	}
	known := map[place]bool{}
	for _, run := range a.Runs {
		known[placeOf(a, run)] = known[placeOf(a, run)] || run.Exit != ""
	}
	var failed []string
	for _, run := range b.Runs {
		if run.Exit != "" && !known[placeOf(b, run)] {
			failed = append(failed, printable(endedEarly(run)))
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("compare: %s failed in the second file and not in the first; the first of them: %.200s; run it again with --console DIR to see why",
		counted(len(failed), "run"), failed[0])
}

func partOf(list []part, kernel string) (part, bool) {
	for _, p := range list {
		if p.kernel == kernel {
			return p, true
		}
	}
	return part{}, false
}

// comparison writes one row of both files, one line per figure.
func (t *table) comparison(a, b part, row string) {
	t.line("")
	t.line("%s", t.paint(bold, fmt.Sprintf("row %s, kernel %s", printable(row), printable(a.kernel))))
	type entry struct{ label, first, second, ratio, word string }
	var entries []entry
	var widths [4]int
	for _, m := range allMetrics(a, b) {
		x, y := a.spread(row, m.Name), b.spread(row, m.Name)
		if x.seeds == 0 && y.seeds == 0 {
			continue
		}
		e := entry{m.Group + ": " + m.Label, withUnit(x.median, m.Name), withUnit(y.median, m.Name), ratio(y, x), ""}
		switch verdict := judge(m.Better, y, x); {
		case y.seeds == 0:
			e.second, e.word = "-", onlyIn(firstFile)
		case x.seeds == 0:
			e.first, e.word = "-", onlyIn(secondFile)
		case verdict == win:
			e.word = t.paint(green, "better")
		case verdict == loss:
			e.word = t.paint(red, "worse")
		case verdict == same:
			e.word = "same"
		}
		entries = append(entries, e)
		for i, text := range []string{e.label, e.first, e.second, e.ratio} {
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	for _, e := range entries {
		t.line("  %s  %s  %s  %s  %s", pad(e.label, widths[0]), padLeft(e.first, widths[1]),
			padLeft(e.second, widths[2]), padLeft(e.ratio, widths[3]), e.word)
	}
}

// allMetrics are the figures of a, then those that only b has.
func allMetrics(a, b part) []Metric {
	list := slices.Clone(a.metrics)
	for _, m := range b.metrics {
		if !slices.ContainsFunc(a.metrics, func(other Metric) bool { return other.Name == m.Name }) {
			list = append(list, m)
		}
	}
	return list
}
