package report

import (
	"bytes"
	"math"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
)

// offer is a scenario's trade-off: rows on the run's kernel and one on its own.
func offer() (Results, Info) {
	r := Results{Scenario: "latency", Kernel: "6.18.15+deb13-cloud-amd64", CPUs: 4, Seed: 1}
	add := func(row, kernel string, work, wait float64) {
		r.Runs = append(r.Runs, Run{Row: row, Scheduler: "kernel", Kernel: kernel, Seed: 1,
			Metrics: map[string]float64{"hackbench_s": work, "wait_avg_us": wait}})
	}
	add("kernel", r.Kernel, 2.0, 1200)
	add("cfs", "6.1.0-49-cloud-amd64", 2.1, 700)
	add("kernel-no-parity", r.Kernel, 2.01, 1150)
	add("none", r.Kernel, 2.2, 0)
	return r, Info{
		Rows: []string{"kernel", "cfs", "kernel-no-parity"}, OwnKernel: map[string]bool{"cfs": true},
		About: map[string]string{"cfs": "the scheduler before EEVDF"},
		Plots: []Plot{{Title: "wait against work", X: "hackbench_s", Y: "wait_avg_us"}},
		Metrics: []Metric{
			{Name: "hackbench_s", Group: "work", Label: "hackbench", Better: -1},
			{Name: "wait_avg_us", Group: "waits", Label: "average", Better: -1},
		},
	}
}

func TestScatterPlot(t *testing.T) {
	r, info := offer()
	p := parts(r, info)[0]
	picture, err := scatterPlot(p, info.Plots[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">kernel</text>", ">cfs</text>", ">kernel-no-parity</text>", "hackbench, s (less is better)", "average, us (less is better)", "var(--plot8)", ">1000</text>"} {
		if !strings.Contains(picture, want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
	for _, bad := range []string{">none</text>", "NaN", "#0102"} {
		if strings.Contains(picture, bad) {
			t.Errorf("the picture contains %q", bad)
		}
	}
	for _, pl := range []Plot{{X: "no_s", Y: "wait_avg_us"}, {}} {
		if picture, err := scatterPlot(p, pl); err != nil || picture != "" {
			t.Errorf("%+v: %v, a picture of %d bytes: must be none", pl, err, len(picture))
		}
	}
	same := p
	same.rows = []string{"kernel", "kernel"}
	if picture, err := scatterPlot(same, info.Plots[0]); err != nil || strings.Contains(picture, "NaN") {
		t.Errorf("an empty range: %v", err)
	}
}

func TestPlaceLabels(t *testing.T) {
	area := vg.Rectangle{Max: vg.Point{X: 600, Y: 300}}
	var points, sizes []vg.Point
	add := func(x, y vg.Length) {
		points, sizes = append(points, vg.Point{X: x, Y: y}), append(sizes, vg.Point{X: 60, Y: 10})
	}
	add(100, 100) // three that are nearly one
	add(104, 102)
	add(98, 97)
	add(590, 150) // at the edges
	add(300, 295)
	add(5, 5)
	corners := placeLabels(points, sizes, area)
	for i, corner := range corners {
		box := vg.Rectangle{Min: corner, Max: corner.Add(sizes[i])}
		if outside(box, area) > 1e-9 {
			t.Errorf("label %d at %v lies outside", i, corner)
		}
		for j := range corners[:i] {
			if overlap(box, vg.Rectangle{Min: corners[j], Max: corners[j].Add(sizes[j])}) > 0 {
				t.Errorf("labels %d and %d cover each other", i, j)
			}
		}
	}
	random := rand.New(rand.NewSource(1))
	for range 50 { // more than there is room for: still a place for each
		add(vg.Length(random.Float64()*50), vg.Length(random.Float64()*50))
	}
	if got := placeLabels(points, sizes, area); len(got) != len(points) || math.IsNaN(float64(got[55].X)) {
		t.Errorf("%d labels for %d points", len(got), len(points))
	}
}

func TestFewDecades(t *testing.T) {
	var labels []string
	for _, tick := range (fewDecades{}).Ticks(90, 1300) {
		if tick.Label != "" {
			labels = append(labels, tick.Label)
		}
	}
	if got := strings.Join(labels, " "); got != "100 200 500 1000" {
		t.Errorf("labels are %q", got)
	}
}

func TestOwnKernels(t *testing.T) {
	r, info := offer()
	extra := r.Runs[0]
	extra.Kernel = "7.2.13-cloud-amd64"
	r.Runs = append(r.Runs, extra)
	list := parts(r, info)
	if len(list) != 2 || !slices.Contains(list[0].rows, "cfs") || !slices.Contains(list[1].rows, "cfs") {
		t.Fatalf("%d parts: the row with its own kernel must be in both", len(list))
	}
	var table, page bytes.Buffer
	if err := Table(&table, r, info, Style{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table.String(), "on a kernel of its own") || !strings.Contains(table.String(), "  6.1.0-49\n") {
		t.Errorf("the table does not name the row's kernel:\n%s", table.String())
	}
	if err := Page(&page, r, info); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), "kernel 6.1.0-49-cloud-amd64: the scheduler before EEVDF") {
		t.Error("the page does not name the row's kernel")
	}
	r.Runs = r.Runs[1:2]
	if list := parts(r, info); len(list) != 1 || list[0].kernel != "6.1.0-49-cloud-amd64" {
		t.Errorf("alone it is %+v", list)
	}
}
