package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
)

//go:embed page.html
var pageTemplate string

//go:embed page.css
var pageStyle string

// page is what the template shows.
type page struct {
	Title, Question, Scenario string
	Style                     template.CSS
	Parts                     []pagePart
	Caveats                   []string
	Command                   string
}

type pagePart struct {
	Heading   string
	Columns   []pageColumn
	Groups    []pageGroup
	Width     int // columns of the table
	Tallies   []tally
	RankRule  string
	Promises  []pagePromise
	Reached   int
	Remarks   []string
	Scatters  []pageFigure
	Shapes    []pageFigure
	Configs   []pageConfig
	Events    []pageEvents
	BarGroups []pageBars
}

type pageColumn struct {
	Name, About, Kernel string
	Color               template.CSS
}

type pageGroup struct {
	Name  string
	Lines []pageLine
}

type pageLine struct {
	Label, Hint string
	Cells       []pageCell
}

type pageCell struct {
	Value, Unit, Ratio, Verdict, Range string
	Rank                               string // "best", "worst" or ""
}

type pagePromise struct{ Class, Word, Row, What, Measured, Promise string }

type pageBars struct {
	Name    string
	Figures []pageFigure
}

type pageFigure struct {
	Caption, Hint string
	Picture       template.HTML
}

type pageConfig struct{ Row, Text string }

type pageEvents struct {
	Run   string
	Lines []Event
}

// HTML writes the report into dir (made when it is missing) as index.html: one
// file that needs no other file, no network and no script. It returns its path.
func HTML(dir string, r Results, info Info) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("report directory: %w", err)
	}
	path := filepath.Join(dir, "index.html")
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(dir), renameio.WithStaticPermissions(0o644))
	if err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	defer f.Cleanup() // does nothing when all went well
	if err := Page(f, r, info); err != nil {
		return "", err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	return path, nil
}

