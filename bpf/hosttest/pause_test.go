package hosttest

import (
	"slices"
	"testing"
)

const (
	spareNs   = 200_000 // PAUSE_SPARE_NS
	sparePart = 8       // PAUSE_SPARE_PART
	msNs      = 1_000_000
)

// rests is what a class does, and when it is expected after that: near and late, in ns.
func rests(t testing.TB, d driver, pausesNs ...uint64) (near, late uint64) {
	t.Helper()
	var commands []command
	for _, ns := range pausesNs {
		commands = append(commands, command{"rested", ns, 0})
	}
	got := d.run(t, append(commands, command{"near", 0, 0}, command{"late", 0, 0}))
	return got[len(got)-2].result, got[len(got)-1].result
}

// spare is how much sooner and later than the last ones the next may end.
func spare(least, most uint64) uint64 { return most - least + spareNs + least/sparePart }

// TestPause: who comes back in beats is expected, and nobody else is.
func TestPause(t *testing.T) {
	d := build(t)
	for _, c := range []struct {
		name        string
		pausesMs    []uint64
		least, most float64 // expected between these, in us; 0: not known
	}{
		{"nothing is known", nil, 0, 0},
		{"one pause is none", []uint64{24}, 0, 0},
		{"two", []uint64{24, 24}, 24000, 24000},
		{"two that have nothing in common", []uint64{1, 1000}, 1000000, 1000000},
		{"a longer one stretches", []uint64{24, 24, 28}, 24500, 28000},
		{"a shorter one too", []uint64{24, 24, 18}, 18000, 23250},
		{"for a while", []uint64{24, 24, 18, 24}, 18750, 24000},
		{"an odd one is nothing", []uint64{24, 24, 500}, 24000, 24000},
		{"nor is one that is too short", []uint64{24, 24, 3}, 24000, 24000},
		{"two odd ones, not in a row", []uint64{24, 24, 500, 24, 3, 24}, 24000, 24000},
		{"two of them begin anew", []uint64{24, 24, 500, 510}, 510000, 510000},
		{"who differs by more than twice is not expected", []uint64{24, 24, 13, 44}, 0, 0},
		{"too short to give anything back", []uint64{0, 0, 0}, 0, 0},
	} {
		var ns []uint64
		for _, ms := range c.pausesMs {
			ns = append(ns, ms*msNs)
		}
		near, late := rests(t, d, ns...)
		if c.least == 0 {
			if near != 0 {
				t.Errorf("%s: expected after %d ns", c.name, near)
			}
			continue
		}
		least, most := uint64(c.least*1000), uint64(c.most*1000)
		if want := least - spare(least, most); near != want {
			t.Errorf("%s: expected after %d ns, want %d", c.name, near, want)
		}
		if want := most + spare(least, most); late != want {
			t.Errorf("%s: late after %d ns, want %d", c.name, late, want)
		}
	}
}

// TestPauseForgets: a pause that is not in the beat, but not odd either, has CPUs kept for longer for a while
// only: after twenty beats for less than twice as long as without it.
func TestPauseForgets(t *testing.T) {
	d := build(t)
	even := slices.Repeat([]uint64{19 * msNs}, 20)
	near, late := rests(t, d, append([]uint64{1000 * msNs, 19 * msNs}, even...)...)
	for _, start := range []uint64{11, 30, 37} {
		n, l := rests(t, d, append([]uint64{1000 * msNs, start * msNs}, even...)...)
		if n == 0 || l-n > 2*(late-near) {
			t.Errorf("after a pause of %d ms and 20 beats of 19: expected from %d to %d ns, without it from %d to %d", start, n, l, near, late)
		}
	}
}

// FuzzPause: whatever the pauses are, who is expected is so before he is late, and after even
// ones he is.
func FuzzPause(f *testing.F) {
	d := build(f)
	f.Add(uint64(24*msNs), uint64(28*msNs), uint64(3), uint64(30*msNs))
	f.Add(uint64(1), ^uint64(0), uint64(0), uint64(1)<<63)
	f.Fuzz(func(t *testing.T, a, b, c, even uint64) {
		if near, late := rests(t, d, a, b, c, b, a, c); near >= late {
			t.Errorf("%d, %d, %d ns: expected after %d ns, late after %d", a, b, c, near, late)
		}
		even = msNs + even%(1<<59)
		if near, late := rests(t, d, a, b, c, even, even, even); near == 0 && late == even+spare(even, even) {
			t.Errorf("%d, %d, %d ns, then three times %d: not expected", a, b, c, even)
		}
	})
}
