package report

import (
	"fmt"
	"strings"
)

// outcome is what became of one promise.
type outcome struct {
	metric  Metric
	bound   Bound
	measure bool    // there is a figure to judge
	reached bool    // it lies within the promise
	value   float64 // the row's median, or the ratio to Against's
	base    float64 // Against's median, 0 without
	median  float64 // the row's median
}

// outcomes judges every promise about a figure whose row has been run.
func (p part) outcomes() []outcome {
	present := map[string]bool{}
	for _, row := range p.rows {
		present[row] = true
	}
	var list []outcome
	for _, m := range p.metrics {
		for _, b := range m.Bounds {
			if present[b.Row] && (b.Against == "" || present[b.Against]) {
				list = append(list, p.outcome(m, b))
			}
		}
	}
	return list
}

func (p part) outcome(m Metric, b Bound) outcome {
	o := outcome{metric: m, bound: b}
	s := p.spread(b.Row, m.Name)
	if s.seeds == 0 {
		return o
	}
	o.median, o.value = s.median, s.median
	if b.Against != "" {
		base := p.spread(b.Against, m.Name)
		if base.seeds == 0 || base.median <= 0 {
			return o
		}
		o.base, o.value = base.median, s.median/base.median
	}
	o.measure = true
	o.reached = (b.AtMost == 0 || o.value <= b.AtMost) && (b.AtLeast == 0 || o.value >= b.AtLeast)
	return o
}

// word is the plain result of a promise.
func (o outcome) word() string {
	switch {
	case !o.measure:
		return "not measured"
	case o.reached:
		return "reached"
	}
	return "NOT REACHED"
}

// promise says what was promised.
func (o outcome) promise() string {
	limit := func(word string, v float64) string {
		if o.bound.Against != "" {
			return fmt.Sprintf("%s %g x %s", word, v, o.bound.Against)
		}
		return strings.TrimSpace(fmt.Sprintf("%s %g %s", word, v, unitOf(o.metric.Name)))
	}
	switch b := o.bound; {
	case b.AtMost != 0 && b.AtLeast != 0:
		return limit("at least", b.AtLeast) + ", " + limit("at most", b.AtMost)
	case b.AtMost != 0:
		return limit("at most", b.AtMost)
	default:
		return limit("at least", b.AtLeast)
	}
}

// measured says what was measured.
func (o outcome) measured() string {
	switch {
	case !o.measure:
		return "no figure"
	case o.bound.Against != "":
		return fmt.Sprintf("%s, %.3g x %s's %s", withUnit(o.median, o.metric.Name), o.value, o.bound.Against, figure(o.base))
	}
	return withUnit(o.median, o.metric.Name)
}
