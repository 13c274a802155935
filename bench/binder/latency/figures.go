package latency

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"rota/bench/binder/pairs"
)

// goodSync is the share of calls on the caller's CPU above which the original
// says GOOD.
const goodSync = 0.6

// Result is what was measured.
type Result struct {
	Options   Options
	Pairs     map[int]Samples // by number; after a missed deadline not all
	PipeOther []time.Duration
	PipeFifo  []time.Duration
	Missed    bool
	Left      *pairs.Books // what the driver holds more than before
	LeftFault error        // why that is not known

	Boosts      Boosts // by the scheduler's own count
	BoostsFault error  // why that is not known
}

// figures are the original's figures of one kind of caller.
type figures struct {
	avg, worst, best float64 // ms
	miss             int
	meet             float64
}

// figures works them out; a series has at least one call.
func (s Series) figures(deadline time.Duration) figures {
	f := figures{miss: misses(s.Spans, deadline)}
	total := 0.0
	for _, ns := range s.Spans {
		total += float64(ns)
	}
	n := float64(len(s.Spans))
	f.avg = total / n / 1e6
	f.worst, f.best = float64(slices.Max(s.Spans))/1e6, float64(slices.Min(s.Spans))/1e6
	f.meet = 1 - float64(f.miss)/n
	return f
}

// misses is how many spans are longer than the deadline.
func misses(spans []int64, deadline time.Duration) int {
	n := 0
	for _, ns := range spans {
		if ns > deadline.Nanoseconds() {
			n++
		}
	}
	return n
}

// calls is how many calls a pair made.
func (s Samples) calls() int { return len(s.Other.Spans) + len(s.Fifo.Spans) }

// notInherited counts the calls whose server ran at another real-time priority.
func (s Samples) notInherited() int {
	return s.Other.count(otherPriority) + s.Fifo.count(otherPriority)
}

// notSynced counts the calls that were answered on another CPU. The original's
// test of binder looks only at servers that run at the highest priority.
func (s Samples) notSynced(o Options) int {
	bits := byte(otherCPU)
	if o.Compat && o.Kind == Binder {
		bits |= atMaxPriority
	}
	return s.Other.count(bits) + s.Fifo.count(bits)
}

// deadlines are those of ordinary and of real-time calls. The original's test of
// hwbinder always takes 2.5 ms for the former.
func (o Options) deadlines() (other, fifo time.Duration) {
	if o.Compat && o.Kind == HwBinder {
		return DefaultDeadline, o.Deadline
	}
	return o.Deadline, o.Deadline
}

// inherited is the original's verdict: no call at all was answered at another
// real-time priority. It lost count: it added the exit codes of processes, which
// end at 255.
func (r *Result) inherited() bool {
	sum := 0
	for _, s := range r.Pairs {
		n := s.notInherited()
		if r.Options.Compat {
			n %= 256
		}
		sum += n
	}
	return sum == 0
}

// Spread is the distribution of some times.
type Spread struct {
	Samples int       `json:"samples"`
	Avg     float64   `json:"avg_us"`
	Min     float64   `json:"min_us"`
	P50     float64   `json:"p50_us"`
	P90     float64   `json:"p90_us"`
	P95     float64   `json:"p95_us"`
	P99     float64   `json:"p99_us"`
	P999    float64   `json:"p99_9_us"`
	Max     float64   `json:"max_us"`
	Buckets []Bucket  `json:"histogram_us,omitempty"`
	Misses  *MissedOf `json:"deadline,omitempty"`
}

// Bucket is a bar of a histogram: so many times in [Low, High).
type Bucket struct {
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Count int     `json:"count"`
}

// MissedOf is how many of the calls missed the deadline.
type MissedOf struct {
	Miss  int     `json:"miss"`
	Ratio float64 `json:"miss_ratio"`
}

// spread works a distribution out; nothing has none.
func spread(ns []int64) Spread {
	if len(ns) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(ns))
	total := 0.0
	for _, v := range sorted {
		total += float64(v)
	}
	us := func(v int64) float64 { return float64(v) / 1e3 }
	at := func(percent float64) float64 { return us(sorted[rank(len(sorted), percent)]) }
	return Spread{Samples: len(sorted), Avg: total / float64(len(sorted)) / 1e3, Min: us(sorted[0]),
		P50: at(50), P90: at(90), P95: at(95), P99: at(99), P999: at(99.9), Max: us(sorted[len(sorted)-1]),
		Buckets: histogram(sorted)}
}

// rank is the index of a percentile: of the least sample that so many percent of
// all are not above.
func rank(n int, percent float64) int {
	return max(0, min(n-1, int(math.Ceil(percent/100*float64(n)-1e-9))-1))
}

// histogram has four bars for each doubling, beginning at 1 us.
func histogram(sorted []int64) []Bucket {
	var buckets []Bucket
	last := -1
	for _, ns := range sorted {
		bar := bar(ns)
		if bar != last {
			buckets = append(buckets, Bucket{Low: edge(bar), High: edge(bar + 1)})
			last = bar
		}
		buckets[len(buckets)-1].Count++
	}
	return buckets
}

// bar is the number of the bar that a time falls into.
func bar(ns int64) int {
	if ns < 1000 {
		return 0
	}
	quarters := uint64(ns) * 4 / 1000 // of a us; at least 4
	octave := bits.Len64(quarters) - 3
	return 1 + 4*octave + int(quarters>>octave&3)
}

// edge is where a bar begins, in us.
func edge(bar int) float64 {
	if bar == 0 {
		return 0
	}
	octave, quarter := (bar-1)/4, (bar-1)%4
	return math.Ldexp(1+float64(quarter)/4, octave)
}
