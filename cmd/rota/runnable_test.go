package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"rota/bench/runnable"
	"rota/internal/api"
)

func answer(longest float64, histogram ...uint64) api.Status {
	return api.Status{PID: 1, State: api.Running, Classes: []api.Class{
		{Name: "default"}, {Name: "audio", WaitHistogram: histogram, WaitMaxMicros: longest},
	}}
}

func TestWaitsBetween(t *testing.T) {
	for _, tt := range []struct {
		name           string
		earlier, later api.Status
		histogram      string
		longest        float64
		bound          bool
	}{
		{"a new longest", answer(3, 1, 2, 1), answer(14, 1, 5, 1, 0, 1), "[0 3 0 0 1]", 14, false},
		{"an old longest", answer(900, 1, 2, 1, 0, 1), answer(900, 1, 5, 2, 0, 1), "[0 3 1 0 0]", 4, true},
		{"longest in the last bucket", answer(900, 0, 0), answer(900, 0, 2), "[0 2]", 900, true},
		{"nobody waited", answer(900, 1, 2, 1), answer(900, 1, 2, 1), "[0 0 0]", 1, true},
		{"a first wait", answer(0), answer(2, 0, 0, 1), "[0 0 1]", 2, false},
	} {
		w, err := waitsBetween(tt.earlier, tt.later, "audio")
		if err != nil || fmt.Sprint(w.Histogram) != tt.histogram || w.MaxMicros != tt.longest || w.MaxIsBound != tt.bound || w.MeanMicros != runnable.Unknown {
			t.Errorf("%s: %+v, error %v", tt.name, w, err)
		}
	}
}

func TestWaitsBetweenFaults(t *testing.T) {
	good, waiting, again, gone := answer(1, 1), answer(1, 1), answer(1, 1), answer(1, 1)
	waiting.State = api.Waiting
	again.Restarts = 1
	gone.Classes = gone.Classes[:1]
	for _, tt := range []struct {
		earlier, later api.Status
		name, want     string
	}{
		{good, good, "adio", `class "adio": is unknown: did you mean audio?`},
		{good, good, "net", `class "net": is unknown: known are default, audio`},
		{waiting, good, "audio", `class "audio": rota is waiting and schedules nothing: see: rota status`},
		{good, gone, "audio", `meanwhile: class "audio": is unknown: known are default`},
		{good, again, "audio", `class "audio": the scheduler was loaded again meanwhile: measure again`},
	} {
		if _, err := waitsBetween(tt.earlier, tt.later, tt.name); err == nil || err.Error() != tt.want {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
}

func TestAwait(t *testing.T) {
	stay, leave := func() bool { return false }, func() bool { return true }
	silent := func(time.Duration) {}
	if end := await(t.Context(), time.Millisecond, stay, silent); end != "" {
		t.Errorf("at its time: %q", end)
	}
	if end := await(t.Context(), time.Minute, leave, silent); end != endGone {
		t.Errorf("the process gone: %q", end)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if end := await(ctx, time.Minute, stay, silent); end != endInterrupted {
		t.Errorf("interrupted: %q", end)
	}
}

func TestRunnableReport(t *testing.T) {
	for _, tt := range []struct {
		w    runnable.Waits
		end  string
		want string
	}{
		{runnable.Waits{Histogram: []uint64{0}, MeanMicros: runnable.Unknown}, "", "\ncount 0\n"},
		{runnable.Waits{Histogram: []uint64{1, 2, 0, 0, 1}, MeanMicros: 4.25, MaxMicros: 1500}, endGone,
			"   0-4us      3  75.00%\n    4-16us      1  25.00%\n"},
		{runnable.Waits{Histogram: []uint64{3}, MeanMicros: 4.25, MaxMicros: 1500, Lost: 2}, endGone,
			"\ncount 3, mean 4.2us, max 1.50ms, 2 more waits were lost: too many tasks were ready, ended early: the process has ended\n"},
		{runnable.Waits{Histogram: []uint64{3}, MeanMicros: runnable.Unknown, MaxMicros: 16, MaxIsBound: true}, "", "\ncount 3, max at most 16.0us\n"},
	} {
		var b strings.Builder
		if err := newRunnableReport("class \"a\"", time.Second, tt.end, tt.w).write(&b); err != nil || !strings.Contains(b.String(), tt.want) {
			t.Errorf("error %v, no %q in\n%s", err, tt.want, b.String())
		}
	}
}
