package scenario

import (
	"time"

	"rota/lab/guest"
	"rota/lab/report"
)

// latency puts the choices that a fair scheduler has beside each other: what
// each gives to those who wait and takes from those who work.
func latency() Scenario {
	return Scenario{
		Name:     "latency",
		Title:    "Latency against throughput",
		Question: "What does each choice of a fair scheduler cost in work done, and what does it give to those who wait?",
		Rows:     latencyRows(),
		Metrics:  latencyMetrics(),
		Plots: []report.Plot{{
			Title: "Wake-up latency at nice 0 against the time of the work",
			X:     "hackbench_s", Y: "latency_nice0_avg_us",
		}},
		Tools: []string{"cyclictest", "hackbench"},
		Limit: 180 * time.Second,
		Run:   runLatency,
	}
}

// Names of the rows about which something is promised.
const (
	rowRotaLatency    = "rota-latency"
	rowRotaThroughput = "rota-throughput"
)

// Configurations of rota that are a preset and nothing else.
const (
	latencyPreset    = "scheduler: {preset: latency}\n"
	throughputPreset = "scheduler: {preset: throughput}\n"
)

func latencyRows() []Row {
	fair := func(name, kernel, about string, features ...string) Row {
		return Row{Name: name, Kernel: kernel, Scheduler: "kernel", Features: features, About: about}
	}
	rota := func(name, config string) Row { return Row{Name: name, Scheduler: "rota", Config: config} }
	return []Row{
		fair(rowKernel, "", ""),
		fair("kernel-no-parity", "", "with NO_RUN_TO_PARITY", "NO_RUN_TO_PARITY"),
		fair("kernel-no-short", "", "with NO_PREEMPT_SHORT", "NO_PREEMPT_SHORT"),
		fair("cfs", "6.1", "CFS, the scheduler before EEVDF"),
		fair("eevdf-6.12", "6.12", "EEVDF of an older kernel"),
		fair("eevdf-6.12-no-parity", "6.12", "with NO_RUN_TO_PARITY", "NO_RUN_TO_PARITY"),
		fair("eevdf-6.12-no-short", "6.12", "with NO_PREEMPT_SHORT", "NO_PREEMPT_SHORT"),
		rota(rowRota, ""),
		rota(rowRotaLatency, latencyPreset),
		rota(rowRotaThroughput, throughputPreset),
		rota("rota-eligibility", "scheduler: {fair: {eligibilityCheck: true}}\n"),
	}
}

func latencyNices() []int { return []int{-19, 0, 19} }

func latencyMetrics() []Metric {
	const group = "while hackbench -g 4 runs, until cyclictest has ended"
	metrics := []Metric{{Name: "hackbench_s", Group: "work, while nobody measures", Label: "hackbench -g 4 -l 200", Better: -1,
		Bounds: []Bound{{Row: rowRotaThroughput, Against: rowKernel, AtMost: 1}}}}
	for _, nice := range latencyNices() {
		metrics = append(metrics, wakeFigures("latency", "wake-up latency under hackbench -g 4", nice, func(figure string) []Bound {
			return latencyBounds(nice, figure)
		})...)
	}
	return append(metrics,
		Metric{Name: "switches_hz", Group: group, Label: "context switches of all tasks"},
		Metric{Name: "forced_hz", Group: group, Label: "of hackbench's tasks, against their will"},
		Metric{Name: "preempting_hz", Group: group, Label: "wake-ups that preempted, as rota counts"},
	)
}

func latencyBounds(nice int, figure string) []Bound {
	bounds := []Bound{{Row: rowRota, Against: rowKernel, AtMost: 1.05}}
	promised := map[int]map[string]float64{
		-19: {"avg": 0.6},
		0:   {"avg": 0.7},
		19:  {"avg": 1, "max": 1},
	}
	if limit, ok := promised[nice][figure]; ok {
		bounds = append(bounds, Bound{Row: rowRotaLatency, Against: rowKernel, AtMost: limit})
	}
	return bounds
}

func runLatency(g *guest.Guest) error {
	if err := measureHackbench(g); err != nil {
		return err
	}
	s := newStage(g, "latency")
	defer s.stop()
	if err := s.hackbenchForever(); err != nil {
		return err
	}
	count := &switchCount{g: g, comm: "hackbench"}
	for _, nice := range latencyNices() {
		if err := s.wakeUps("latency", nice, count); err != nil {
			return err
		}
	}
	count.report()
	return nil
}
