package scenario

import (
	"fmt"
	"math"
	"os"
	"time"

	"rota/lab/guest"
	"rota/lab/scenario/output"
)

// The classes match nothing that runs here: shares must not depend on them.
const sharesConfig = `classes:
  - name: urgent
    tier: priority
rules:
  - match: {comm: "urgent-*"}
    class: urgent
`

// niceRatio is the ratio of the kernel's weights of nice 0 and nice 5.
var niceRatio = niceWeight(0) / niceWeight(5)

// shares measures whether nice values, CPUs and cgroup weights are obeyed.
func shares() Scenario {
	return Scenario{
		Name:     "shares",
		Title:    "Fair shares",
		Question: "Does everybody get the share of the CPUs that nice values and cgroup weights promise?",
		Rows:     rowsWithoutFifo(sharesConfig),
		Metrics: []Metric{
			// The virtual CPUs do not run equally fast: a scheduler shares out time.
			{Name: "nice_ratio", Group: "nice 0 against nice 5, one CPU", Label: "CPU time ratio, ideal 3.057", Better: 0},
			{Name: "nice_work_ratio", Group: "nice 0 against nice 5, one CPU", Label: "work ratio", Better: 0},
			{Name: "share_error_pct", Group: "nice 0 against nice 5, one CPU", Label: "error", Better: -1,
				Bounds: []Bound{{Row: rowRota, AtMost: 2}, {Row: rowClasses, AtMost: 2}}},
			{Name: "nice_pairs_ratio", Group: "2 hogs of nice 0 against 2 of nice 5, one CPU", Label: "CPU time ratio, ideal 3.057", Better: 0},
			{Name: "hogs_spread_pct", Group: "8 hogs on 4 CPUs", Label: "CPU time, most over least, minus 1", Better: -1,
				Bounds: []Bound{{Row: rowRota, AtMost: 8}, {Row: rowClasses, AtMost: 8}}},
			{Name: "hogs_work_spread_pct", Group: "8 hogs on 4 CPUs", Label: "work done, the same", Better: 0},
			{Name: "idle_pct", Group: "8 hogs on 4 CPUs", Label: "idle time", Better: -1,
				Bounds: []Bound{{Row: rowRota, AtMost: 0.05}, {Row: rowClasses, AtMost: 0.05}}},
			{Name: "cgroup_ratio", Group: "cgroup weights 100 : 300, 4 hogs each", Label: "CPU time ratio, ideal 3.0", Better: 0},
			{Name: "cgroup_error_pct", Group: "cgroup weights 100 : 300, 4 hogs each", Label: "error", Better: -1},
		},
		Loads: []string{"hog"},
		Limit: 120 * time.Second,
		Run:   runShares,
	}
}

func runShares(g *guest.Guest) error {
	for _, measure := range []func(*guest.Guest) error{sharesByNice, sharesByNicePairs, sharesByCPU, sharesByCgroup} {
		if err := measure(g); err != nil {
			return err
		}
	}
	return nil
}

// errorPct is how far a ratio lies from its ideal, in percent.
func errorPct(ratio, ideal float64) float64 { return 100 * math.Abs(ratio/ideal-1) }

func sharesByNice(g *guest.Guest) error {
	ratio, work, err := niceShares(g, "nice", 1, 4*time.Second)
	if err != nil {
		return err
	}
	g.Metric("nice_ratio", ratio)
	g.Metric("nice_work_ratio", work)
	g.Metric("share_error_pct", errorPct(ratio, niceRatio))
	return nil
}

func sharesByNicePairs(g *guest.Guest) error {
	ratio, _, err := niceShares(g, "nice_pairs", 2, 3*time.Second)
	if err != nil {
		return err
	}
	g.Metric("nice_pairs_ratio", ratio)
	return nil
}

// niceShares runs n hogs of nice 0 and n of nice 5 on one CPU and returns the
// ratios of their CPU time and of their work.
func niceShares(g *guest.Guest, name string, n int, d time.Duration) (ratio, work float64, err error) {
	s := newStage(g, name)
	defer s.stop()
	for range n {
		for _, nice := range []int{0, 5} {
			if _, err := s.startHogs(1, guest.Cmd{Nice: nice, CPUs: "1"}); err != nil {
				return 0, 0, err
			}
		}
	}
	g.Sleep(200 * time.Millisecond)
	done, err := s.progress(d)
	if err != nil {
		return 0, 0, err
	}
	var times, loops [2]float64
	for i, slot := range done {
		times[i%2] += float64(slot.CPUNs)
		loops[i%2] += float64(slot.Loops)
	}
	if ratio, err = ratioOf(name, times[0], times[1]); err != nil {
		return 0, 0, err
	}
	work, err = ratioOf(name, loops[0], loops[1])
	return ratio, work, err
}

func ratioOf(name string, a, b float64) (float64, error) {
	if b <= 0 {
		return 0, fmt.Errorf("%s: one side did no work in the whole interval", name)
	}
	return a / b, nil
}

// sharesByCPU runs two hogs per CPU, free to move.
func sharesByCPU(g *guest.Guest) error {
	s := newStage(g, "hogs")
	defer s.stop()
	if _, err := s.startHogs(2*g.CPUs, guest.Cmd{}); err != nil {
		return err
	}
	g.Sleep(500 * time.Millisecond)
	before, err := cpuTimes()
	if err != nil {
		return err
	}
	done, err := s.progress(4 * time.Second)
	if err != nil {
		return err
	}
	after, err := cpuTimes()
	if err != nil {
		return err
	}
	idle, err := output.IdlePct(before, after)
	if err != nil {
		return err
	}
	g.Metric("idle_pct", idle)
	var loops, times output.Samples
	words := ""
	for _, slot := range done {
		loops = append(loops, float64(slot.Loops))
		times = append(times, float64(slot.CPUNs)/1e6)
		words += fmt.Sprintf(" %d/%.0f", slot.Loops, float64(slot.CPUNs)/1e6)
	}
	g.Event("hogs", "loops/CPU ms of each:"+words)
	if err := spreadPct(g, "hogs_spread_pct", times); err != nil {
		return err
	}
	return spreadPct(g, "hogs_work_spread_pct", loops)
}

// spreadPct reports by how much the largest exceeds the smallest, in percent.
func spreadPct(g *guest.Guest, name string, values output.Samples) error {
	ratio, err := ratioOf(name, values.Max(), values.Min())
	if err != nil {
		return err
	}
	g.Metric(name, 100*(ratio-1))
	return nil
}

func cpuTimes() (output.CPUTimes, error) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return output.CPUTimes{}, err
	}
	return output.ProcStat(string(data))
}

// sharesByCgroup runs as many hogs in a group of weight 100 as in one of 300.
func sharesByCgroup(g *guest.Guest) error {
	times, err := groupTimes(g, "cgroups", 4*time.Second,
		tenant{path: "w100", weight: 100, hogs: g.CPUs}, tenant{path: "w300", weight: 300, hogs: g.CPUs})
	if err != nil {
		return err
	}
	ratio, err := ratioOf("cgroups", times[1], times[0])
	if err != nil {
		return err
	}
	g.Metric("cgroup_ratio", ratio)
	g.Metric("cgroup_error_pct", errorPct(ratio, 3))
	return nil
}
