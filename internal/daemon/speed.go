package daemon

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"rota/internal/api"
	"rota/internal/config"
	"rota/internal/frequency"
)

const (
	// speedEvery is how often frequencies are read while they matter: the kernel changes
	// them within some ms, shares are promised for a second.
	speedEvery = 100 * time.Millisecond
	// speedRetry is how often a machine is asked again that did not say.
	speedRetry = 10 * time.Second
)

// followSpeeds tells the scheduler how fast the CPUs run, as long as the configuration
// wants that, until ctx ends. What it returns is closed when it looks no more.
func (d *Daemon) followSpeeds(ctx context.Context, s *session) <-chan struct{} {
	return again(ctx, 0, func() time.Duration { return d.readSpeeds(s) })
}

// readSpeeds reads the speeds once, and returns when to do so again.
func (d *Daemon) readSpeeds(s *session) time.Duration {
	mode := s.plan().config.Frequency
	if mode == config.FrequencyOff {
		s.setSpeeds(nil, "")
		return lookEvery
	}
	if s.counting().cycles {
		return lookEvery
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begun := threadTime()
	speeds, err := frequency.Read(d.Root, mode == config.FrequencyOn)
	note := ""
	if err != nil {
		note = err.Error()
	}
	if s.setSpeeds(frequency.Table(speeds), note) {
		d.Log.Warn("frequency fairness: where no speed is known time counts as it is", "error", err)
	}
	if errors.Is(err, frequency.ErrUnknown) {
		return speedRetry
	}
	return speedPause(threadTime() - begun)
}

// speedPause is how long after a reading that took so much CPU time the next one is. On a
// machine of many CPUs it takes long: 1 % of one of them is for it. To wait for a CPU costs
// nothing: where that counted, shares were those of the old speeds for a second and more.
func speedPause(used time.Duration) time.Duration { return max(speedEvery, 100*used) }

// threadTime is the CPU time of this thread; only differences mean something.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// setSpeeds tells the scheduler, when the speeds are not those that it has. It returns
// whether the note, why there are none, is new.
func (s *session) setSpeeds(table []uint32, note string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.speedsStale || !slices.Equal(table, s.speeds) {
		if err := s.scheduler.SetSpeeds(table); err != nil {
			note = err.Error()
		} else {
			s.speeds, s.speedsStale = table, false
		}
	}
	news := note != s.slowNote && note != ""
	s.slowNote = note
	return news
}

// frequencyStatus is what `rota status` says of it.
func (s *session) frequencyStatus() api.Frequency {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := api.Frequency{Mode: s.planned.config.Frequency, Note: s.slowNote, CountersNote: s.counts.note}
	if s.counts.set != nil {
		f.Counters = s.counts.set.Source.Name
	}
	return f
}
