package daemon

import (
	"context"
	"time"
)

const (
	// maxTries failures within window are given up: something is wrong that
	// another try does not mend.
	maxTries = 5
	window   = 10 * time.Minute
	// maxRestarts is how often within restartWindow the kernel may ask for a
	// restart (CPU hotplug does) before that counts as a failure.
	maxRestarts   = 10
	restartWindow = time.Minute
)

// tries decides when to load the scheduler again after the kernel ended it.
type tries struct {
	failures, restarts []time.Time
}

// none tells whether nothing has ended yet.
func (t *tries) none() bool { return len(t.failures)+len(t.restarts) == 0 }

// next returns how long to wait before the next try, and false to give up.
// restart is that the kernel asked for one.
func (t *tries) next(now time.Time, restart bool) (time.Duration, bool) {
	if restart {
		t.restarts = append(after(t.restarts, now.Add(-restartWindow)), now)
		if len(t.restarts) <= maxRestarts {
			return 0, true
		}
	}
	t.failures = append(after(t.failures, now.Add(-window)), now)
	if len(t.failures) >= maxTries {
		return 0, false
	}
	return time.Second << (len(t.failures) - 1), true
}

// after keeps the times after since.
func after(times []time.Time, since time.Time) []time.Time {
	for len(times) > 0 && !times[0].After(since) {
		times = times[1:]
	}
	return times
}

// again calls look after first, and again after what it returns, until ctx ends; then
// it closes what it returns.
func again(ctx context.Context, first time.Duration, look func() time.Duration) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for timer := time.NewTimer(first); ; timer.Reset(look()) {
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
				if ctx.Err() != nil {
					return
				}
			}
		}
	}()
	return done
}
