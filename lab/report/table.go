package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Style says how a table may look.
type Style struct {
	// Color allows ANSI colours; set it only when w is a terminal.
	Color bool
}

// Table writes the results for a reader at a terminal: one table per kernel,
// each figure with its ratio to the kernel's own scheduler and the range over
// the seeds, and who was the worst at it; then what became of the promises, then
// what the lab can't say.
func Table(w io.Writer, r Results, info Info, style Style) error {
	t := &table{style: style}
	title := info.Title
	if title == "" {
		title = printable(r.Scenario)
	}
	t.line("%s", t.paint(bold, title))
	if info.Question != "" {
		t.line("%s", info.Question)
	}
	for _, p := range parts(r, info) {
		t.line("")
		t.part(r, p)
	}
	t.line("")
	for _, caveat := range Caveats() {
		t.line("%s", t.paint(dim, caveat))
	}
	if info.Command != "" {
		t.line("repeat with: %s", printable(info.Command))
	}
	_, err := io.WriteString(w, t.text.String())
	return err
}

// ANSI codes of the few colours that we use.
const (
	bold  = "1"
	dim   = "2"
	green = "32"
	red   = "31"
)

type table struct {
	style Style
	text  strings.Builder
}

func (t *table) line(format string, args ...any) {
	fmt.Fprintf(&t.text, format, args...)
	t.text.WriteByte('\n')
}

func (t *table) paint(code, text string) string {
	if !t.style.Color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// cell is one place of the table: a figure and what it is compared to.
type cell struct {
	value, comparison, span string
	verdict                 verdict
}

func cellOf(p part, m Metric, row string) cell {
	s := p.spread(row, m.Name)
	if s.seeds == 0 {
		return cell{value: "-"}
	}
	c := cell{value: figure(s.median), span: rangeOf(s)}
	if row != Baseline {
		base := p.spread(Baseline, m.Name)
		c.verdict = judge(m.Better, s, base)
		c.comparison = strings.TrimSpace(ratio(s, base) + " " + c.verdict.String())
	}
	return c
}

// part writes one kernel's table.
func (t *table) part(r Results, p part) {
	t.line("%s", t.paint(bold, heading(r, p)))
	left := 24
	for _, m := range p.metrics {
		left = max(left, utf8.RuneCountInString(metricLabel(m))+2)
	}
	left = min(left, 72)
	widths := t.widths(p)
	head := pad("", left)
	for i, row := range p.rows {
		head += "  " + padLeft(printable(row), widths[i])
	}
	if p.tallies() != nil {
		head += "  worst"
	}
	t.line("%s", strings.TrimRight(head, " "))
	t.ownKernels(p, left, widths)
	group := ""
	for _, m := range p.metrics {
		if m.Group != group {
			group = m.Group
			t.line("%s", t.paint(bold, group))
		}
		t.metric(p, m, left, widths)
	}
	t.ranks(p)
	t.promises(p)
	for _, other := range p.others() {
		t.line("  %s", t.paint(dim, other))
	}
	for _, remark := range p.remarks() {
		t.line("  %s", printable(remark))
	}
}

// ownKernels says below their names on which kernels rows ran that were not
// the heading's.
func (t *table) ownKernels(p part, left int, widths []int) {
	if len(p.own) == 0 {
		return
	}
	line := pad("  on a kernel of its own", left)
	for i, row := range p.rows {
		line += "  " + padLeft(printable(shortKernel(p.own[row])), widths[i])
	}
	t.line("%s", t.paint(dim, strings.TrimRight(line, " ")))
}

// metricLabel is the left column: name, unit, and which way is better.
func metricLabel(m Metric) string {
	label := m.Label
	if unit := unitOf(m.Name); unit != "" {
		label += ", " + unit
	}
	if m.Better > 0 {
		label += " (more is better)"
	}
	return label
}

func (t *table) widths(p part) []int {
	widths := make([]int, len(p.rows))
	for i, row := range p.rows {
		widths[i] = max(utf8.RuneCountInString(printable(row)), utf8.RuneCountInString(printable(shortKernel(p.own[row]))), 8)
		for _, m := range p.metrics {
			c := cellOf(p, m, row)
			widths[i] = max(widths[i], len(c.plain()), len(c.span))
		}
	}
	return widths
}

// plain is the cell's first line without colour.
func (c cell) plain() string { return strings.TrimSpace(c.value + "  " + c.comparison) }

func (t *table) metric(p part, m Metric, left int, widths []int) {
	first, second := pad("  "+metricLabel(m), left), pad("", left)
	spans := false
	for i, row := range p.rows {
		c := cellOf(p, m, row)
		text := padLeft(c.plain(), widths[i])
		switch c.verdict {
		case win:
			text = t.paint(green, text)
		case loss:
			text = t.paint(red, text)
		}
		first += "  " + text
		second += "  " + padLeft(c.span, widths[i])
		spans = spans || c.span != ""
	}
	if worst := p.rank(m).worstText(); worst != "" {
		first += "  " + t.paint(red, worst)
	}
	t.line("%s", strings.TrimRight(first, " "))
	if spans {
		t.line("%s", t.paint(dim, strings.TrimRight(second, " ")))
	}
}

// promises writes what was promised and what became of it.
func (t *table) promises(p part) {
	list := p.outcomes()
	if len(list) == 0 {
		return
	}
	reached := 0
	for _, o := range list {
		if o.reached {
			reached++
		}
	}
	t.line("%s", t.paint(bold, fmt.Sprintf("promised: %d of %d reached", reached, len(list))))
	for _, o := range list {
		word := pad(o.word(), 12)
		switch {
		case o.reached:
			word = t.paint(green, word)
		case o.measure:
			word = t.paint(red, word)
		}
		t.line("  %s  %s: %s, %s: %s (%s)", word, o.bound.Row, o.metric.Group, o.metric.Label, o.measured(), o.promise())
	}
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

func padLeft(text string, width int) string {
	return strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text))) + text
}
