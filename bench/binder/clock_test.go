package binder

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestClock(t *testing.T) {
	c := newClock()
	for range 3 {
		before := monotonic(t)
		now := c.now()
		if after := monotonic(t); now < before-50*time.Microsecond || now > after+50*time.Microsecond {
			t.Errorf("%v is not between %v and %v", now, before, after)
		}
	}
}

func monotonic(t *testing.T) time.Duration {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ts.Nano())
}
