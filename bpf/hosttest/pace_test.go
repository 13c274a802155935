package hosttest

import (
	"math"
	"testing"
)

// full is the full speed of pace.h, and all of a task's time.
const full = 1024

// TestPace holds pace.h to the numbers of the USTC paper's model: a task that waits for
// memory phi of its time at f, r of the top frequency, keeps phi + (1 - phi) * r.
func TestPace(t *testing.T) {
	d := build(t)
	steps := []float64{1, 2.27 / 2.53, 2.00 / 2.53, 1.73 / 2.53, 1.47 / 2.53, 1.20 / 2.53, 0.93 / 2.53, 0.5}
	var commands []command
	var want []float64
	for _, r := range steps {
		for _, phi := range []float64{0, 0.05, 0.1, 0.15, 0.5, 0.6, 0.8, 1} {
			kept := phi + (1-phi)*r
			// Of the time at full speed, the same wait is a larger part.
			bound, speed := math.Round(full*phi/kept), math.Round(full*r)
			commands = append(commands, command{"bound", uint64(bound), uint64(speed)}, command{"pace", 1_000_000, 0})
			want = append(want, kept)
		}
	}
	for i, got := range d.run(t, commands) {
		if i%2 == 0 {
			continue
		}
		if kept := float64(got.result) / 1e6; math.Abs(kept-want[i/2]) > 0.002 {
			t.Errorf("%d of 1024 bound at speed %d of 1024: keeps %.4f, want %.4f", commands[i-1].a, commands[i-1].b, kept, want[i/2])
		}
	}
}

// TestPaceShares: with time charged at its pace, two tasks of r = 0.5, one that only
// computes and one that waits half of its time then, share time 0.6 to 0.4 and
// keep as much, 0.6 of what they would do at full speed.
func TestPaceShares(t *testing.T) {
	d := build(t)
	got := d.run(t, []command{{"bound", 0, 512}, {"pace", 1 << 40, 0}, {"bound", 683, 512}, {"pace", 1 << 40, 0}})
	a, b := float64(got[1].result), float64(got[3].result)
	if share := b / (a + b); math.Abs(share-0.6) > 0.001 {
		t.Errorf("who computes gets %.4f of the time, want 0.6", share)
	}
	if kept := 2 * a * b / (a + b) / (1 << 40); math.Abs(kept-0.6) > 0.001 {
		t.Errorf("both keep %.4f, want 0.6", kept)
	}
}

// FuzzPace: never more than the time itself, and no less than the speed allows.
func FuzzPace(f *testing.F) {
	d := build(f)
	f.Add(uint64(1000), uint64(512), uint64(300))
	f.Add(uint64(1)<<47-1, uint64(1024), uint64(1))
	f.Fuzz(func(t *testing.T, ns, bound, speed uint64) {
		ns, bound, speed = ns%(1<<47), bound%(full+1), 1+speed%full
		got := d.run(t, []command{{"bound", bound, speed}, {"pace", ns, 0}})[1].result
		least := float64(ns)*float64(speed)/full - float64(ns)/(1<<15) - 2
		if got > ns || float64(got) < least {
			t.Errorf("%d ns, %d bound, speed %d: %d", ns, bound, speed, got)
		}
	})
}
