package api

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPercentile(t *testing.T) {
	tests := []struct {
		histogram []uint64
		p, want   float64
	}{
		{nil, 0.5, 0},
		{[]uint64{0, 0}, 0.5, 0},
		{[]uint64{10}, 0.5, 0.5},
		{[]uint64{0, 0, 0, 100}, 0.5, 6}, // 4..8 us
		{[]uint64{99, 0, 0, 1}, 0.99, 1}, // the last of the first bucket
		{[]uint64{98, 0, 0, 2}, 0.99, 6}, // the middle of the last
		{[]uint64{0, 50, 50}, 0.5, 2},    // the edge between 1..2 and 2..4
		{[]uint64{0, 50, 50}, 1, 4},
	}
	for _, tt := range tests {
		if got := Percentile(tt.histogram, tt.p); got != tt.want {
			t.Errorf("%v at %v: %v, want %v", tt.histogram, tt.p, got, tt.want)
		}
	}
}

func TestSince(t *testing.T) {
	earlier := Status{Classes: []Class{{Name: "a", RuntimeMicros: 100, WaitHistogram: []uint64{5, 0, 1}, WaitMaxMicros: 3}}}
	later := Status{Classes: []Class{
		{Name: "a", RuntimeMicros: 130, WaitHistogram: []uint64{5, 2, 1}, WaitMaxMicros: 3, Dispatches: 4},
		{Name: "b", RuntimeMicros: 90, WaitHistogram: []uint64{1}, WaitMaxMicros: 0.5},
	}}
	want := []Class{
		{Name: "a", RuntimeMicros: 30, SharePercent: 25, WaitHistogram: []uint64{0, 2, 0}, WaitP50Micros: 1.5, WaitP99Micros: 1.99, WaitMaxMicros: 2, Dispatches: 4},
		{Name: "b", RuntimeMicros: 90, SharePercent: 75, WaitHistogram: []uint64{1}, WaitP50Micros: 0.5, WaitP99Micros: 0.5, WaitMaxMicros: 0.5},
	}
	if diff := cmp.Diff(want, Since(earlier, later).Classes); diff != "" {
		t.Error(diff)
	}
	later.Restarts = 1
	if got := Since(earlier, later).Classes[0].RuntimeMicros; got != 130 {
		t.Errorf("after a restart: %d", got)
	}
}

// What is counted of memory is that of the interval.
func TestSinceCounted(t *testing.T) {
	earlier := Status{Classes: []Class{{Name: "a", MemoryBoundPercent: 10, MemoryBoundCounted: true, MemoryCountedMicros: 1000}}}
	later := Status{Classes: []Class{{Name: "a", MemoryBoundPercent: 20, MemoryBoundCounted: true, MemoryCountedMicros: 1250}}}
	if got := Since(earlier, later).Classes[0]; got.MemoryBoundPercent != 60 || got.MemoryCountedMicros != 250 {
		t.Errorf("%v %% of %d us, must be 60 of 250", got.MemoryBoundPercent, got.MemoryCountedMicros)
	}
	if got := Since(later, later).Classes[0]; got.MemoryBoundPercent != 20 {
		t.Errorf("%v %% where nothing was counted, must be 20", got.MemoryBoundPercent)
	}
}

// The scheduler has ended, and the daemon waits before it loads it again: nothing is counted.
func TestSinceAnEnd(t *testing.T) {
	earlier := Status{AttachedSeconds: 9, Classes: []Class{{Name: "a", Dispatches: 5, RuntimeMicros: 7}}, Boosts: Boosts{Wakeups: 8, RuntimeMicros: 9}}
	later := Status{Classes: []Class{{Name: "a"}}}
	if got := Since(earlier, later); got.Classes[0].Dispatches != 0 || got.Boosts != (Boosts{}) {
		t.Errorf("ended: %+v", got)
	}
	later.AttachedSeconds = 10 // the counters could not be read
	if got := Since(earlier, later); got.Classes[0].Dispatches != 0 || got.Classes[0].RuntimeMicros != 0 || got.Boosts != (Boosts{}) {
		t.Errorf("not read: %+v", got)
	}
}
