package runnable

import (
	"fmt"
	"testing"
)

// Each bucket of the histogram lies in one range, up to its limit.
func TestBuckets(t *testing.T) {
	w := Waits{Histogram: make([]uint64, 32)}
	for i := range w.Histogram {
		w.Histogram[i] = 1 << i // so that the sum says which are in
	}
	got := ""
	for _, b := range w.Buckets() {
		got += fmt.Sprintf("%s %x; ", b.Name, b.Count)
	}
	// Below 4 us are buckets 0, 1 and 2: [0, 1), [1, 2) and [2, 4).
	if want := "0-4us 7; 4-16us 18; 16-128us e0; 128-1024us 700; 1-4ms 1800; over 4ms ffffe000; "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestShares(t *testing.T) {
	shares := func(histogram ...uint64) (list []float64) {
		for _, b := range (Waits{Histogram: histogram}).Buckets() {
			list = append(list, b.SharePercent)
		}
		return list
	}
	for _, tt := range []struct{ got, want []float64 }{
		{shares(), []float64{0, 0, 0, 0, 0, 0}},
		{shares(1, 0, 1, 2), []float64{50, 50, 0, 0, 0, 0}},
		{shares(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 1), []float64{0, 0, 0, 0, 75, 25}},
	} {
		if fmt.Sprint(tt.got) != fmt.Sprint(tt.want) {
			t.Errorf("%v, want %v", tt.got, tt.want)
		}
	}
}

func TestSum(t *testing.T) {
	cpus := make([]countedWaits, 2)
	cpus[0].Histogram[0], cpus[0].TotalNs, cpus[0].LongestNs = 2, 1500, 900
	cpus[1].Histogram[0], cpus[1].Histogram[3], cpus[1].TotalNs, cpus[1].LongestNs, cpus[1].Lost = 1, 1, 6500, 6000, 7
	w := sum(cpus)
	if w.Count() != 4 || w.Histogram[0] != 3 || w.Histogram[3] != 1 || w.MeanMicros != 2 || w.MaxMicros != 6 || w.MaxIsBound || w.Lost != 7 {
		t.Errorf("%+v", w)
	}
	if w := sum(nil); w.Count() != 0 || w.MeanMicros != Unknown {
		t.Errorf("of nothing: %+v", w)
	}
}
