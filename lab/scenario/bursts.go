package scenario

import (
	"fmt"
	"strconv"
	"time"

	"rota/lab/guest"
	"rota/lab/scenario/output"
)

// rowStatic is rota with classes whose slices are the same for all of their tasks.
const rowStatic = "rota-static"

// burstSeconds is how long each case of bursts runs.
const burstSeconds = 2

// What short bursts may take with rota of what they take without, and what must be left
// of the long ones.
const (
	maxShortBurst    = 0.6
	maxShortBurstP99 = 0.4
	minLongBursts    = 0.95
)

// bursts measures whom rota runs first among tasks that all matter, and what dynamic
// slices change about it.
func bursts() Scenario {
	return Scenario{
		Name:     "bursts",
		Title:    "Short and long bursts",
		Question: "How long do short bursts of important work take beside long ones of the same class, when there is more of it than the CPUs can do?",
		Rows: []Row{
			{Name: rowKernel, Scheduler: "kernel"},
			{Name: rowStatic, Scheduler: "rota", Config: burstsConfig("false"), About: "with a class without dynamic slices"},
			{Name: rowClasses, Scheduler: "rota", Config: burstsConfig("true")},
		},
		Metrics: burstMetrics(),
		Loads:   []string{"bursts"},
		Limit:   60 * time.Second,
		Run:     runBursts,
	}
}

func burstsConfig(dynamic string) string {
	return `classes:
  - {name: burst, tier: priority, dynamicSlice: ` + dynamic + `}
rules:
  - {match: {comm: "burst-*"}, class: burst}
`
}

// burstCase is how much the short ones and the long ones work and pause, in us.
type burstCase struct {
	name, group         string
	shortWork, longWork int
}

func burstCases() []burstCase {
	return []burstCase{
		{"touch", "0.2 ms of work every 5 ms, beside frames of 8 ms", 200, 8000},
		{"tiles", "0.2 ms of work every 5 ms, beside tiles of 2 ms", 200, 2000},
	}
}

func (c burstCase) metric(figure string) string { return "bursts_" + c.name + "_" + figure }

func burstMetrics() (metrics []Metric) {
	for _, c := range burstCases() {
		short := []Bound{{Row: rowClasses, Against: rowKernel, AtMost: maxShortBurst}}
		p99 := []Bound{{Row: rowClasses, Against: rowKernel, AtMost: maxShortBurstP99}}
		long := []Bound{{Row: rowClasses, Against: rowKernel, AtLeast: minLongBursts}}
		metrics = append(metrics,
			Metric{Name: c.metric("short_avg_ms"), Group: c.group, Label: "a short burst, mean", Better: -1, Bounds: short},
			Metric{Name: c.metric("short_p99_ms"), Group: c.group, Label: "p99", Better: -1, Bounds: p99},
			Metric{Name: c.metric("short_max_ms"), Group: c.group, Label: "longest", Better: -1},
			Metric{Name: c.metric("long_avg_ms"), Group: c.group, Label: "a long burst, mean", Better: -1},
			Metric{Name: c.metric("long_hz"), Group: c.group, Label: "long bursts done", Better: 1, Bounds: long},
			Metric{Name: c.metric("switches_hz"), Group: c.group, Label: "context switches", Better: -1})
	}
	return metrics
}

func runBursts(g *guest.Guest) error {
	for _, c := range burstCases() {
		out, err := g.Run(guest.Cmd{Path: "bursts", Args: []string{strconv.Itoa(burstSeconds),
			strconv.Itoa(g.CPUs), strconv.Itoa(c.shortWork), strconv.Itoa(5000 - c.shortWork),
			strconv.Itoa(2 * g.CPUs), strconv.Itoa(c.longWork), strconv.Itoa(c.longWork / 4),
			strconv.FormatInt(g.Seed%1000000, 10)}})
		if err != nil {
			return err
		}
		figures, err := output.Pairs(out.Stdout)
		if err != nil {
			return err
		}
		for _, name := range []string{"short_avg_ms", "short_p99_ms", "short_max_ms", "long_avg_ms", "long_n", "switches"} {
			if _, ok := figures[name]; !ok {
				return fmt.Errorf("bursts: no %s in %q", name, out.Stdout)
			}
		}
		for _, name := range []string{"short_avg_ms", "short_p99_ms", "short_max_ms", "long_avg_ms"} {
			g.Metric(c.metric(name), figures[name])
		}
		g.Metric(c.metric("long_hz"), figures["long_n"]/burstSeconds)
		g.Metric(c.metric("switches_hz"), figures["switches"]/burstSeconds)
	}
	return nil
}
