package scenario

import (
	"fmt"
	"time"

	"rota/lab/guest"
)

const wakeConfig = `classes:
  - name: urgent
    tier: priority
rules:
  - match: {comm: "cyclictest"}
    class: urgent
`

// wake measures how late a task runs after its timer has woken it.
func wake() Scenario {
	return Scenario{
		Name:     "wake",
		Title:    "Wake-up latency",
		Question: "How long does a task that is woken every millisecond, or has just begun, wait for a CPU when the machine is busy?",
		Rows:     rows(wakeConfig),
		Metrics:  wakeMetrics(),
		Tools:    []string{"cyclictest", "hackbench", "stress-ng"},
		Loads:    []string{"nap", "spawn"},
		Limit:    180 * time.Second,
		Run:      runWake,
	}
}

// wakeLoad is one load under which wake-ups are measured.
type wakeLoad struct {
	name, group string
	nices       []int
	start       func(*stage) error
	more        func(*guest.Guest) error // measured under the same load, nil: nothing
}

func wakeLoads() []wakeLoad {
	all := []int{0, -19, 19}
	return []wakeLoad{
		{"hackbench", "under hackbench -g 4", all, (*stage).hackbenchForever, nil},
		{"hogs", "under one CPU hog per CPU", all, (*stage).stressHogs, measureSpawn},
		{"crowd", "under two CPU hogs per CPU and five tasks that wake every ms", []int{0}, (*stage).nappingCrowd, nil},
	}
}

func wakeMetrics() []Metric {
	var metrics []Metric
	for _, load := range wakeLoads() {
		for _, nice := range load.nices {
			metrics = append(metrics, wakeFigures("wake_"+load.name, "wake-up latency "+load.group, nice, func(figure string) []Bound {
				return wakeBounds(load.name, nice, figure)
			})...)
		}
	}
	return append(metrics, spawnMetrics()...)
}

// spawnRounds are the processes that are started one after the other under hogs.
const spawnRounds = "200"

func spawnMetrics() []Metric {
	const group = "a new process under one CPU hog per CPU"
	return []Metric{
		{Name: "spawn_mean_us", Group: group, Label: "until it runs, mean", Better: -1, Bounds: []Bound{{Row: rowRota, Against: rowKernel, AtMost: 1}}},
		{Name: "spawn_max_us", Group: group, Label: "longest", Better: -1},
	}
}

func wakeBounds(load string, nice int, figure string) []Bound {
	var bounds []Bound
	if nice != 19 && figure != "max" {
		bounds = append(bounds, Bound{Row: rowRota, Against: rowKernel, AtMost: 1})
	}
	// A wake-up that waits for many slices was lost, not late.
	if nice != 19 && figure == "max" && load != "hackbench" {
		bounds = append(bounds, Bound{Row: rowRota, AtMost: 50000})
	}
	limits := map[string]float64{"hackbench avg": 60, "hackbench p99": 150, "hogs avg": 40, "hogs p99": 95}
	if limit, ok := limits[load+" "+figure]; ok && nice == 0 {
		bounds = append(bounds, Bound{Row: rowClasses, AtMost: limit})
	}
	return bounds
}

func runWake(g *guest.Guest) error {
	for _, load := range wakeLoads() {
		if err := wakeUnder(g, load); err != nil {
			return fmt.Errorf("under %s: %w", load.name, err)
		}
	}
	return nil
}

func wakeUnder(g *guest.Guest, load wakeLoad) error {
	s := newStage(g, "wake_"+load.name)
	defer s.stop()
	if err := load.start(s); err != nil {
		return err
	}
	nices := load.nices
	if g.Row.Fifo {
		nices = nices[:1] // real-time policies know no nice
	}
	for _, nice := range nices {
		if err := s.wakeUps("wake_"+load.name, nice, nil); err != nil {
			return err
		}
	}
	if load.more == nil {
		return nil
	}
	return load.more(g)
}

// measureSpawn starts processes, one after the other.
func measureSpawn(g *guest.Guest) error {
	return measureWaits(g, "spawn", guest.Cmd{Path: "spawn", Args: []string{spawnRounds}})
}
