package main

import (
	"slices"
	"strings"
	"testing"

	"rota/internal/api"
)

// topTimes are two answers, two seconds apart.
func topTimes() (earlier, later api.Status) {
	earlier = api.Status{
		State: api.Running, PID: 7, UptimeSeconds: 10, AttachedSeconds: 9,
		Classes: []api.Class{
			{Name: "default", Tier: "fair", RuntimeMicros: 500, ProgressMicros: 500, Dispatches: 100},
			{Name: "net\x1b", Tier: "priority", RuntimeMicros: 0, CapHits: 1, WaitHistogram: []uint64{5, 5}},
		},
		Boosts: api.Boosts{Wakeups: 4},
	}
	later = earlier
	later.UptimeSeconds, later.AttachedSeconds = 12, 11
	later.Classes = []api.Class{
		{Name: "default", Tier: "fair", Tasks: 9, RuntimeMicros: 500 + 250_000, ProgressMicros: 500 + 125_000, Dispatches: 700, Preempted: 40},
		{Name: "net\x1b", Tier: "priority", Tasks: 2, RuntimeMicros: 750_000, ProgressMicros: 750_000, Dispatches: 3, CapHits: 2, WaitHistogram: []uint64{5, 5, 0, 0, 100},
			WaitMaxMicros: 3000, MemoryBoundPercent: 60},
	}
	later.Boosts = api.Boosts{Wakeups: 104, RuntimeMicros: 1500}
	return earlier, later
}

// fields are the words of the line of a table that begins with name.
func fields(t *testing.T, text, name string) []string {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, name) {
			return strings.Fields(line)
		}
	}
	t.Fatalf("no line of %q in\n%s", name, text)
	return nil
}

func TestTopText(t *testing.T) {
	earlier, later := topTimes()
	text := topText(earlier, api.Since(earlier, later), true)
	for name, want := range map[string][]string{
		"in 2s":   {"in", "2s:", "50", "boosts", "a", "second,", "with", "1.50ms", "of", "CPU", "time"},
		"default": {"default", "fair", "9", "25.0%", "300", "0us", "0us", "0us", "20", "0", "0"},
		// 16 us is where the bucket of the waits since then ends, not the longest wait ever.
		"net?": {"net?", "priority", "2", "75.0%", "1.5", "12us", "16us", "16us", "0", "0.5", "0"},
	} {
		if got := fields(t, text, name); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if strings.Index(text, "net?") > strings.Index(text, "default") {
		t.Errorf("who has most does not stand first:\n%s", text)
	}
}

// Where frequencies count and CPUs belong to classes there are more columns.
func TestTopColumns(t *testing.T) {
	earlier, later := topTimes()
	later.Frequency.Mode = "on"
	later.CPUs = []api.CPU{{CPU: 0, SpeedPercent: 50}, {CPU: 1, SpeedPercent: 100}, {CPU: 2}}
	later.Classes[1].CPUs = []int{1, 2}
	text := topText(earlier, api.Since(earlier, later), true)
	if got, want := fields(t, text, "default")[11:], []string{"0%", "50%", "14.3%", "-"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := fields(t, text, "net?")[11:], []string{"60%", "100%", "85.7%", "1-2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if !strings.Contains(text, "; 2 CPUs at 50 to 100% of full speed\n") {
		t.Errorf("no speeds:\n%s", text)
	}
}

// A scheduler that was loaded again counts from there.
func TestTopAfterRestart(t *testing.T) {
	earlier, later := topTimes()
	later.Restarts, later.AttachedSeconds = 1, 0.5
	if text := topText(earlier, api.Since(earlier, later), false); !strings.Contains(text, "in 500ms: 208 boosts a second") || !strings.HasSuffix(text, "\n\n") {
		t.Error(text)
	}
}
