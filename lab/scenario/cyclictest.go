package scenario

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"time"

	"rota/lab/guest"
	"rota/lab/scenario/output"
)

// wakeLoops are the wake-ups per figure, wakeApart after each other.
const (
	wakeLoops = 1000
	wakeApart = time.Millisecond
)

// wakeLimit ends a figure whose wake-ups are so late that they do not come to
// an end: what was seen until then counts.
const wakeLimit = 3 * time.Second

// cyclictestRange is what cyclictest's histogram holds, in us.
const cyclictestRange = 100000

// wakeNices are the nice values of the measuring task and their metric names.
func wakeNices() map[int]string { return map[int]string{0: "nice0", -19: "nice_minus19", 19: "nice19"} }

// wakeFigures are the figures of one nice value, as wakeUps reports them.
func wakeFigures(name, group string, nice int, bounds func(figure string) []Bound) []Metric {
	var metrics []Metric
	for _, figure := range []string{"avg", "p99", "max"} {
		metrics = append(metrics, Metric{
			Name:   fmt.Sprintf("%s_%s_%s_us", name, wakeNices()[nice], figure),
			Group:  group,
			Label:  fmt.Sprintf("nice %d, %s", nice, figure),
			Better: -1,
			Bounds: bounds(figure),
		})
	}
	return metrics
}

// wakeUps measures and reports the wake-ups of one nice value under the load of
// s; what the load does meanwhile goes to count, if there is one.
func (s *stage) wakeUps(name string, nice int, count *switchCount) error {
	latency, err := cyclictest(s, nice, count)
	if err != nil {
		return fmt.Errorf("nice %d: %w", nice, err)
	}
	name += "_" + wakeNices()[nice]
	s.g.Metric(name+"_avg_us", latency.Avg)
	s.g.Metric(name+"_p99_us", latency.Percentile(99))
	s.g.Metric(name+"_max_us", latency.Max)
	s.g.Histogram(name+"_us", buckets(latency))
	return nil
}

// cyclictest measures wakeLoops wake-ups, or as many as wakeLimit holds, under the
// load of s. The load pauses while the tool starts, which one of nice 19 might
// not come to otherwise, and while it writes its histogram: both cost more than
// the measurement, and the tool has a task's usual share only.
func cyclictest(s *stage, nice int, count *switchCount) (output.Latency, error) {
	const file = "/tmp/cyclictest.json"
	policy := []string{"--policy=other"}
	if s.g.Row.Fifo {
		policy = []string{"--policy=fifo", "--priority=80"}
	}
	args := append(policy, "--quiet", fmt.Sprintf("--interval=%d", wakeApart.Microseconds()), "--loops="+strconv.Itoa(wakeLoops), fmt.Sprintf("--duration=%d", int(wakeLimit.Seconds())),
		"--histogram="+strconv.Itoa(cyclictestRange), "--histfile=/dev/null", "--json="+file)
	s.pause()
	if err := count.begin(); err != nil {
		return output.Latency{}, err
	}
	p, err := s.g.Start(guest.Cmd{Path: "cyclictest", Args: args, Nice: nice})
	if err != nil {
		return output.Latency{}, err
	}
	defer os.Remove(file)
	s.waitForThreads(p, time.Millisecond, func(n int) bool { return n > 1 })
	start := monotonic()
	s.resume()
	s.g.Sleep(wakeLoops * wakeApart) // it takes as long at least, and whoever looks needs a CPU
	s.waitForThreads(p, 20*time.Millisecond, func(n int) bool { return n < 2 })
	s.pause()
	ran := time.Duration(monotonic() - start)
	_, err = p.Wait()
	err = errors.Join(err, count.end(ran))
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
