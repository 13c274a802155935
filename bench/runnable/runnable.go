// Package runnable counts how long tasks wait for a CPU: from ready to running.
// It has a small BPF object of its own on the kernel's scheduling events, which
// needs no scheduler of ours, and says in which buckets the waits fall.
//
// It does not ask rota's daemon, which counts the waits of its classes itself;
// the command does, and puts them into the same buckets.
package runnable

import "math"

// Unknown stands for a figure that the source of the waits does not keep.
const Unknown = -1

// Waits is how long tasks waited.
type Waits struct {
	Histogram  []uint64 // bucket i: waits in [2^(i-1), 2^i) us; bucket 0: below 1 us
	MeanMicros float64  // or Unknown
	MaxMicros  float64
	MaxIsBound bool   // the longest was at most MaxMicros; how long is not known
	Lost       uint64 // waits that could not be counted
}

// Count is how many waits there were.
func (w Waits) Count() (n uint64) {
	for _, count := range w.Histogram {
		n += count
	}
	return n
}

// Bucket is one range of waits.
type Bucket struct {
	Name         string  `json:"name"`
	FromMicros   uint64  `json:"fromMicros"`
	ToMicros     uint64  `json:"toMicros"` // below this; 0: no limit
	Count        uint64  `json:"count"`
	SharePercent float64 `json:"sharePercent"`
}

// ranges are the buckets. Their limits are powers of two, so each is made of
// whole buckets of a histogram: 1 ms is 1024 us here.
var ranges = []Bucket{
	{Name: "0-4us", FromMicros: 0, ToMicros: 4},
	{Name: "4-16us", FromMicros: 4, ToMicros: 16},
	{Name: "16-128us", FromMicros: 16, ToMicros: 128},
	{Name: "128-1024us", FromMicros: 128, ToMicros: 1024},
	{Name: "1-4ms", FromMicros: 1024, ToMicros: 4096},
	{Name: "over 4ms", FromMicros: 4096},
}

// Buckets is the distribution of the waits.
func (w Waits) Buckets() []Bucket {
	out := append([]Bucket(nil), ranges...)
	for i, n := range w.Histogram {
		// 2^i is what all in the bucket are below.
		for b := range out {
			if to := out[b].ToMicros; to == 0 || math.Ldexp(1, i) <= float64(to) {
				out[b].Count += n
				break
			}
		}
	}
	total := w.Count()
	for b := range out {
		if total > 0 {
			out[b].SharePercent = 100 * float64(out[b].Count) / float64(total)
		}
	}
	return out
}
