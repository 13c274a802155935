package report

import (
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
)

// Compare writes how the figures of b differ from those of a, row by row and
// kernel by kernel: two builds, two machines or two days. It returns an error
// when the files hold different scenarios or have no row in common.
func Compare(w io.Writer, a, b Results, info Info, style Style) error {
	if a.Scenario != b.Scenario {
		return fmt.Errorf("compare: scenarios %q and %q: must be the same", a.Scenario, b.Scenario)
	}
	t := &table{style: style}
	t.line("%s", t.paint(bold, a.Scenario+": first file, second file, second over first"))
	if a.CPUs != b.CPUs {
		t.line("the first file has %s, the second %s", counted(a.CPUs, "CPU"), counted(b.CPUs, "CPU"))
	}
	common := 0
	for _, first := range parts(a, info) {
		second, ok := partOf(parts(b, info), first.kernel)
		if !ok {
			t.line("kernel %s: only in the first file", printable(first.kernel))
			continue
		}
		for _, row := range first.rows {
			if slices.Contains(second.rows, row) {
				common++
				t.comparison(first, second, row)
			}
		}
	}
	if common == 0 {
		return fmt.Errorf("compare: no kernel and row in common; run both with the same --kernel and --sched")
	}
	_, err := io.WriteString(w, t.text.String())
	return err
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
	for _, m := range a.metrics {
		x, y := a.spread(row, m.Name), b.spread(row, m.Name)
		if x.seeds == 0 || y.seeds == 0 {
			continue
		}
		e := entry{m.Group + ": " + m.Label, withUnit(x.median, m.Name), withUnit(y.median, m.Name), ratio(y, x), ""}
		switch judge(m.Better, y, x) {
		case win:
			e.word = t.paint(green, "better")
		case loss:
			e.word = t.paint(red, "worse")
		case same:
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
