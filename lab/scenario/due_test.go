package scenario

import (
	"math"
	"testing"
	"time"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9*max(1, math.Abs(b)) }

// TestNiceWeight knows the table by its ends, its middle and its law: one step
// of nice is a quarter more or less, to within rounding.
func TestNiceWeight(t *testing.T) {
	for nice, want := range map[int]float64{-20: 88761, -5: 3121, 0: 1024, 5: 335, 19: 15} {
		if got := niceWeight(nice); got != want {
			t.Errorf("nice %d weighs %v, want %v", nice, got, want)
		}
	}
	for nice := -20; nice < 19; nice++ {
		if ratio := niceWeight(nice) / niceWeight(nice+1); ratio < 1.18 || ratio > 1.3 {
			t.Errorf("nice %d weighs %v times nice %d, want about 1.25", nice, ratio, nice+1)
		}
	}
}

func TestDues(t *testing.T) {
	for name, c := range map[string]struct {
		claims []claim
		got    []float64
		ns     float64
		want   []float64
	}{
		"by weight":  {[]claim{{weight: 3}, {weight: 1}}, []float64{500, 500}, 1000, []float64{750, 250}},
		"two CPUs":   {[]claim{{weight: 1}, {weight: 1}, {weight: 2}}, []float64{0, 0, 0}, 2000, []float64{500, 500, 1000}},
		"a sleeper":  {[]claim{{weight: 9, want: 0.1}, {weight: 3}, {weight: 1}}, []float64{100, 600, 300}, 1000, []float64{100, 675, 225}},
		"a late one": {[]claim{{weight: 9, want: 0.1}, {weight: 3}, {weight: 1}}, []float64{20, 735, 245}, 1000, []float64{100, 735, 245}},
	} {
		for i, due := range dues(c.claims, c.got, c.ns, 1000) {
			if !near(due, c.want[i]) {
				t.Errorf("%s: member %d is due %v, want %v", name, i, due, c.want[i])
			}
		}
	}
}

// looksOf are looks every half second at tasks that get these parts of a CPU.
func looksOf(parts ...[]float64) []look {
	looks := []look{{atNs: 7, cpuNs: make([]uint64, len(parts[0]))}}
	for _, part := range parts {
		last := looks[len(looks)-1]
		next := look{atNs: last.atNs + 500_000_000}
		for i, p := range part {
			next.cpuNs = append(next.cpuNs, last.cpuNs[i]+uint64(p*500_000_000))
		}
		looks = append(looks, next)
	}
	return looks
}

func TestErrorsOf(t *testing.T) {
	pair := []claim{{weight: 3}, {weight: 1}}
	fair, unfair := []float64{0.75, 0.25}, []float64{0.65, 0.35}
	nap := []claim{{weight: 1, want: 0.2}, {weight: 1}}
	seldom := []claim{{weight: 1, want: 0.001}, {weight: 1}}
	for name, c := range map[string]struct {
		claims  []claim
		looks   []look
		cpus    int
		windows int
		worst   int
		max     float64
		mean    float64
		least   float64
	}{
		"fair":              {pair, looksOf(fair, fair, fair), 1, 2, 0, 0, 0, 100},
		"unfair throughout": {pair, looksOf(unfair, unfair), 1, 1, 0, 10, 10, 100},
		// Both windows have half of the fault.
		"unfair between": {pair, looksOf(fair, unfair, fair), 1, 2, 0, 5, 5, 100},
		"unfair at last": {pair, looksOf(fair, fair, unfair), 1, 2, 0, 5, 2.5, 100},
		// What the CPU did for others is missed by all.
		"less than a CPU": {pair, looksOf([]float64{0.6, 0.2}, []float64{0.6, 0.2}), 1, 1, 0, 15, 10, 100},
		"two CPUs":        {[]claim{{weight: 1}, {weight: 1}, {weight: 1}}, looksOf([]float64{0.5, 0.5, 1}, []float64{0.5, 0.5, 1}), 2, 1, 2, 100.0 / 3, 200.0 / 9, 100},
		"a sleeper":       {nap, looksOf([]float64{0.2, 0.8}, []float64{0.2, 0.8}), 1, 1, 0, 0, 0, 100},
		// The hog is not to blame for what it was left.
		"a late sleeper":   {nap, looksOf([]float64{0.2, 0.8}, []float64{0.1, 0.9}), 1, 1, 0, 5, 2.5, 75},
		"who wants seldom": {seldom, looksOf([]float64{0, 1}, []float64{0, 1}), 1, 1, 0, 0.1, 0.05, 100},
	} {
		e, err := errorsOf(c.claims, c.looks, time.Second, c.cpus)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if e.windows != c.windows || math.Abs(e.maxPct-c.max) > 1e-6 || math.Abs(e.meanPct-c.mean) > 1e-6 || math.Abs(e.leastPct-c.least) > 1e-6 {
			t.Errorf("%s: %+v, want %+v", name, e, c)
		}
		if c.max > 0 && e.worst != c.worst {
			t.Errorf("%s: member %d is the worst, want %d", name, e.worst, c.worst)
		}
	}
	if _, err := errorsOf(pair, looksOf(fair), time.Second, 1); err == nil {
		t.Error("half a second was taken for a window of one")
	}
}
