package report

import "math/rand"

// sample returns results as the lab writes them: two kernels' worth of rows,
// three seeds, histograms, a run that ended early and a note.
func sample() (Results, Info) {
	r := Results{Scenario: "wake", Kernel: "6.18.15+deb13-cloud-amd64", CPUs: 4, Seed: 1}
	averages := map[string]float64{"kernel": 460, "fifo": 12, "rota": 420, "rota+classes": 41, "scx_peer": 6865}
	for seed := int64(1); seed <= 3; seed++ {
		for _, row := range []string{"kernel", "fifo", "rota", "rota+classes", "scx_peer"} {
			r.Runs = append(r.Runs, sampleRun(row, seed, averages[row]))
		}
	}
	info := Info{
		Title:    "Wake-up latency",
		Question: "How long does a task that is woken every millisecond wait for a CPU when the machine is busy?",
		Rows:     []string{"kernel", "fifo", "rota", "rota+classes"},
		Command:  "rota-lab run wake --kernel 6.18 --seed 1 --repeat 3",
		Metrics: []Metric{
			{Name: "wake_hackbench_nice0_avg_us", Group: "wake-up latency under hackbench -g 4", Label: "nice 0, avg", Better: -1,
				Bounds: []Bound{{Row: "rota+classes", AtMost: 60}, {Row: "rota", Against: "kernel", AtMost: 1}}},
			{Name: "wake_hackbench_nice0_p99_us", Group: "wake-up latency under hackbench -g 4", Label: "nice 0, p99", Better: -1,
				Bounds: []Bound{{Row: "rota+classes", AtMost: 150}}},
			{Name: "ops", Group: "work done", Label: "bogo operations", Better: 1},
		},
	}
	return r, info
}

func sampleRun(row string, seed int64, average float64) Run {
	random := rand.New(rand.NewSource(seed))
	run := Run{Row: row, Scheduler: "kernel", Kernel: "6.18.15+deb13-cloud-amd64", Seed: seed, Clocksource: "tsc"}
	if row != "kernel" && row != "fifo" {
		run.Scheduler, run.Attached = row, true
	}
	switch row {
	case "rota":
		run.Scheduler = "rota"
	case "rota+classes":
		run.Scheduler, run.Config = "rota", "classes:\n  - name: urgent\n    tier: priority\n"
	case "scx_peer":
		run.Scheduler = "/usr/sbin/scx_peer"
	}
	average *= 0.97 + 0.03*float64(seed)
	run.Metrics = map[string]float64{
		"wake_hackbench_nice0_avg_us": average,
		"wake_hackbench_nice0_p99_us": average * 4.2,
		"ops":                         51234 + float64(seed)*10,
		"leftover_mb":                 12.5,
	}
	var buckets []Bucket
	for low := 2.0; low < average*12; low *= 1.3 {
		count := int64(2000 * average / (average + low*low/average) * (0.9 + 0.2*random.Float64()))
		buckets = append(buckets, Bucket{Low: low, High: low * 1.3, Count: count})
	}
	run.Histograms = map[string][]Bucket{"wake_hackbench_nice0_us": buckets}
	if row == "scx_peer" && seed == 2 {
		run.Attached, run.Exit = false, "the kernel ended the scheduler: runnable task stall (watchdog failed to check in for 5.004s)"
		run.Events = []Event{{Name: "exit", Text: "runnable task stall\nhackbench[812]"}}
	}
	return run
}
