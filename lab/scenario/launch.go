package scenario

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"rota/lab/guest"
	"rota/lab/scenario/output"
)

// rowNice is the kernel's own scheduler with nice -20 for the app.
const rowNice = "nice"

const (
	// launches are the launches of one run: five seeds make a hundred.
	launches = 20
	// launchBackground is how many processes want each CPU beside the app.
	launchBackground = 2
)

// What a launch may take with classes, of what it takes under the kernel's own
// scheduler, and the mean also of what it takes without inheritance.
const (
	maxLaunchMean  = 0.65
	maxLaunchP99   = 0.5
	maxLaunchAlone = 0.85
)

// launch measures how long an app takes to its first frame.
func launch() Scenario {
	return Scenario{
		Name:     "launch",
		Title:    "Start of an app",
		Question: "How long does an app take from the launcher's request to its first frame, through system_server, zygote, workers and RenderThread, when the machine is busy?",
		Rows: append([]Row{
			{Name: rowKernel, Scheduler: "kernel"},
			{Name: rowNice, Scheduler: "kernel", About: "nice -20 for launcher and app"},
			{Name: rowFifo, Scheduler: "kernel", Fifo: true},
			{Name: rowRota, Scheduler: "rota"},
		}, inheritRows(launchConfig)...),
		Metrics: launchMetrics(),
		Loads:   []string{"launch"},
		Kernel:  binderKernel,
		Modules: []string{binderModule},
		Limit:   120 * time.Second,
		Run:     runLaunch,
	}
}

// launchConfig names what draws and what the drawing hands out; the services that it
// calls are in no class.
func launchConfig(inherit string) string {
	return `classes:
  - {name: app, tier: priority, inherit: ` + inherit + `}
rules:
  - {match: {comm: launcher}, class: app}
  - {match: {comm: "app-*"}, class: app}
  - {match: {comm: RenderThread}, class: app}
`
}

// launchTask tells by its name whether a task is the app's.
func launchTask(comm string) bool {
	return strings.HasPrefix(comm, "app-") || comm == "RenderThread"
}

// launchTasks is that for a filter of the kernel, about the field with this name.
func launchTasks(field string) string {
	return fmt.Sprintf(`%s ~ "app-*" || %s == "RenderThread"`, field, field)
}

// waitBucket is a part of the distribution of waits, up to before High, in us.
type waitBucket struct {
	metric, label string
	low, high     float64
}

// waitBuckets are those by which such figures of other schedulers are published.
func waitBuckets() []waitBucket {
	return []waitBucket{
		{"wait_0_4us_pct", "0 to 4 us", 0, 4},
		{"wait_4_16us_pct", "4 to 16 us", 4, 16},
		{"wait_16_128us_pct", "16 to 128 us", 16, 128},
		{"wait_128_1024us_pct", "128 to 1024 us", 128, 1024},
		{"wait_1_4ms_pct", "1 to 4 ms", 1024, 4096},
		{"wait_over_4ms_pct", "more than 4 ms", 4096, 1e12},
	}
}

func launchMetrics() []Metric {
	const (
		first = "from the request to the first frame"
		waits = "waits of the app's runnable tasks for a CPU"
		work  = "work done during launches"
		turns = "context switches of the app in a launch"
	)
	metrics := []Metric{
		{Name: "launch_mean_ms", Group: first, Label: "mean", Better: -1, Bounds: []Bound{
			{Row: rowClasses, Against: rowKernel, AtMost: maxLaunchMean},
			{Row: rowClasses, Against: rowAlone, AtMost: maxLaunchAlone},
		}},
		{Name: "launch_p50_ms", Group: first, Label: "p50", Better: -1},
		{Name: "launch_p90_ms", Group: first, Label: "p90", Better: -1},
		{Name: "launch_p99_ms", Group: first, Label: "p99", Better: -1, Bounds: []Bound{{Row: rowClasses, Against: rowKernel, AtMost: maxLaunchP99}}},
		{Name: "wait_0_16us_pct", Group: waits, Label: "up to 16 us", Better: 1},
	}
	for i, b := range waitBuckets() {
		m := Metric{Name: b.metric, Group: waits, Label: b.label}
		if i == len(waitBuckets())-1 {
			m.Better = -1
		}
		metrics = append(metrics, m)
	}
	return append(metrics,
		Metric{Name: "launch_app_units_hz", Group: work, Label: "the app's, units of 10 us a second", Better: 1},
		Metric{Name: "launch_bg_units_hz", Group: work, Label: "everybody else's", Better: 1},
		Metric{Name: "launch_units_hz", Group: work, Label: "together", Better: 1},
		Metric{Name: "launch_app_cpu_ms", Group: work, Label: "CPU time of the app's process", Better: -1},
		Metric{Name: "launch_app_cpu_pct", Group: work, Label: "the app and the services for it had, of all CPUs", Better: 0},
		Metric{Name: "launch_voluntary_switches", Group: turns, Label: "to wait"},
		Metric{Name: "launch_forced_switches", Group: turns, Label: "against its will", Better: -1},
	)
}

