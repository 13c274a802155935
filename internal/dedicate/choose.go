// Package dedicate chooses the CPUs that belong to classes, and reads what it must know
// of the machine for that: cores, interrupts, and which tasks are bound to which CPUs.
//
// It changes nothing: package sched makes CPUs belong to classes, and package daemon
// looks again and again.
package dedicate

import (
	"cmp"
	"fmt"
	"slices"

	"rota/internal/cpulist"
)

// Machine is what a choice depends on.
type Machine struct {
	Online []int       // in their order
	Core   map[int]int // by CPU: the first CPU of its core
	Domain map[int]int // by CPU: its last-level cache
	// Interrupts are the CPUs that serve a device; absent: no such device was found.
	Interrupts map[string][]int
	Bound      []Bound
}

// Bound is a task of user space that may not run on all CPUs.
type Bound struct {
	PID  int
	Name string
	CPUs []int
	// Class is what it is in, as far as the caller knows: it may have that class's CPUs.
	Class string
}

// Want is what a class wants.
type Want struct {
	Class         string
	Count         int   // at least so many, chosen among all
	List          []int // or these
	Follow, Avoid string
	Before        []int // what it has
	// Tasks are how many of its tasks each CPU ran last: their memory is in its caches.
	Tasks map[int]int
}

// Grant is what a class gets: CPUs, or the reason for having none. Missing says what
// could not be had beside it.
type Grant struct {
	Class   string
	CPUs    []int // in their order
	Refused string
	Missing string
}

// Choose gives each class its CPUs, lists first. One CPU stays without an owner, and so
// does for every bound task one of those that it may run on, unless its class has it.
func Choose(m Machine, wants []Want) []Grant {
	c := chooser{Machine: m, owner: map[int]string{}, before: map[int]string{}}
	for _, w := range wants {
		for _, cpu := range w.Before {
			c.before[cpu] = w.Class
		}
	}
	grants := make([]Grant, len(wants))
	for _, listed := range []bool{true, false} {
		for i, w := range wants {
			if (w.List != nil) == listed {
				grants[i] = c.grant(w)
			}
		}
	}
	return grants
}

type chooser struct {
	Machine
	owner  map[int]string
	before map[int]string // whose they were
}

func (c *chooser) grant(w Want) Grant {
	g := Grant{Class: w.Class}
	if w.List != nil {
		g.CPUs, g.Refused = c.listed(w)
	} else {
		g.CPUs, g.Refused = c.counted(w)
	}
	if g.Refused != "" {
		g.CPUs = nil
	}
	slices.Sort(g.CPUs)
	for _, cpu := range g.CPUs {
		c.owner[cpu] = w.Class
	}
	if w.List != nil && len(g.CPUs) > 0 && len(g.CPUs) < len(w.List) {
		g.Missing = fmt.Sprintf("CPUs %s are offline or not there", cpulist.String(without(w.List, g.CPUs)))
	}
	for _, device := range []string{w.Follow, w.Avoid} {
		if _, known := c.Interrupts[device]; device != "" && !known {
			g.Missing = fmt.Sprintf("device %q has no interrupts: see /proc/interrupts", device)
		}
	}
	return g
}

func (c *chooser) listed(w Want) ([]int, string) {
	var got []int
	for _, cpu := range w.List {
		if slices.Contains(c.Online, cpu) {
			got = append(got, cpu)
		}
	}
	if len(got) == 0 {
		return nil, fmt.Sprintf("CPUs %s are offline or not there", cpulist.String(w.List))
	}
	return got, c.refusal(w, got)
}

// counted takes whole cores, the best first, until there are enough CPUs.
func (c *chooser) counted(w Want) ([]int, string) {
	var got []int
	for len(got) < w.Count {
		core, refused := c.best(w, got)
		if refused != "" {
			return nil, refused
		}
		got = append(got, core...)
	}
	return got, ""
}

