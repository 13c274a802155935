package pipe

import (
	"os"
	"strings"
	"testing"
	"time"

	"rota/bench/peer"
)

func TestMeasureSwitch(t *testing.T) {
	g := peer.NewGroup(t.Context(), os.Stderr)
	defer g.Stop()
	cpus, err := CPUs()
	if err != nil {
		t.Fatal(err)
	}
	all, err := MeasureSwitch(g, SwitchOptions{CPU: cpus[0], Rounds: 100, Repeats: 2})
	if err != nil || len(all) != 2 {
		t.Fatalf("%d repetitions, error %v", len(all), err)
	}
	for _, r := range all {
		if r.Rounds != 100 || r.Passed <= 0 || r.Alone <= 0 || r.Switches < 200 {
			t.Errorf("%+v", r)
		}
	}
}

func TestSwitchFaults(t *testing.T) {
	g := peer.NewGroup(t.Context(), os.Stderr)
	defer g.Stop()
	for want, o := range map[string]SwitchOptions{
		"--iterations 0: must be 1..10000000": {Repeats: 1},
		"--repeat 1001: must be 1..1000":      {Rounds: 1, Repeats: 1001},
		"keep to CPU 1000: invalid argument":  {Rounds: 1, Repeats: 1, CPU: 1000},
	} {
		if _, err := MeasureSwitch(g, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestCostOf(t *testing.T) {
	c := CostOf([]Repetition{
		{Passed: 5000 * time.Nanosecond, Alone: 2000 * time.Nanosecond, Rounds: 10, Switches: 20},
		{Passed: 9000 * time.Nanosecond, Alone: 2400 * time.Nanosecond, Rounds: 10, Switches: 22},
		{Passed: 4000 * time.Nanosecond, Alone: 2200 * time.Nanosecond, Rounds: 10, Switches: 20},
		{Passed: 6000 * time.Nanosecond, Alone: 2000 * time.Nanosecond, Rounds: 10, Switches: 20},
	})
	want := SwitchCost{
		Round: Spread{400, 550, 900}, Pair: Spread{100, 105, 120}, Switch: Spread{90, 175, 300}, SwitchesPerRound: 2.05,
	}
	if c != want {
		t.Errorf("%+v, want %+v", c, want)
	}
}
