package daemon

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"rota/internal/api"
	"rota/internal/sched"
)

// Status is what `rota status` shows.
func (d *Daemon) Status() api.Status {
	d.mu.Lock()
	s := d.session
	out := api.Status{
		Version:       d.Version,
		PID:           os.Getpid(),
		State:         d.state,
		Reason:        d.reason,
		Kernel:        d.Kernel,
		UptimeSeconds: time.Since(d.started).Seconds(),
		Restarts:      d.restarts,
		LastExit:      d.lastExit,
		Classes:       []api.Class{},
		CPUs:          []api.CPU{},
		Functions:     []api.Function{},
		KernelEvents:  map[string]int64{},
	}
	d.mu.Unlock()
	out.Config = d.configStatus()
	if s == nil {
		return out
	}
	stats, plan, err := s.counters()
	if err != nil && !errors.Is(err, fs.ErrClosed) {
		out.Reason = "counters can't be read: " + err.Error()
	}
	out.AttachedSeconds = time.Since(s.attached).Seconds()
	out.KernelState = stats.State
	if stats.Kernel != nil {
		out.KernelEvents = stats.Kernel
	}
	out.Classes = classes(plan, stats.Classes)
	for _, c := range stats.CPUs {
		shown := cpu(c, plan)
		shown.SpeedPercent = 100 * float64(c.Speed) / sched.FullSpeed
		out.CPUs = append(out.CPUs, shown)
	}
	out.Boosts = boosts(stats.Boosts)
	out.Answers = api.Answers(stats.Answers)
	out.Functions = s.functions.status()
	out.Frequency = s.frequencyStatus()
	return out
}

// cpu is what a CPU counted, and whose it is.
func cpu(c sched.CPUStats, p *plan) api.CPU {
	out := api.CPU{
		CPU: c.CPU, Priority: c.Priority, Fair: c.Fair, Background: c.Background, Direct: c.Direct,
		Handed: c.Handed, Preemptions: c.Preemptions, Steals: c.Steals, Rescues: c.Rescues, CapHits: c.CapHits, Limited: c.Limited,
		BoundMicros: c.Bound.Microseconds(), GuestMicros: c.Guests.Microseconds(), StrayMicros: c.Stray.Microseconds(),
	}
	for _, s := range p.slots {
		if slices.Contains(s.class.Own.CPUs, c.CPU) {
			out.Owner = s.class.Name
		}
	}
	return out
}

func boosts(b sched.BoostStats) api.Boosts {
	return api.Boosts{
		Futex: b.Futex, Locks: b.Locks, Wakeups: b.Wakeups, Binder: b.Binder, Chained: b.Chained, Fetched: b.Fetched,
		Ended: b.Ended, Spent: b.Spent, RuntimeMicros: b.Runtime.Microseconds(),
	}
}

func (d *Daemon) configStatus() api.Config {
	d.mu.Lock()
	defer d.mu.Unlock()
	return api.Config{
		Path:    d.force.path,
		Loaded:  d.force.loaded,
		Rules:   len(d.force.config.Rules),
		Refused: append([]api.Fault{}, d.refused...),
	}
}

// classes are those of the configuration in its order, and our own last.
func classes(p *plan, stats []sched.ClassStats) []api.Class {
	out := []api.Class{}
	for i, s := range p.slots {
		if !s.used {
			continue
		}
		c := api.Class{
			Name:                s.class.Name,
			Tier:                s.class.Tier.String(),
			Weight:              s.class.Weight,
			SliceMicros:         p.slice(s.class).Microseconds(),
			CapPercent:          float64(s.class.Cap) / 10,
			Rules:               s.rules,
			Line:                s.line,
			CPUs:                append([]int{}, s.class.Own.CPUs...),
			CPUsLent:            s.class.Own.Lend,
			CPUsLentAfterMicros: s.class.Own.LendAfter.Microseconds(),
			CPUsNote:            s.note,
			MemoryBoundPercent:  100 * float64(s.class.MemoryBound) / sched.FullSpeed,
			WaitHistogram:       []uint64{},
		}
		if i < len(stats) {
			count(&c, stats[i])
		}
		out = append(out, c)
	}
	own := p.slots[p.own()].class.Name
	slices.SortStableFunc(out, func(a, b api.Class) int {
		return place(a, own) - place(b, own)
	})
	api.Derive(out)
	return out
}

// place orders classes as the file does.
func place(c api.Class, own string) int {
	switch {
	case c.Name == own:
		return 1 << 30
	case c.Line == 0:
		return -1
	}
	return c.Line
}

func count(c *api.Class, s sched.ClassStats) {
	c.Tasks = s.Tasks
	c.RuntimeMicros = s.Runtime.Microseconds()
	c.ProgressMicros = s.Progress.Microseconds()
	if s.Counted > 0 {
		c.MemoryBoundPercent = 100 * float64(s.Waited) / float64(s.Counted)
		c.MemoryBoundCounted = true
		c.MemoryCountedMicros = s.Counted.Microseconds()
	}
	c.Dispatches = s.Dispatches
	c.Preempting = s.Preempting
	c.Preempted = s.Preempted
	c.CapHits = s.CapHits
	c.Rescues = s.Rescues
	c.CPUsReturned = s.Returns
	c.CPUsExpected = s.Expected
	c.WaitHistogram = append(c.WaitHistogram, s.WaitHist...)
	c.WaitMaxMicros = float64(s.WaitMax) / float64(time.Microsecond)
}
