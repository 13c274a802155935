package report

import (
	"fmt"
	"strings"
)

// ranking names the rows that are the best and the worst at one figure.
type ranking struct{ best, worst []string }

// rank compares all rows that have the figure, whoever they are. A row is as good
// as the best when judge finds no difference, and likewise as bad as the worst; a
// row that cannot be told from either is neither. Where best and worst are the
// same, nobody is named.
func (p part) rank(m Metric) ranking {
	var r ranking
	rows := p.rankedRows(m)
	if len(rows) == 0 {
		return r
	}
	top, bottom := p.spread(rows[0], m.Name), p.spread(rows[0], m.Name)
	for _, row := range rows[1:] {
		s := p.spread(row, m.Name)
		if (s.median-top.median)*float64(m.Better) > 0 {
			top = s
		}
		if (s.median-bottom.median)*float64(m.Better) < 0 {
			bottom = s
		}
	}
	for _, row := range rows {
		s := p.spread(row, m.Name)
		behind, ahead := judge(m.Better, s, top) == loss, judge(m.Better, s, bottom) == win
		switch {
		case ahead && !behind:
			r.best = append(r.best, row)
		case behind && !ahead:
			r.worst = append(r.worst, row)
		}
	}
	return r
}

// rankedRows are the rows that can be the best or the worst at a figure, none
// when neither way is better or there is nobody to compare with.
func (p part) rankedRows(m Metric) []string {
	if m.Better == 0 {
		return nil
	}
	var rows []string
	for _, row := range p.rows {
		if p.spread(row, m.Name).seeds > 0 {
			rows = append(rows, row)
		}
	}
	if len(rows) < 2 {
		return nil
	}
	return rows
}

// tally counts for one row how often it was the best and the worst, of the
// figures that it was compared in.
type tally struct {
	Row                  string
	Best, Worst, Figures int
}

// tallies counts over all figures; nil when none is ranked.
func (p part) tallies() []tally {
	list := make([]tally, len(p.rows))
	index := map[string]*tally{}
	for i, row := range p.rows {
		list[i].Row = row
		index[row] = &list[i]
	}
	ranked := false
	for _, m := range p.metrics {
		for _, row := range p.rankedRows(m) {
			index[row].Figures++
			ranked = true
		}
		r := p.rank(m)
		for _, row := range r.best {
			index[row].Best++
		}
		for _, row := range r.worst {
			index[row].Worst++
		}
	}
	if !ranked {
		return nil
	}
	return list
}

// rankRule says in a sentence what counts as the best and the worst.
const rankRule = "Rows that cannot be told apart (by 2 %, or ranges over the seeds that overlap) share a place; where all are alike nobody is named."

// worstText is the text of the column that names the losers.
func (r ranking) worstText() string { return printable(strings.Join(r.worst, ", ")) }

// ranks writes how often each row was the best and the worst.
func (t *table) ranks(p part) {
	list := p.tallies()
	if list == nil {
		return
	}
	width := 0
	for _, l := range list {
		width = max(width, len(printable(l.Row)))
	}
	t.line("%s", t.paint(bold, "best and worst"))
	for _, l := range list {
		t.line("  %s  best %2d, worst %2d of %s", pad(printable(l.Row), width), l.Best, l.Worst, counted(l.Figures, "figure"))
	}
	t.line("  %s", t.paint(dim, rankRule))
}

// others says what rows are that are neither the kernel nor rota.
func (p part) others() []string {
	var lines []string
	seen := map[string]bool{}
	for _, run := range p.runs {
		if run.Scheduler != "" && run.Scheduler != Baseline && run.Scheduler != "rota" && !seen[run.Row] {
			seen[run.Row] = true
			lines = append(lines, fmt.Sprintf("%s: %s", printable(run.Row), printable(run.Scheduler)))
		}
	}
	return lines
}
