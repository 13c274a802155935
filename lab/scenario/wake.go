package scenario

import (
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"time"

	"rota/lab/guest"
	"rota/lab/scenario/output"
)

const wakeConfig = `classes:
  - name: urgent
    tier: priority
rules:
  - match: {comm: "cyclictest"}
    class: urgent
`

// wakeLoops are the wake-ups per figure, one per ms.
const wakeLoops = 1000

// wakeLimit ends a figure whose wake-ups are so late that they do not come to
// an end: what was seen until then counts.
const wakeLimit = 3 * time.Second

// cyclictestRange is what cyclictest's histogram holds, in us.
const cyclictestRange = 100000

// wake measures how late a task runs after its timer has woken it.
func wake() Scenario {
	return Scenario{
		Name:     "wake",
		Title:    "Wake-up latency",
		Question: "How long does a task that is woken every millisecond wait for a CPU when the machine is busy?",
		Rows:     rows(wakeConfig),
		Metrics:  wakeMetrics(),
		Tools:    []string{"cyclictest", "hackbench", "stress-ng"},
		Limit:    180 * time.Second,
		Run:      runWake,
	}
}

// wakeLoad is one load under which wake-ups are measured.
type wakeLoad struct {
	name, group string
	start       func(*stage) error
}

func wakeLoads() []wakeLoad {
	return []wakeLoad{
		{"hackbench", "under hackbench -g 4", (*stage).hackbenchForever},
		{"hogs", "under one CPU hog per CPU", (*stage).stressHogs},
	}
}

// wakeNices are the nice values of the measuring task and their metric names.
func wakeNices() map[int]string { return map[int]string{0: "nice0", -19: "nice_minus19", 19: "nice19"} }

func wakeMetrics() []Metric {
	var metrics []Metric
	for _, load := range wakeLoads() {
		for _, nice := range []int{0, -19, 19} {
			for _, figure := range []string{"avg", "p99", "max"} {
				metrics = append(metrics, Metric{
					Name:   fmt.Sprintf("wake_%s_%s_%s_us", load.name, wakeNices()[nice], figure),
					Group:  "wake-up latency " + load.group,
					Label:  fmt.Sprintf("nice %d, %s", nice, figure),
					Better: -1,
					Bounds: wakeBounds(load.name, nice, figure),
				})
			}
		}
	}
	return metrics
}

func wakeBounds(load string, nice int, figure string) []Bound {
	var bounds []Bound
	if nice != 19 && figure != "max" {
		bounds = append(bounds, Bound{Row: rowRota, Against: rowKernel, AtMost: 1})
	}
	// A wake-up that waits for many slices was lost, not late.
	if nice != 19 && figure == "max" && load == "hogs" {
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
	nices := []int{0, -19, 19}
	if g.Row.Fifo {
		nices = nices[:1] // real-time policies know no nice
	}
	for _, nice := range nices {
		latency, err := cyclictest(s, nice)
		if err != nil {
			return fmt.Errorf("nice %d: %w", nice, err)
		}
		name := "wake_" + load.name + "_" + wakeNices()[nice]
		g.Metric(name+"_avg_us", latency.Avg)
		g.Metric(name+"_p99_us", latency.Percentile(99))
		g.Metric(name+"_max_us", latency.Max)
		g.Histogram(name+"_us", buckets(latency))
	}
	return nil
}

// cyclictest measures wakeLoops wake-ups, or as many as wakeLimit holds, under the
// load of s. The load pauses while the tool starts, which one of nice 19 might
// not come to otherwise, and while it writes its histogram: both cost more than
// the measurement, and the tool has a task's usual share only.
func cyclictest(s *stage, nice int) (output.Latency, error) {
	const file = "/tmp/cyclictest.json"
	policy := []string{"--policy=other"}
	if s.g.Row.Fifo {
		policy = []string{"--policy=fifo", "--priority=80"}
	}
	args := append(policy, "--quiet", "--interval=1000", "--loops="+strconv.Itoa(wakeLoops), fmt.Sprintf("--duration=%d", int(wakeLimit.Seconds())),
		"--histogram="+strconv.Itoa(cyclictestRange), "--histfile=/dev/null", "--json="+file)
	s.pause()
	p, err := s.g.Start(guest.Cmd{Path: "cyclictest", Args: args, Nice: nice})
	if err != nil {
		return output.Latency{}, err
	}
	defer os.Remove(file)
	s.waitForThreads(p, time.Millisecond, func(n int) bool { return n > 1 })
	s.resume()
	s.waitForThreads(p, 20*time.Millisecond, func(n int) bool { return n < 2 })
	s.pause()
	_, err = p.Wait()
	s.resume()
	if err != nil {
		return output.Latency{}, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return output.Latency{}, fmt.Errorf("cyclictest: %w", err)
	}
	return output.Cyclictest(data)
}

// waitForThreads returns when p has as many threads as are wanted (the second
// measures, and is there only while it does), when p has ended, or when it has
// had its time: a task that gets no CPU can't see that it is to end.
func (s *stage) waitForThreads(p *guest.Proc, step time.Duration, wanted func(n int) bool) {
	const grace = 500 * time.Millisecond
	for waited := time.Duration(0); p.Running() && waited < wakeLimit+grace; waited += step {
		s.g.Sleep(step)
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.Pid))
		if err != nil || wanted(len(threads)) {
			return
		}
	}
}

// buckets turns exact counts into buckets of 1 us up to 100 us and of 4 % above,
// so that a histogram stays small whatever the latency is.
func buckets(l output.Latency) []guest.Bucket {
	values := make([]int, 0, len(l.Counts))
	for us := range l.Counts {
		values = append(values, us)
	}
	sort.Ints(values)
	var list []guest.Bucket
	add := func(us float64, count int64) {
		low, high := bucketAround(us)
		if n := len(list); n > 0 && list[n-1].Low == low {
			list[n-1].Count += count
			return
		}
		list = append(list, guest.Bucket{Low: low, High: high, Count: count})
	}
	for _, us := range values {
		add(float64(us), l.Counts[us])
	}
	if l.Over > 0 { // more than the histogram holds: all at the largest
		add(math.Max(l.Max, cyclictestRange), l.Over)
	}
	return list
}

// bucketAround returns whole limits low <= us < high.
func bucketAround(us float64) (low, high float64) {
	const exact, step = 100.0, 1.04
	if us < exact {
		return math.Floor(us), math.Floor(us) + 1
	}
	n := math.Floor(math.Log(us/exact) / math.Log(step))
	limit := func(n float64) float64 { return math.Ceil(exact * math.Pow(step, n)) }
	for limit(n+1) <= us {
		n++
	}
	for n > 0 && limit(n) > us {
		n--
	}
	return limit(n), limit(n + 1)
}
