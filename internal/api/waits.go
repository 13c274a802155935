package api

import "math"

// Percentile is the wait in microseconds below which the share p (0..1) of
// the waits in a histogram lies, taking the waits of a bucket as evenly
// spread. Buckets are as in Class.WaitHistogram.
func Percentile(histogram []uint64, p float64) float64 {
	total := 0.0
	for _, n := range histogram {
		total += float64(n)
	}
	rest := p * total
	for i, n := range histogram {
		if n == 0 || rest > float64(n) {
			rest -= float64(n)
			continue
		}
		low, high := bucket(i)
		return low + (high-low)*max(rest, 0)/float64(n)
	}
	return 0
}

// bucket is the range of waits in microseconds that bucket i holds.
func bucket(i int) (low, high float64) {
	if i == 0 {
		return 0, 1
	}
	return math.Ldexp(1, i-1), math.Ldexp(1, i)
}

// Derive fills in what follows from the counters: shares and percentiles.
func Derive(classes []Class) {
	total, progress := int64(0), int64(0)
	for _, c := range classes {
		total += c.RuntimeMicros
		progress += c.ProgressMicros
	}
	for i := range classes {
		c := &classes[i]
		if total > 0 {
			c.SharePercent = 100 * float64(c.RuntimeMicros) / float64(total)
		}
		if progress > 0 {
			c.ProgressSharePercent = 100 * float64(c.ProgressMicros) / float64(progress)
		}
		c.WaitP50Micros = atMost(Percentile(c.WaitHistogram, 0.5), c.WaitMaxMicros)
		c.WaitP99Micros = atMost(Percentile(c.WaitHistogram, 0.99), c.WaitMaxMicros)
	}
}

// atMost keeps an interpolated value below the maximum that was measured.
func atMost(v, most float64) float64 {
	if most > 0 {
		return min(v, most)
	}
	return v
}

// Anew tells whether the scheduler was loaded, or ended, between two readings: its counters
// then begin at zero.
func Anew(earlier, later Status) bool {
	return later.Restarts != earlier.Restarts || later.PID != earlier.PID || later.AttachedSeconds < earlier.AttachedSeconds
}

// Since is what happened between two readings of one daemon: the counters of
// later less those of earlier, shares and percentiles anew. The longest wait
// can't be told for an interval, so the bound of the highest bucket in use
// stands for it. Classes that were not there before count from zero, and so
// does everything when the scheduler was loaded again in between.
func Since(earlier, later Status) Status {
	if Anew(earlier, later) {
		return later
	}
	before := map[string]Class{}
	for _, c := range earlier.Classes {
		before[c.Name] = c
	}
	out := later
	out.Classes = make([]Class, len(later.Classes))
	for i, c := range later.Classes {
		b := before[c.Name]
		c.RuntimeMicros = max(0, c.RuntimeMicros-b.RuntimeMicros)
		c.ProgressMicros = max(0, c.ProgressMicros-b.ProgressMicros)
		c.countedSince(b)
		c.Dispatches = less(c.Dispatches, b.Dispatches)
		c.Preempting = less(c.Preempting, b.Preempting)
		c.Preempted = less(c.Preempted, b.Preempted)
		c.CapHits = less(c.CapHits, b.CapHits)
		c.Rescues = less(c.Rescues, b.Rescues)
		c.CPUsReturned = less(c.CPUsReturned, b.CPUsReturned)
		c.CPUsExpected = less(c.CPUsExpected, b.CPUsExpected)
		c.WaitHistogram = subtract(c.WaitHistogram, b.WaitHistogram)
		c.WaitMaxMicros = min(c.WaitMaxMicros, LongestWait(c.WaitHistogram))
		out.Classes[i] = c
	}
	Derive(out.Classes)
	out.Boosts = later.Boosts.since(earlier.Boosts)
	return out
}

// countedSince takes from what was counted of memory what was by then; the percentage is that of all where
// nothing was counted since.
func (c *Class) countedSince(earlier Class) {
	counted := c.MemoryCountedMicros - earlier.MemoryCountedMicros
	if counted <= 0 {
		c.MemoryCountedMicros = 0
		return
	}
	waited := c.MemoryBoundPercent*float64(c.MemoryCountedMicros) - earlier.MemoryBoundPercent*float64(earlier.MemoryCountedMicros)
	c.MemoryBoundPercent = min(max(waited/float64(counted), 0), 100)
	c.MemoryCountedMicros = counted
}

func (b Boosts) since(earlier Boosts) Boosts {
	return Boosts{
		Futex: less(b.Futex, earlier.Futex), Locks: less(b.Locks, earlier.Locks), Wakeups: less(b.Wakeups, earlier.Wakeups), Binder: less(b.Binder, earlier.Binder),
		Chained: less(b.Chained, earlier.Chained), Fetched: less(b.Fetched, earlier.Fetched),
		Ended: less(b.Ended, earlier.Ended), Spent: less(b.Spent, earlier.Spent),
		RuntimeMicros: max(0, b.RuntimeMicros-earlier.RuntimeMicros),
	}
}

// less is a counter less what it was; 0 when it could not be read this time.
func less(now, before uint64) uint64 { return now - min(now, before) }

func subtract(a, b []uint64) []uint64 {
	out := append([]uint64(nil), a...)
	for i := range min(len(a), len(b)) {
		out[i] = less(a[i], b[i])
	}
	return out
}

// LongestWait is the upper bound in microseconds of the last bucket in use.
func LongestWait(histogram []uint64) float64 {
	for i := len(histogram) - 1; i >= 0; i-- {
		if histogram[i] > 0 {
			_, high := bucket(i)
			return high
		}
	}
	return 0
}
