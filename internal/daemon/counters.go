package daemon

import (
	"cmp"
	"context"
	"io/fs"
	"strings"
	"time"

	"rota/internal/config"
	"rota/internal/counters"
	"rota/internal/cpulist"
	"rota/internal/frequency"
	"rota/internal/sched"
)

// counting is what the scheduler counts by, and for what it was opened. The zero value
// counts nothing.
type counting struct {
	wanted wantedCounters
	set    *counters.Set
	cycles bool      // frequencies are counted: nobody else says them
	note   string    // why there is nothing, though it is wanted
	topsAt time.Time // when to look again for top frequencies
}

// wantedCounters is what decides about counters: when it changes they are opened anew.
type wantedCounters struct {
	mode    string // of frequency fairness; empty: nothing is wanted
	event   string // empty: what this processor has
	latency time.Duration
	online  string // CPUs
	came    uint32 // how often one came: the counters of one that was offline have ended
}

// followCounters gives the scheduler counters of the processor, as long as the configuration
// wants that, until ctx ends. What it returns is closed when it looks no more.
func (d *Daemon) followCounters(ctx context.Context, s *session) <-chan struct{} {
	return again(ctx, 0, func() time.Duration { return d.lookCounters(s) })
}

// lookCounters looks once, and returns when to do so again.
func (d *Daemon) lookCounters(s *session) time.Duration {
	c := s.plan().config
	var want wantedCounters
	if c.Frequency != config.FrequencyOff && c.Counters != config.CountersOff {
		want = wantedCounters{mode: c.Frequency, latency: c.AccessLatency, online: onlineCPUs(d.Root)}
		came, err := s.scheduler.Came()
		if err != nil {
			d.Log.Warn("frequency fairness", "error", err)
		}
		want.came = came
		if c.Counters != config.CountersAuto {
			want.event = c.Counters
		}
	}
	before := s.counting()
	if want == before.wanted && before.note == "" {
		return d.lookTops(s, before)
	}
	next := counting{wanted: want}
	if want.mode != "" {
		d.openCounters(&next)
	}
	s.count(&next, d.tops(next))
	if next.note != "" && next.note != before.note {
		d.Log.Warn("frequency fairness: how much tasks wait for memory is as declared: nothing counts it", "error", next.note)
	}
	if before.set != nil {
		before.set.Close()
	}
	if next.note != "" {
		return speedRetry
	}
	return lookEvery
}

// lookTops looks whether a machine whose cycles are counted has come to say its top
// frequencies, as where their driver is a module.
func (d *Daemon) lookTops(s *session, c counting) time.Duration {
	if !c.clocked() || c.cycles || time.Now().Before(c.topsAt) {
		return lookEvery
	}
	if tops := d.tops(c); len(tops) > 0 {
		s.count(&c, tops)
		return lookEvery
	}
	s.mu.Lock()
	s.counts.topsAt = time.Now().Add(speedRetry)
	s.mu.Unlock()
	return lookEvery
}

// clocked tells whether the CPUs' own cycles are counted.
func (c counting) clocked() bool {
	return c.set != nil && len(c.set.Cycles) > 0 && !c.set.Source.NoClock
}

// openCounters opens what is wanted, or notes why not.
func (d *Daemon) openCounters(c *counting) {
	online, err := cpulist.Parse(c.wanted.online)
	if err == nil {
		c.set, err = d.OpenCounters(c.wanted.event, c.wanted.latency, online)
	}
	if err != nil {
		c.note = err.Error()
		return
	}
}

// tops are the frequencies by which cycles are counted; none where not every CPU that is
// online has both: cpufreq then speaks for all.
func (d *Daemon) tops(c counting) map[int]uint64 {
	if !c.clocked() {
		return nil
	}
	tops := frequency.Tops(d.Root, c.wanted.mode == config.FrequencyOn)
	online, _ := cpulist.Parse(c.wanted.online)
	for _, cpu := range online {
		if _, counts := c.set.Cycles[cpu]; !counts || tops[cpu] == 0 {
			return nil
		}
	}
	return tops
}

// counting is what the scheduler counts by now.
func (s *session) counting() counting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// count gives the scheduler other counters, or none, and notes why it does not take them.
// Without top frequencies cycles say nothing about speeds.
func (s *session) count(c *counting, tops map[int]uint64) {
	told := sched.Counters{FullKHz: tops}
	if c.set != nil {
		told.Waits, told.Cycles, told.Latency = c.set.Waits, c.set.Cycles, c.set.Source.Latency
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	c.cycles = len(tops) > 0
	if err := s.scheduler.SetCounters(told); err != nil {
		c.note, c.cycles = cmp.Or(c.note, err.Error()), false
	}
	if c.cycles != s.counts.cycles {
		s.speedsStale, s.slowNote = true, "" // whoever says them next says all
	}
	s.counts = *c
}

// stopCounting closes the counters of a session that has ended.
func (s *session) stopCounting() {
	if set := s.counting().set; set != nil {
		set.Close()
	}
}

// onlineCPUs is the kernel's list of CPUs that are online; empty where it does not say.
func onlineCPUs(root fs.FS) string {
	text, _ := fs.ReadFile(root, "sys/devices/system/cpu/online")
	return strings.TrimSpace(string(text))
}