// best is the free core that suits a class most, whose choice leaves everybody a CPU, or
// why there is none: what speaks against the one that suits most.
func (c *chooser) best(w Want, got []int) (core []int, refused string) {
	var cores [][]int
	for _, cpu := range c.Online {
		if c.Core[cpu] != cpu && slices.Contains(c.Online, c.Core[cpu]) {
			continue // counted with the first of its core
		}
		core := c.siblings(cpu)
		if !slices.ContainsFunc(core, func(cpu int) bool { return c.owner[cpu] != "" || slices.Contains(got, cpu) }) {
			cores = append(cores, core)
		}
	}
	room := map[int]int{} // by cache: how many of the CPUs that are wanted it has
	if len(got) == 0 {
		room = c.room(w, cores)
	}
	slices.SortStableFunc(cores, func(a, b []int) int {
		return slices.Compare(c.rank(w, got, room, b), c.rank(w, got, room, a))
	})
	for _, core := range cores {
		why := c.refusal(w, slices.Concat(got, core))
		if why == "" {
			return core, ""
		}
		refused = cmp.Or(refused, why)
	}
	return nil, cmp.Or(refused, fmt.Sprintf("%d CPUs are wanted: not so many are free", w.Count))
}

// room is how many CPUs of each cache a class may have, but for what others keep, up to as many as it wants.
func (c *chooser) room(w Want, cores [][]int) map[int]int {
	room := map[int]int{}
	for _, core := range cores {
		kept := slices.ContainsFunc(core, func(cpu int) bool { return c.keptFrom(w, cpu) })
		if domain := c.Domain[core[0]]; !kept && room[domain] < w.Count && c.refusal(w, core) == "" {
			room[domain] = min(w.Count, room[domain]+len(core))
		}
	}
	return room
}

// keptFrom tells whether a CPU was another class's, which is to keep it.
func (c *chooser) keptFrom(w Want, cpu int) bool {
	return c.before[cpu] != "" && c.before[cpu] != w.Class
}

func (c *chooser) siblings(cpu int) (core []int) {
	for _, other := range c.Online {
		if other == cpu || c.Core[other] == c.Core[cpu] {
			core = append(core, other)
		}
	}
	return core
}

// rank tells how well a core suits, by importance: served interrupts, kept from before,
// the cache of those already chosen, a cache with room for all, not kept by another class, the cache that
// most of the class's tasks used, not the CPU that the machine boots on.
func (c *chooser) rank(w Want, got []int, room map[int]int, core []int) []int {
	var rank [8]int
	for _, cpu := range core {
		rank[0] += among(cpu, c.Interrupts[w.Follow]) - among(cpu, c.Interrupts[w.Avoid])
		rank[1] += among(cpu, w.Before)
		for _, other := range got {
			rank[2] += truth(c.Domain[other] == c.Domain[cpu])
		}
		rank[4] -= truth(c.keptFrom(w, cpu))
		rank[6] -= truth(cpu == 0)
	}
	rank[3] = room[c.Domain[core[0]]]
	for cpu, tasks := range w.Tasks {
		if c.Domain[cpu] == c.Domain[core[0]] {
			rank[5] += tasks
		}
	}
	rank[7] = core[0]
	return rank[:]
}

// refusal says why these CPUs can't all belong to a class; empty: they can.
func (c *chooser) refusal(w Want, got []int) string {
	taken := func(cpu int) bool { return c.owner[cpu] != "" || slices.Contains(got, cpu) }
	for _, cpu := range got {
		if owner := c.owner[cpu]; owner != "" {
			return fmt.Sprintf("CPU %d belongs to class %q", cpu, owner)
		}
	}
	if !slices.ContainsFunc(c.Online, func(cpu int) bool { return !taken(cpu) }) {
		return "no CPU would be left for all others"
	}
	fresh := without(got, w.Before) // who is bound to what the class has came later
	for _, b := range c.Bound {
		if b.Class == w.Class {
			continue
		}
		may := slices.DeleteFunc(slices.Clone(b.CPUs), func(cpu int) bool { return !slices.Contains(c.Online, cpu) })
		if len(may) > 0 && !slices.ContainsFunc(may, func(cpu int) bool { return !taken(cpu) }) && slices.ContainsFunc(may, func(cpu int) bool { return slices.Contains(fresh, cpu) }) {
			return fmt.Sprintf("task %d (%s) may run on CPUs %s only", b.PID, b.Name, cpulist.String(may))
		}
	}
	return ""
}

func among(cpu int, list []int) int { return truth(slices.Contains(list, cpu)) }

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

func without(list, some []int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(cpu int) bool { return slices.Contains(some, cpu) })
}
