package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ranked is a part with one figure, x_us, of rows a, b, c ...; each row has one
// value per seed, none when it has no figure.
func ranked(values ...[]float64) part {
	p := part{}
	for i, list := range values {
		row := string(rune('a' + i))
		p.rows = append(p.rows, row)
		for seed, v := range list {
			p.runs = append(p.runs, Run{Row: row, Seed: int64(seed), Metrics: map[string]float64{"x_us": v}})
		}
	}
	p.metrics = []Metric{{Name: "x_us", Better: -1}}
	return p
}

func TestRank(t *testing.T) {
	one := func(values ...float64) part {
		lists := make([][]float64, len(values))
		for i, v := range values {
			lists[i] = []float64{v}
		}
		return ranked(lists...)
	}
	for name, c := range map[string]struct {
		p           part
		better      int
		best, worst string
	}{
		"less is better":    {one(1, 2, 3), -1, "a", "c"},
		"more is better":    {one(1, 2, 3), +1, "c", "a"},
		"neither is better": {one(1, 2, 3), 0, "", ""},
		"two rows":          {one(1, 3), -1, "a", "b"},
		"one row":           {one(1), -1, "", ""},
		"all alike":         {one(100, 101, 102), -1, "", ""},
		"all zero":          {one(0, 0, 0), -1, "", ""},
		"two share a place": {one(100, 101, 200, 201), -1, "a, b", "c, d"},
		"zero is best":      {one(0, 5, 9), -1, "a", "c"},
		"one has no figure": {ranked([]float64{1}, nil, []float64{3}), -1, "a", "c"},
		"only one has one":  {ranked([]float64{1}, nil, nil), -1, "", ""},
		"ranges overlap":    {ranked([]float64{10, 20}, []float64{12, 40}, []float64{11, 30}), -1, "", ""},
		"one range apart":   {ranked([]float64{10, 20}, []float64{12, 18}, []float64{30, 40}), -1, "a, b", "c"},
		"between the two":   {ranked([]float64{10, 20}, []float64{15, 35}, []float64{30, 40}), -1, "a", "c"},
	} {
		c.p.metrics[0].Better = c.better
		r := c.p.rank(c.p.metrics[0])
		if best, worst := strings.Join(r.best, ", "), r.worstText(); best != c.best || worst != c.worst {
			t.Errorf("%s: best %q, worst %q; want %q, %q", name, best, worst, c.best, c.worst)
		}
	}
}

func TestTallies(t *testing.T) {
	p := ranked([]float64{1}, []float64{2}, nil)
	p.runs = append(p.runs, Run{Row: "c", Metrics: map[string]float64{"y_ops": 5}}, Run{Row: "a", Metrics: map[string]float64{"y_ops": 6, "alone_us": 1}})
	p.metrics = append(p.metrics, Metric{Name: "y_ops", Better: 1}, Metric{Name: "alone_us", Better: -1})
	want := []tally{{"a", 2, 0, 2}, {"b", 0, 1, 1}, {"c", 0, 1, 1}}
	if diff := cmp.Diff(want, p.tallies()); diff != "" {
		t.Error(diff)
	}
	if list := ranked([]float64{1}).tallies(); list != nil {
		t.Errorf("one row: %v", list)
	}
}

// The loser is shown whoever it is, rota too; one alone is none.
func TestLoserIsShown(t *testing.T) {
	r, info := sample()
	for i := range r.Runs {
		if r.Runs[i].Row == "rota" {
			r.Runs[i].Metrics["ops"] /= 2
		}
	}
	var text, page bytes.Buffer
	if err := Table(&text, r, info, Style{}); err != nil {
		t.Fatal(err)
	}
	if err := Page(&page, r, info); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"scx_peer  worst\n", "loss  scx_peer\n", "same  rota\n", "rota          best  0, worst  1 of 3 figures", "scx_peer: /usr/sbin/scx_peer"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, text.String())
		}
	}
	if got := strings.Count(page.String(), `<span class="worst">worst</span>`); got != 3 {
		t.Errorf("the page marks %d losers, want 3", got)
	}
	if !strings.Contains(page.String(), "<tr><th>rota</th><td>0</td><td>1</td><td>3</td></tr>") {
		t.Error("the page does not count")
	}
	r.Runs = slices.DeleteFunc(r.Runs, func(run Run) bool { return run.Row != "rota" })
	text.Reset()
	page.Reset()
	if err := Table(&text, r, info, Style{}); err != nil || strings.Contains(text.String(), "worst") {
		t.Errorf("%v; one alone is not the worst:\n%s", err, text.String())
	}
	if err := Page(&page, r, info); err != nil || strings.Contains(page.String(), ">worst<") || strings.Contains(page.String(), "Best and worst") {
		t.Error("the page of one row names a worst", err)
	}
}
