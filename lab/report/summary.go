package report

import (
	"slices"
	"sort"
	"strings"
)

// spread is one figure over the seeds.
type spread struct {
	median, low, high float64
	seeds             int // 0 when no run has the figure
}

// spreadOf summarises values; the median of an even number is the mean of the
// middle two.
func spreadOf(values []float64) spread {
	n := len(values)
	if n == 0 {
		return spread{}
	}
	sorted := append([]float64(nil), values...)
	sort.Float64s(sorted)
	median := sorted[n/2]
	if n%2 == 0 {
		median = (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return spread{median: median, low: sorted[0], high: sorted[n-1], seeds: n}
}

// verdict is how a figure compares with the baseline's.
type verdict int

const (
	unjudged verdict = iota // neither is better, or there is nothing to compare
	same
	win
	loss
)

// String returns the word of the table; "" for unjudged.
func (v verdict) String() string { return [...]string{"", "same", "win", "loss"}[v] }

// noise is the relative difference of medians below which figures are the same.
const noise = 0.02

// judge compares with the baseline. With several seeds a difference counts only
// when the ranges do not overlap.
func judge(better int, value, base spread) verdict {
	if better == 0 || value.seeds == 0 || base.seeds == 0 {
		return unjudged
	}
	difference := value.median - base.median
	scale := max(abs(base.median), abs(value.median))
	overlap := value.low <= base.high && base.low <= value.high
	several := value.seeds > 1 || base.seeds > 1
	switch {
	case abs(difference) <= noise*scale, several && overlap:
		return same
	case (difference > 0) == (better > 0):
		return win
	default:
		return loss
	}
}

func abs(x float64) float64 { return max(x, -x) }

// part is the results of one kernel: what one table shows.
type part struct {
	kernel  string
	rows    []string
	colors  map[string]int // number of each row's colour
	seeds   []int64
	metrics []Metric
	runs    []Run
	abouts  map[string]string // words about rows
	own     map[string]string // kernels of the rows that have their own
}

// parts splits results by kernel, in order of appearance. Rows with a kernel of
// their own stand in every part, beside those of the part's kernel.
func parts(r Results, info Info) []part {
	var list []part
	var guests []Run
	index := map[string]int{}
	for _, run := range r.Runs {
		kernel := run.Kernel
		if kernel == "" {
			kernel = r.Kernel
		}
		if info.OwnKernel[run.Row] {
			guests = append(guests, run)
			continue
		}
		i, seen := index[kernel]
		if !seen {
			i = len(list)
			index[kernel] = i
			list = append(list, part{kernel: kernel})
		}
		list[i].runs = append(list[i].runs, run)
	}
	if len(list) == 0 && len(guests) > 0 {
		list = []part{{kernel: kernelsOf(guests)}}
	}
	for i := range list {
		p := &list[i]
		p.abouts, p.own = info.About, map[string]string{}
		p.runs = append(p.runs, guests...)
		for _, run := range guests {
			p.own[run.Row] = run.Kernel
		}
		p.rows = orderedRows(p.runs, info.Rows)
		p.colors = colorsOf(p.rows, info.Rows)
		p.seeds = seedsOf(p.runs)
		p.metrics = orderedMetrics(p.runs, info.Metrics)
	}
	return list
}

// kernelsOf lists the kernels of some runs.
func kernelsOf(runs []Run) string {
	var names []string
	for _, run := range runs {
		if !slices.Contains(names, run.Kernel) {
			names = append(names, run.Kernel)
		}
	}
	return strings.Join(names, ", ")
}

// shortKernel is a release without what all packages of a distribution have.
func shortKernel(release string) string {
	release, _, _ = strings.Cut(release, "+")
	return strings.TrimSuffix(strings.TrimSuffix(release, "-amd64"), "-cloud")
}

// orderedRows returns the rows that have runs: the described ones first, others
// in order of appearance.
func orderedRows(runs []Run, described []string) []string {
	present := map[string]bool{}
	for _, run := range runs {
		present[run.Row] = true
	}
	var rows []string
	take := func(row string) {
		if present[row] {
			rows = append(rows, row)
			delete(present, row)
		}
	}
	for _, row := range described {
		take(row)
	}
	for _, run := range runs {
		take(run.Row)
	}
	return rows
}

// colorsOf gives each row a colour of its own. A well-known row has the same
// one in every report, whatever else was run.
func colorsOf(rows, described []string) map[string]int {
	colors := map[string]int{}
	for i, row := range []string{Baseline, "fifo", "rota", "rota+classes"} {
		colors[row] = i
	}
	for _, row := range append(append([]string(nil), described...), rows...) {
		if _, known := colors[row]; !known {
			colors[row] = len(colors)
		}
	}
	return colors
}

func seedsOf(runs []Run) []int64 {
	seen := map[int64]bool{}
	var seeds []int64
	for _, run := range runs {
		if !seen[run.Seed] {
			seen[run.Seed] = true
			seeds = append(seeds, run.Seed)
		}
	}
	sort.Slice(seeds, func(i, j int) bool { return seeds[i] < seeds[j] })
	return seeds
}

// orderedMetrics returns the figures that some run has: the described ones in
// their order, others in alphabetical order in a group of their own.
func orderedMetrics(runs []Run, described []Metric) []Metric {
	present := map[string]bool{}
	for _, run := range runs {
		for name := range run.Metrics {
			present[name] = true
		}
	}
	var metrics []Metric
	for _, m := range described {
		if present[m.Name] {
			metrics = append(metrics, m)
			delete(present, m.Name)
		}
	}
	var rest []string
	for name := range present {
		rest = append(rest, name)
	}
	sort.Strings(rest)
	for _, name := range rest {
		metrics = append(metrics, Metric{Name: name, Group: "other figures", Label: plainLabel(name)})
	}
	return metrics
}

// plainLabel makes words of a name that nobody described, without its unit.
func plainLabel(name string) string {
	if unitOf(name) != "" && strings.Contains(name, "_") {
		name = name[:strings.LastIndexByte(name, '_')]
	}
	return strings.ReplaceAll(name, "_", " ")
}

// spread returns the figure of a row over the seeds.
func (p part) spread(row, metric string) spread {
	var values []float64
	for _, run := range p.runs {
		if value, ok := run.Metrics[metric]; ok && run.Row == row {
			values = append(values, value)
		}
	}
	return spreadOf(values)
}

// histogram returns a row's histogram, the counts of all seeds added up.
func (p part) histogram(row, name string) []Bucket {
	counts := map[[2]float64]int64{}
	for _, run := range p.runs {
		if run.Row == row {
			for _, b := range run.Histograms[name] {
				counts[[2]float64{b.Low, b.High}] += b.Count
			}
		}
	}
	list := make([]Bucket, 0, len(counts))
	for limits, count := range counts {
		list = append(list, Bucket{Low: limits[0], High: limits[1], Count: count})
	}
	sort.Slice(list, func(i, j int) bool {
		a, b := list[i], list[j]
		return a.High < b.High || a.High == b.High && a.Low < b.Low
	})
	return list
}

// metricOf returns the first figure that was made from a histogram: one whose
// name is the histogram's with a word for the kind of figure before the unit.
// Without one it is the number of figures.
func (p part) metricOf(histogram string) int {
	prefix := histogram[:strings.LastIndexByte(histogram, '_')+1]
	for i, m := range p.metrics {
		rest, ok := strings.CutPrefix(m.Name, prefix)
		if ok && prefix != "" && strings.Count(rest, "_") == 1 {
			return i
		}
	}
	return len(p.metrics)
}

// histograms returns the names of all histograms in the order of their figures.
func (p part) histograms() []string {
	seen := map[string]bool{}
	for _, run := range p.runs {
		for name := range run.Histograms {
			seen[name] = true
		}
	}
	names := make([]string, 0, len(seen))
	for name := range seen {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool {
		a, b := p.metricOf(names[i]), p.metricOf(names[j])
		return a < b || a == b && names[i] < names[j]
	})
	return names
}

// remarks are the lines about runs that a reader must know: early ends, notes.
func (p part) remarks() []string {
	var lines []string
	seen := map[string]bool{}
	for _, run := range p.runs {
		if run.Exit != "" {
			lines = append(lines, endedEarly(run))
		}
		if run.Note != "" && !seen[run.Note] {
			seen[run.Note] = true
			lines = append(lines, run.Note)
		}
	}
	return lines
}
