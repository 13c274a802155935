package daemon

import (
	"context"
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"time"

	"rota/internal/config"
	"rota/internal/cpulist"
	"rota/internal/dedicate"
	"rota/internal/sched"
)

// lookEvery is how often we look whether CPUs have to be chosen anew: a CPU went or came,
// or interrupts moved.
const lookEvery = time.Second

// retryEvery is how often CPUs are chosen anew for a class that was refused some: the reason, as
// a task that was bound to them for a moment, may be gone.
const retryEvery = 10 * time.Second

// followCPUs gives the classes their CPUs and looks again until ctx ends. What it
// returns is closed when it looks no more.
func (d *Daemon) followCPUs(ctx context.Context, s *session) <-chan struct{} {
	seen := dedicate.Watched(d.Root, s.plan().devices())
	d.chooseCPUs(s)
	chosen := time.Now()
	return again(ctx, lookEvery, func() time.Duration {
		s.sweep(d)
		plan := s.plan()
		if !plan.dedicates() {
			return lookEvery
		}
		now := dedicate.Watched(d.Root, plan.devices())
		if now != seen || (plan.lacks() && time.Since(chosen) >= retryEvery) {
			seen, chosen = now, time.Now()
			d.chooseCPUs(s)
		}
		return lookEvery
	})
}

// chooseCPUs is dedicate for who does not hold change.
func (d *Daemon) chooseCPUs(s *session) {
	d.change.Lock()
	defer d.change.Unlock()
	d.dedicate(s)
}

// dedicate chooses the CPUs of the classes and puts them in force, with change held. What
// can't be had is said in the log and in the status; the classes go on without.
func (d *Daemon) dedicate(s *session) {
	plan := s.plan()
	if !plan.dedicates() {
		return
	}
	machine, err := dedicate.Read(d.Root, plan.devices())
	if err != nil {
		d.Log.Warn("dedicated CPUs: the machine can't be read", "error", err)
		return
	}
	for cpu, domain := range s.scheduler.Domains() {
		machine.Domain[cpu] = int(domain)
	}
	for i, b := range machine.Bound {
		if task, err := s.scheduler.Explain(uint32(b.PID)); err == nil && task.Class < len(plan.slots) {
			machine.Bound[i].Class = plan.slots[task.Class].class.Name
		}
	}
	wants := plan.wants()
	s.findNear(plan, wants)
	next := plan.granted(dedicate.Choose(machine, wants))
	if reflect.DeepEqual(next.slots, plan.slots) {
		return
	}
	if err := s.configure(next); err != nil {
		if !errors.Is(err, fs.ErrClosed) && s.note(err.Error()) {
			d.Log.Warn("dedicated CPUs: not in force", "error", err)
		}
		return
	}
	for i, slot := range next.slots {
		if reflect.DeepEqual(slot, plan.slots[i]) {
			continue
		}
		d.Log.Info("dedicated CPUs: chosen", "class", slot.class.Name, "cpus", cpulist.String(slot.class.Own.CPUs), "note", slot.note)
	}
}

// dedicates tells whether a class wants CPUs, or has some.
func (p *plan) dedicates() bool {
	return slices.ContainsFunc(p.slots, func(s slot) bool { return s.cpus.Wanted() || len(s.class.Own.CPUs) > 0 })
}

// lacks tells whether a class has none of the CPUs that it wants.
func (p *plan) lacks() bool {
	return slices.ContainsFunc(p.slots, func(s slot) bool { return s.cpus.Wanted() && len(s.class.Own.CPUs) == 0 })
}

// devices are those whose interrupts matter.
func (p *plan) devices() (names []string) {
	for _, slot := range p.slots {
		for _, name := range []string{slot.cpus.Follow, slot.cpus.Avoid} {
			if name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// nearTasks bounds the tasks that are asked where they ran: more say nothing new.
const nearTasks = 32768

// findNear notes where the tasks of the classes ran last.
func (s *session) findNear(p *plan, wants []dedicate.Want) {
	byName := map[string]map[int]int{}
	for _, w := range wants {
		byName[w.Class] = w.Tasks
	}
	threads, err := s.tasks.proc.everyThread()
	if err != nil {
		return
	}
	asked := 0
	for _, tid := range threads {
		if asked++; asked > nearTasks {
			return
		}
		task, err := s.scheduler.Explain(tid)
		if err != nil || task.Class >= len(p.slots) {
			continue
		}
		if near := byName[p.slots[task.Class].class.Name]; near != nil {
			near[task.CPU]++
		}
	}
}

// wants is what the classes want, in the order of their indexes.
func (p *plan) wants() []dedicate.Want {
	var wants []dedicate.Want
	for _, slot := range p.slots {
		if slot.cpus.Wanted() {
			wants = append(wants, dedicate.Want{
				Class: slot.class.Name, Count: slot.cpus.Count, List: slot.cpus.List,
				Follow: slot.cpus.Follow, Avoid: slot.cpus.Avoid, Before: slot.class.Own.CPUs, Tasks: map[int]int{},
			})
		}
	}
	return wants
}

// granted is p with these CPUs.
func (p *plan) granted(grants []dedicate.Grant) *plan {
	next := *p
	next.slots = slices.Clone(p.slots)
	for i := range next.slots {
		slot := &next.slots[i]
		slot.class.Own, slot.note = sched.Own{}, ""
		for _, grant := range grants {
			if grant.Class == slot.class.Name {
				slot.class.Own = own(slot.cpus, grant.CPUs)
				slot.note = strings.Trim(grant.Refused+"; "+grant.Missing, "; ")
			}
		}
	}
	return &next
}

// own is what a class has of these CPUs.
func own(asked config.CPUs, cpus []int) sched.Own {
	if len(cpus) == 0 {
		return sched.Own{}
	}
	return sched.Own{CPUs: cpus, Lend: asked.Lend, LendAfter: asked.LendAfter}
}

// sweep looks for tasks that wait where nobody looks any more.
func (s *session) sweep(d *Daemon) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if err := s.scheduler.Sweep(); err != nil {
		d.Log.Warn("dedicated CPUs: sweep", "error", err)
	}
}

// note says of every class that wants CPUs why it has none, and tells whether that is new.
func (s *session) note(why string) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := *s.planned // readers have the old one
	next.slots = slices.Clone(next.slots)
	for i := range next.slots {
		if slot := &next.slots[i]; slot.cpus.Wanted() {
			changed = changed || slot.note != why
			slot.note = why
		}
	}
	s.planned = &next
	return changed
}