func runLaunch(g *guest.Guest) error {
	kind := "plain"
	switch g.Row.Name {
	case rowNice:
		kind = "nice"
	case rowFifo:
		kind = "fifo"
	}
	t, err := startTrace(map[string]string{
		"sched_switch":     launchTasks("prev_comm") + " || " + launchTasks("next_comm"),
		"sched_wakeup":     launchTasks("comm"),
		"sched_wakeup_new": launchTasks("comm"),
	})
	if err != nil {
		return err
	}
	defer t.close()
	out, err := g.Run(guest.Cmd{Path: "launch", Args: []string{kind, strconv.Itoa(launches),
		strconv.FormatUint(uint64(g.Seed)%1000000, 10), strconv.Itoa(launchBackground * g.CPUs)}})
	if err != nil {
		return err
	}
	text, err := t.stop()
	if err != nil {
		return err
	}
	defer text.Close()
	waits, err := output.Waits(text, launchTask)
	if err != nil {
		return err
	}
	launchWaits(g, waits)
	all, err := readLaunches(out.Stdout)
	if err != nil {
		return err
	}
	all.report(g)
	return nil
}

// launchWaits reports the distribution of the waits.
func launchWaits(g *guest.Guest, us output.Samples) {
	parts := waitShares(us)
	g.Metric("wait_0_16us_pct", parts[0]+parts[1])
	var list []guest.Bucket
	for i, b := range waitBuckets() {
		g.Metric(b.metric, parts[i])
		if parts[i] > 0 {
			high := min(b.high, max(us.Max(), b.low)+1)
			list = append(list, guest.Bucket{Low: b.low, High: high, Count: int64(math.Round(parts[i] * float64(len(us)) / 100))})
		}
	}
	g.Histogram("wait_us", list)
}

// waitShares is how many of the waits are in each bucket, in percent.
func waitShares(us output.Samples) []float64 {
	parts := make([]float64, len(waitBuckets()))
	for _, v := range us {
		for i, b := range waitBuckets() {
			if v >= b.low && v < b.high {
				parts[i] += 100 / float64(len(us))
			}
		}
	}
	return parts
}

// launchRecord is what the load launch prints of all its launches.
type launchRecord struct {
	ms                output.Samples // from request to first frame
	cpu, served       output.Samples // CPU time of the app's process, and of the services for it, ms
	voluntary, forced output.Samples // its context switches
	app, bg           float64        // units of work
}

// readLaunches reads a line for each launch.
func readLaunches(text string) (launchRecord, error) {
	var all launchRecord
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		pairs, err := output.Pairs(line)
		if err != nil {
			return all, err
		}
		for _, name := range []string{"launch_ms", "cpu_ms", "served_ms", "voluntary", "forced", "app_units", "bg_units"} {
			if _, ok := pairs[name]; !ok {
				return all, fmt.Errorf("launch: no %s in %.120q", name, line)
			}
		}
		if pairs["launch_ms"] <= 0 {
			return all, fmt.Errorf("launch: %.120q: must have taken some time", line)
		}
		all.ms = append(all.ms, pairs["launch_ms"])
		all.cpu = append(all.cpu, pairs["cpu_ms"])
		all.served = append(all.served, pairs["served_ms"])
		all.voluntary = append(all.voluntary, pairs["voluntary"])
		all.forced = append(all.forced, pairs["forced"])
		all.app += pairs["app_units"]
		all.bg += pairs["bg_units"]
	}
	return all, nil
}

func (all launchRecord) report(g *guest.Guest) {
	g.Metric("launch_mean_ms", all.ms.Avg())
	for _, p := range []float64{50, 90, 99} {
		g.Metric(fmt.Sprintf("launch_p%.0f_ms", p), all.ms.Percentile(p))
	}
	g.Histogram("launch_ms", launchTimes(all.ms))
	seconds := all.ms.Avg() * float64(len(all.ms)) / 1000
	g.Metric("launch_app_units_hz", all.app/seconds)
	g.Metric("launch_bg_units_hz", all.bg/seconds)
	g.Metric("launch_units_hz", (all.app+all.bg)/seconds)
	g.Metric("launch_app_cpu_ms", all.cpu.Avg())
	g.Metric("launch_app_cpu_pct", all.cpuPct(g.CPUs))
	g.Metric("launch_voluntary_switches", all.voluntary.Avg())
	g.Metric("launch_forced_switches", all.forced.Avg())
}

// cpuPct is how much of all CPUs' time the app and the services for it had.
func (all launchRecord) cpuPct(cpus int) float64 {
	return 100 * (all.cpu.Avg() + all.served.Avg()) / (all.ms.Avg() * float64(cpus))
}

// launchTimes counts the launches of each 10 ms.
func launchTimes(ms output.Samples) (list []guest.Bucket) {
	const width = 10
	counts := map[int]int64{}
	for _, v := range ms {
		counts[int(v)/width]++
	}
	for i := range int(ms.Max())/width + 1 {
		if counts[i] > 0 {
			list = append(list, guest.Bucket{Low: float64(i * width), High: float64((i + 1) * width), Count: counts[i]})
		}
	}
	return list
}
