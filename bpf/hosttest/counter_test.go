package hosttest

import (
	"math"
	"testing"
)

// reading is what a counter has at some time: how much it counted, and for how many ns
// it was wanted and did count.
type reading struct{ counter, enabled, running uint64 }

func (r reading) commands() []command {
	return []command{{"read", r.counter, r.enabled}, {"ran", r.running, 0}}
}

// TestCounterDelta: what counters counted that took turns, and who had none.
func TestCounterDelta(t *testing.T) {
	d := build(t)
	for name, test := range map[string]struct {
		from, to reading
		want     uint64
		counted  bool
	}{
		"all the time":    {reading{5, 100, 100}, reading{1_000_005, 1_100, 1_100}, 1_000_000, true},
		"half of it":      {reading{5, 1000, 700}, reading{1_000_005, 3_000, 1_700}, 2_000_000, true},
		"a third":         {reading{0, 0, 0}, reading{900, 3_000_000, 1_000_000}, 2700, true},
		"no turn":         {reading{7, 1000, 700}, reading{7, 3_000, 700}, 0, false},
		"hardly a turn":   {reading{0, 0, 0}, reading{900, 1 << 30, 1 << 20}, 900, false},
		"nothing counted": {reading{7, 1000, 700}, reading{7, 3_000, 2700}, 0, true},
		"wraps":           {reading{math.MaxUint64 - 4, 10, 10}, reading{5, 20, 20}, 10, true},
	} {
		commands := append(test.from.commands(), test.to.commands()...)
		got := d.run(t, append(commands, command{"delta", 0, 0}, command{"turns", 0, 0}))
		n, counted := got[4].result, got[5].result == 1
		if counted != test.counted || counted && math.Abs(float64(n)-float64(test.want)) > 0.001*float64(test.want) {
			t.Errorf("%s: %d, counted %v; want %d, %v", name, n, counted, test.want, test.counted)
		}
	}
}

// TestCounterWaited: of the time at f, cycles that wait and accesses that last; never more
// than all of it.
func TestCounterWaited(t *testing.T) {
	d := build(t)
	for name, test := range map[string]struct{ ns, waits, cycles, latency, want uint64 }{
		"cycles":                {1_000_000, 500_000, 2_000_000, 0, 250_000},
		"all cycles":            {1_000_000, 2_000_000, 2_000_000, 0, 1_000_000},
		"more than all":         {1_000_000, 1 << 60, 2_000_000, 0, 1_000_000},
		"none counted":          {1_000_000, 0, 0, 0, 1_000_000},
		"accesses of 80 ns":     {1_000_000, 5_000, 0, 80_000, 400_000},
		"accesses that overlap": {1_000_000, 50_000, 0, 80_000, 1_000_000},
		"two seconds":           {1 << 31, 1 << 32, 1 << 33, 0, 1 << 30},
	} {
		got := d.run(t, []command{{"counts", test.waits, test.cycles}, {"latency", test.latency, 0}, {"waited", test.ns, 0}})[2].result
		if math.Abs(float64(got)-float64(test.want)) > 0.0001*float64(test.want) {
			t.Errorf("%s: %d ns, want %d", name, got, test.want)
		}
	}
}

// TestCounterLearn: recorded series of one program at changing frequencies: the share of
// its work that waits comes out, whatever the frequency, and follows when it changes.
func TestCounterLearn(t *testing.T) {
	d := build(t)
	const turn, unknown = 4_000_000, 0xffff
	for _, phi := range []float64{0, 0.05, 0.15, 0.6, 1} {
		var commands []command
		for i := range 60 {
			r := []float64{1, 930.0 / 2530, 0.5}[i/20]
			// Of a turn at f so much waits: the paper's phi.
			waited := phi / (phi + (1-phi)/r) * turn
			commands = append(commands, command{"bound", 0, uint64(full * r)}, command{"learn", turn, uint64(waited)})
		}
		got := d.run(t, commands)
		for i := 1; i < len(got); i += 2 {
			if share := float64(got[i].result) / full; math.Abs(share-phi) > 0.004 {
				t.Errorf("phi %.2f: %.4f after turn %d", phi, share, i/2+1)
			}
		}
	}
	commands := []command{{"bound", 0, full}, {"learn", 400_000, 0}}
	for range 20 {
		commands = append(commands, command{"learn", turn, 0})
	}
	for range 20 {
		commands = append(commands, command{"learn", turn, turn})
	}
	got := d.run(t, commands)
	if first, before, after := got[1].result, got[21].result, got[41].result; first != unknown || before != 0 || after < 9*full/10 {
		t.Errorf("after 0.4 ms %d, want unknown; without waits %d; 80 ms after they began %d of %d, want 9 of 10 parts", first, before, after, full)
	}
}

// TestCounterSpeed: the frequency from cycles; above full speed is full speed.
func TestCounterSpeed(t *testing.T) {
	d := build(t)
	for name, test := range map[string]struct{ ns, cycles, khz, want uint64 }{
		"full":          {1_000_000, 2_530_000, 2_530_000, 1024},
		"930 of 2530":   {1_000_000, 930_000, 2_530_000, 376},
		"half, 50 us":   {50_000, 63_250, 2_530_000, 512},
		"two seconds":   {1 << 31, 2_700_000_000, 2_530_000, 508},
		"faster":        {1_000_000, 5_000_000, 2_530_000, 1024},
		"nothing":       {1_000_000, 0, 2_530_000, 1},
		"slow counters": {1_000_000, 24_000, 24_000, 1024},
	} {
		got := d.run(t, []command{{"counts", 0, test.cycles}, {"speed", test.ns, test.khz}})[1].result
		if math.Abs(float64(got)-float64(test.want)) > 1 {
			t.Errorf("%s: %d of 1024, want %d", name, got, test.want)
		}
	}
}

// FuzzCounter: whatever is counted, a share is one, or unknown.
func FuzzCounter(f *testing.F) {
	d := build(f)
	f.Add(uint64(1000), uint64(512), uint64(300), uint64(0), uint64(7))
	f.Add(uint64(1)<<31, uint64(1)<<47, uint64(1), uint64(1)<<20, uint64(1))
	f.Fuzz(func(t *testing.T, ns, waits, cycles, latency, speed uint64) {
		ns, waits, cycles, latency, speed = ns%(1<<31+1), waits%(1<<42), cycles%(1<<42), latency%(1<<21), 1+speed%full
		first := []command{{"counts", waits, cycles}, {"latency", latency, 0}, {"waited", ns, 0}}
		waited := d.run(t, first)[2].result
		if waited > ns {
			t.Fatalf("%d of %d ns", waited, ns)
		}
		share := d.run(t, []command{{"bound", 0, speed}, {"learn", ns, waited}, {"learn", ns, waited}})[2].result
		if share > full && share != 0xffff {
			t.Errorf("share %d", share)
		}
	})
}
