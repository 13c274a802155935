package output

import (
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
)

// Latency is the result of one thread of cyclictest, in us.
type Latency struct {
	Cycles        int64
	Min, Avg, Max float64
	// Counts maps a latency to how often it was seen.
	Counts map[int]int64
	// Over counts the cycles that the histogram had no place for.
	Over int64
}

// cyclictestFile is the part of the tool's JSON that we read.
type cyclictestFile struct {
	Threads map[string]struct {
		Histogram map[string]int64 `json:"histogram"`
		Cycles    int64            `json:"cycles"`
		Min       float64          `json:"min"`
		Max       float64          `json:"max"`
		Avg       float64          `json:"avg"`
	} `json:"thread"`
}

// maxLatency bounds a latency that cyclictest can count, in us (its own bound).
const maxLatency = 1000000

// Cyclictest reads the file that "cyclictest -h US --json=FILE" writes for one
// measuring thread.
func Cyclictest(data []byte) (Latency, error) {
	var file cyclictestFile
	if err := json.Unmarshal(data, &file); err != nil {
		return Latency{}, fmt.Errorf("cyclictest: %w", err)
	}
	thread, ok := file.Threads["0"]
	if !ok || len(file.Threads) != 1 {
		return Latency{}, fmt.Errorf("cyclictest: %d threads in its file: must be one, called 0", len(file.Threads))
	}
	if thread.Cycles < 1 {
		return Latency{}, fmt.Errorf("cyclictest: %d cycles: nothing was measured", thread.Cycles)
	}
	l := Latency{Cycles: thread.Cycles, Min: thread.Min, Avg: thread.Avg, Max: thread.Max, Counts: map[int]int64{}}
	l.Over = thread.Cycles
	for text, count := range thread.Histogram {
		us, err := strconv.Atoi(text)
		if err != nil || us < 0 || us > maxLatency || count < 0 || count > l.Over {
			return Latency{}, fmt.Errorf("cyclictest: bucket %q of %d: must be 0..%d us and at most the cycles", clip(text), count, maxLatency)
		}
		l.Counts[us] += count
		l.Over -= count
	}
	// A cycle that the end of the measurement cut off is in the maximum only.
	if l.Over == 0 && l.Max >= l.largest()+1 {
		l.Cycles++
		l.Over++
	}
	return l, nil
}

// largest is the largest latency in the histogram, in us.
func (l Latency) largest() float64 {
	largest := 0
	for us := range l.Counts {
		largest = max(largest, us)
	}
	return float64(largest)
}

// Percentile returns the latency in us that p percent of the cycles do not
// exceed; cycles outside the histogram count as the maximum.
func (l Latency) Percentile(p float64) float64 {
	values := make([]int, 0, len(l.Counts))
	for us := range l.Counts {
		values = append(values, us)
	}
	sort.Ints(values)
	want, seen := p*float64(l.Cycles)/100, int64(0)
	for _, us := range values {
		if seen += l.Counts[us]; float64(seen) >= want {
			return float64(us)
		}
	}
	return l.Max
}