// Page writes the report as one HTML document.
func Page(w io.Writer, r Results, info Info) error {
	p := page{
		Title: info.Title, Question: info.Question, Scenario: r.Scenario,
		Style: template.CSS(pageStyle), Caveats: Caveats(), Command: info.Command,
	}
	if p.Title == "" {
		p.Title = r.Scenario
	}
	for _, part := range parts(r, info) {
		shown, err := pagePartOf(r, part, info.Plots)
		if err != nil {
			return fmt.Errorf("report of kernel %q: %w", part.kernel, err)
		}
		p.Parts = append(p.Parts, shown)
	}
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := t.Execute(w, p); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

func pagePartOf(r Results, p part, plots []Plot) (pagePart, error) {
	shown := pagePart{Heading: heading(r, p), Width: len(p.rows) + 1, Remarks: p.remarks(), Events: pageEventsOf(p),
		Tallies: p.tallies(), RankRule: rankRule}
	for _, row := range p.rows {
		if text := p.config(row); text != "" {
			shown.Configs = append(shown.Configs, pageConfig{Row: row, Text: text})
		}
		shown.Columns = append(shown.Columns, pageColumn{
			Name: row, Color: template.CSS(fmt.Sprintf("background:var(--plot%d)", series+p.colors[row]%maxSeries)), About: p.about(row),
			Kernel: shortKernel(p.own[row]),
		})
	}
	for _, m := range p.metrics {
		if err := shown.add(p, m); err != nil {
			return pagePart{}, err
		}
	}
	for _, o := range p.outcomes() {
		if o.reached {
			shown.Reached++
		}
		shown.Promises = append(shown.Promises, pagePromiseOf(o))
	}
	if err := shown.addScatters(p, plots); err != nil {
		return pagePart{}, err
	}
	return shown, shown.addShapes(p)
}

// add adds a figure to the table and its picture to the pictures.
func (shown *pagePart) add(p part, m Metric) error {
	if n := len(shown.Groups); n == 0 || shown.Groups[n-1].Name != m.Group {
		shown.Groups = append(shown.Groups, pageGroup{Name: m.Group})
		shown.BarGroups = append(shown.BarGroups, pageBars{Name: m.Group})
	}
	last := len(shown.Groups) - 1
	shown.Groups[last].Lines = append(shown.Groups[last].Lines, pageLineOf(p, m))
	if !p.something(m.Name) {
		return nil
	}
	picture, logarithmic, err := barPlot(p, m)
	if err != nil {
		return err
	}
	hint := betterHint(m)
	if logarithmic {
		hint = strings.TrimPrefix(hint+", log scale", ", ")
	}
	shown.BarGroups[last].Figures = append(shown.BarGroups[last].Figures, pageFigure{
		Caption: m.Label, Hint: hint, Picture: template.HTML(picture),
	})
	return nil
}

// something says whether any row has a figure to draw a bar for.
func (p part) something(metric string) bool {
	for _, row := range p.rows {
		if p.spread(row, metric).high > 0 {
			return true
		}
	}
	return false
}

func betterHint(m Metric) string {
	switch {
	case m.Better < 0:
		return "less is better"
	case m.Better > 0:
		return "more is better"
	}
	return ""
}

func pageLineOf(p part, m Metric) pageLine {
	line := pageLine{Label: m.Label, Hint: betterHint(m)}
	r := p.rank(m)
	for _, row := range p.rows {
		s := p.spread(row, m.Name)
		c := cellOf(p, m, row)
		shown := pageCell{Value: c.value, Range: c.span, Verdict: c.verdict.String()}
		if s.seeds > 0 {
			shown.Unit = unitOf(m.Name)
		}
		if row != Baseline {
			shown.Ratio = ratio(s, p.spread(Baseline, m.Name))
		}
		switch {
		case slices.Contains(r.worst, row):
			shown.Rank = "worst"
		case slices.Contains(r.best, row):
			shown.Rank = "best"
		}
		line.Cells = append(line.Cells, shown)
	}
	return line
}

func pagePromiseOf(o outcome) pagePromise {
	class := "open"
	if o.measure {
		class = "missed"
	}
	if o.reached {
		class = "reached"
	}
	return pagePromise{
		Class: class, Word: strings.ToLower(o.word()), Row: o.bound.Row,
		What: o.metric.Group + ": " + o.metric.Label, Measured: o.measured(), Promise: o.promise(),
	}
}

// addShapes adds one picture per histogram.
func (shown *pagePart) addShapes(p part) error {
	for _, name := range p.histograms() {
		picture, err := distributionPlot(p, name)
		if err != nil {
			return err
		}
		if picture != "" {
			shown.Shapes = append(shown.Shapes, pageFigure{Caption: p.histogramTitle(name), Picture: template.HTML(picture)})
		}
	}
	return nil
}

// histogramTitle names a histogram after the figures that were made from it.
func (p part) histogramTitle(name string) string {
	i := p.metricOf(name)
	if i == len(p.metrics) {
		return plainLabel(name)
	}
	m := p.metrics[i]
	if first, _, ok := strings.Cut(m.Label, ", "); ok {
		return m.Group + ": " + first
	}
	return m.Group
}

// config returns a row's configuration, "" without one.
func (p part) config(row string) string {
	for _, run := range p.runs {
		if run.Row == row && run.Config != "" {
			return run.Config
		}
	}
	return ""
}

// about describes a row below its name.
func (p part) about(row string) string {
	if kernel := p.own[row]; kernel != "" {
		return strings.TrimSuffix("kernel "+kernel+": "+p.abouts[row], ": ")
	}
	if about := p.abouts[row]; about != "" {
		return about
	}
	for _, run := range p.runs {
		if run.Row != row {
			continue
		}
		switch {
		case row == Baseline:
			return "the kernel's own scheduler"
		case run.Scheduler == Baseline:
			return "the measured chain as SCHED_FIFO"
		case run.Config != "":
			return "with the configuration below"
		case run.Scheduler == "rota":
			return "without configuration"
		}
		return run.Scheduler
	}
	return ""
}

func pageEventsOf(p part) []pageEvents {
	var list []pageEvents
	for _, run := range p.runs {
		if len(run.Events) > 0 {
			list = append(list, pageEvents{Run: runName(run), Lines: run.Events})
		}
	}
	return list
}
