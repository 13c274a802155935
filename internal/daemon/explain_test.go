package daemon

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rota/internal/api"
	"rota/internal/sched"
)

// explaining is a daemon with these tasks: 11 of class a waits for 12, and 12 for 13;
// 14 waits for 13 and gives nothing.
func explaining(t *testing.T) (*Daemon, *fakeScheduler) {
	t.Helper()
	d, f := attached(t, twoClasses)
	proc := fakeProc{t, d.Proc}
	proc.task(11, 11, "/", "x", 0)
	proc.task(12, 12, "/", "worker", 0)
	proc.task(12, 13, "/", "y", 0)
	proc.task(14, 14, "/", "other", 0)
	wait := func(tid uint32, reason string, gives bool) sched.Wait {
		return sched.Wait{TID: tid, Reason: reason, Gives: gives, For: 3 * time.Millisecond}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tasks = map[uint32]sched.Task{
		11: {Class: 1, Level: 1, Running: true, Waits: wait(12, "binder", true)},
		12: {Class: 0, Level: 1, Awaited: true, Waits: wait(13, "futex", true)},
		13: {Class: 2, Level: 1, Awaited: true, Boosted: time.Millisecond, Ready: time.Microsecond, Lag: -time.Millisecond, CPU: 3,
			Calls: sched.Calls{Given: 7, Boosted: 6}},
		14: {Class: 0, Level: 0, Waits: wait(13, "futex", false)},
	}
	return d, f
}

func TestExplain(t *testing.T) {
	d, _ := explaining(t)
	got, err := d.Explain(t.Context(), 13)
	if err != nil || len(got.Threads) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	last := api.Link{TID: 13, Name: "y", Reason: "futex", Gives: true, AgeMicros: 3000}
	want := api.Thread{
		TID: 13, Name: "y", Class: "b", Rule: d.force.path + ":2", Tier: "fair", Level: "a", State: "waits for a CPU", CPU: 3,
		ReadyMicros: 1, LagMicros: -1000, Boosted: true, BoostedMicros: 1000,
		Givers: []api.Giver{{TID: 11, Name: "x", Class: "a", Chain: []api.Link{
			{TID: 12, Name: "worker", Reason: "binder", Gives: true, AgeMicros: 3000}, last}}},
		WaitsFor: []api.Link{}, Calls: api.Calls{Given: 7, Boosted: 6},
	}
	if diff := cmp.Diff(want, got.Threads[0]); diff != "" {
		t.Error(diff)
	}
}

// A process is all its threads; what a thread waits for is followed to the end.
func TestExplainProcess(t *testing.T) {
	d, _ := explaining(t)
	got, err := d.Explain(t.Context(), 12)
	if err != nil || len(got.Threads) != 2 || got.Threads[0].TID != 12 || got.Threads[1].TID != 13 {
		t.Fatalf("%+v, %v", got, err)
	}
	if rule := got.Threads[0].Rule; rule != "" {
		t.Errorf("rule %q of a thread that none matches", rule)
	}
	got, err = d.Explain(t.Context(), 11)
	if err != nil || got.Threads[0].State != "runs" {
		t.Fatalf("%+v, %v", got, err)
	}
	if chain := got.Threads[0].WaitsFor; len(chain) != 2 || chain[1].TID != 13 || chain[1].Reason != "futex" {
		t.Errorf("%+v", chain)
	}
}

// Who is in tier priority is given no boost; a real-time task is somebody else's.
func TestExplainAbove(t *testing.T) {
	d, f := explaining(t)
	f.mu.Lock()
	f.tasks[13] = sched.Task{Class: 1, Level: 1}
	f.tasks[14] = sched.Task{RealTime: true}
	f.mu.Unlock()
	got, err := d.Explain(t.Context(), 13)
	if err != nil || len(got.Threads[0].Givers) != 0 || got.Threads[0].Level != "a" {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = d.Explain(t.Context(), 14)
	if err != nil || got.Threads[0].State != "real-time, not rota's" {
		t.Errorf("%+v, %v", got, err)
	}
}

// Waits that lead back to where they began are followed for a while only.
func TestExplainRing(t *testing.T) {
	d, f := explaining(t)
	f.mu.Lock()
	f.tasks[13] = sched.Task{Class: 0, Waits: sched.Wait{TID: 12, Gives: true}}
	f.mu.Unlock()
	got, err := d.Explain(t.Context(), 12)
	if err != nil || len(got.Threads[0].WaitsFor) != maxChain {
		t.Fatalf("%+v, %v", got, err)
	}
}

func TestExplainNobody(t *testing.T) {
	d, _ := explaining(t)
	_, err := d.Explain(t.Context(), 99)
	var refused *api.Error
	if !errors.As(err, &refused) || refused.Code != 404 {
		t.Errorf("%v", err)
	}
}

// expiring is a context that ends after so many looks.
type expiring struct {
	context.Context
	looks int
}

func (e *expiring) Err() error {
	if e.looks--; e.looks < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// When time is over nobody is told of some threads as if they were all.
func TestExplainInTime(t *testing.T) {
	d, _ := explaining(t)
	late, all := 0, false
	for looks := 0; !all && looks < 100; looks++ {
		got, err := d.Explain(&expiring{t.Context(), looks}, 12)
		var refused *api.Error
		switch {
		case errors.As(err, &refused) && refused.Code == 503:
			late++
		case err != nil || len(got.Threads) != 2:
			t.Errorf("after %d looks: %+v, %v", looks, got, err)
		default:
			all = true
		}
	}
	if !all || late < 3 {
		t.Errorf("%d answers were late, and one was not: %v", late, all)
	}
}
