package daemon

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rota/internal/api"
	"rota/internal/sched"
)

// loader hands out fakes and remembers when.
type loader struct {
	fakes []*fakeScheduler
	at    []time.Duration
	begin time.Time
	fail  map[int]error // by number of the try
	slow  time.Duration // that loading takes
}

func newLoader() *loader { return &loader{begin: time.Now(), fail: map[int]error{}} }

func (l *loader) load() (Scheduler, error) {
	n := len(l.at)
	l.at = append(l.at, time.Since(l.begin))
	time.Sleep(l.slow)
	if err := l.fail[n]; err != nil {
		l.fakes = append(l.fakes, nil)
		return nil, err
	}
	f := newFake()
	l.fakes = append(l.fakes, f)
	return f, nil
}

func start(ctx context.Context, d *Daemon) <-chan error {
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	return done
}

var stall = sched.ExitInfo{Kind: 1026, Reason: "runnable task stall", Msg: "hog[7] failed to run for 5s", Dump: "a\nb\n"}

func TestRunUntilAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoader()
		d, n := newDaemon(t, "", l.load)
		ctx, cancel := context.WithCancel(t.Context())
		done := start(ctx, d)
		synctest.Wait()
		if s := d.Status(); s.State != api.Running || n.count("READY=1") != 1 {
			t.Errorf("state %s, notes %q", s.State, n.list)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if !l.fakes[0].closed || n.count("STOPPING=1") != 1 {
			t.Errorf("closed %v, notes %q", l.fakes[0].closed, n.list)
		}
		if s := d.Status(); s.State != api.Stopping {
			t.Errorf("state %s", s.State)
		}
	})
}

func TestRunGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoader()
		d, _ := newDaemon(t, "", l.load)
		done := start(t.Context(), d)
		for i := range maxTries {
			synctest.Wait()
			l.fakes[i].exit <- stall
			synctest.Wait()
			if i < maxTries-1 {
				s := d.Status()
				if s.State != api.Waiting || !strings.Contains(s.Reason, stall.Msg) || s.LastExit == nil {
					t.Errorf("try %d: %s %q %v", i, s.State, s.Reason, s.LastExit)
				}
				time.Sleep(time.Second << i)
			}
		}
		err := <-done
		if err == nil || !strings.Contains(err.Error(), "ended 5 times within 10m0s, last: runnable task stall (hog[7] failed to run for 5s)") {
			t.Error(err)
		}
		want := []time.Duration{0, 1 * time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second}
		for i := range want {
			if l.at[i] != want[i] {
				t.Errorf("loaded at %v, want %v", l.at, want)
				break
			}
		}
	})
}

func TestRunRestartsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoader()
		d, n := newDaemon(t, "", l.load)
		ctx, cancel := context.WithCancel(t.Context())
		done := start(ctx, d)
		synctest.Wait()
		l.fakes[0].exit <- sched.ExitInfo{Kind: 66, Reason: "cpu hotplug", Restart: true}
		synctest.Wait()
		if s := d.Status(); s.State != api.Running || s.Restarts != 1 || l.at[1] != 0 {
			t.Errorf("%s, %d restarts, loaded at %v", s.State, s.Restarts, l.at)
		}
		if !l.fakes[0].closed {
			t.Error("the ended scheduler was not closed")
		}
		cancel()
		if err := <-done; err != nil || n.count("READY=1") != 2 {
			t.Error(err, n.list)
		}
	})
}

func TestRunEndsWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoader()
		d, _ := newDaemon(t, "", l.load)
		done := start(t.Context(), d)
		synctest.Wait()
		l.fakes[0].exit <- sched.ExitInfo{Kind: 64, Reason: "unregistered", Asked: true}
		if err := <-done; err != nil || len(l.at) != 1 {
			t.Error(err, l.at)
		}
	})
}

func TestRunFirstLoadFails(t *testing.T) {
	l := newLoader()
	l.fail[0] = errors.New("verifier says no")
	d, _ := newDaemon(t, "", l.load)
	if err := d.Run(t.Context()); !errors.Is(err, l.fail[0]) {
		t.Error(err)
	}
}

func TestRunLaterLoadFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoader()
		l.fail[1] = errors.New("busy")
		l.slow = time.Second
		d, _ := newDaemon(t, "", l.load)
		ctx, cancel := context.WithCancel(t.Context())
		done := start(ctx, d)
		synctest.Wait()
		time.Sleep(l.slow)
		synctest.Wait()
		l.fakes[0].exit <- stall
		time.Sleep(1500 * time.Millisecond)
		if s := d.Status(); s.State != api.Starting || !strings.Contains(s.Reason, "loading again after: runnable task stall") {
			t.Errorf("while it loads: %s: %s", s.State, s.Reason)
		}
		time.Sleep(10 * time.Second)
		if s := d.Status(); s.State != api.Running || s.Restarts != 2 {
			t.Errorf("%s, %d restarts, %v", s.State, s.Restarts, l.at)
		}
		cancel()
		<-done
	})
}

func TestStopWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoader()
		d, _ := newDaemon(t, "", l.load)
		ctx, cancel := context.WithCancel(t.Context())
		done := start(ctx, d)
		synctest.Wait()
		l.fakes[0].exit <- stall
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoader()
		d, n := newDaemon(t, "", l.load)
		d.Watchdog = 30 * time.Second
		ctx, cancel := context.WithCancel(t.Context())
		done := start(ctx, d)
		time.Sleep(time.Minute + time.Second)
		if got := n.count("WATCHDOG=1"); got != 4 {
			t.Errorf("%d beats in a minute, want 4", got)
		}
		cancel()
		<-done
	})
}

func TestTries(t *testing.T) {
	now := time.Unix(0, 0)
	var rare tries
	for i := range 20 {
		if wait, ok := rare.next(now.Add(time.Duration(i)*window), false); wait != time.Second || !ok {
			t.Fatalf("failure %d after a long time: %v, %v", i, wait, ok)
		}
	}
	var restarts tries
	for i := range maxRestarts {
		if wait, ok := restarts.next(now, true); wait != 0 || !ok {
			t.Fatalf("restart %d: %v, %v", i, wait, ok)
		}
	}
	if wait, ok := restarts.next(now, true); wait != time.Second || !ok {
		t.Errorf("one restart too many: %v, %v", wait, ok)
	}
}
