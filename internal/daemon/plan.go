package daemon

import (
	"fmt"
	"slices"
	"time"

	"rota/internal/class"
	"rota/internal/config"
	"rota/internal/sched"
)

// ownCap is what our own threads may take of one CPU, in per mille: enough to
// stay responsive on a busy machine, too little to be felt.
const ownCap = 100

// freeSlot is the name of a slot whose class was taken out of the file.
const freeSlot = "(free)"

// plan is which class has which index in the kernel, and the rules that lead
// to these indexes. An index never changes its class while some task may
// still have it: a class keeps its index over reloads, and the index of a
// class that is gone is used again only when no task has it any more.
type plan struct {
	config *config.Config
	slots  []slot
	index  map[string]int // of the classes in config, and of our own
	rules  *class.Classifier
}

// slot is one index.
type slot struct {
	class sched.Class
	cpus  config.CPUs // that it wants
	note  string      // why it has none, or not all of them
	rules int         // that give this class
	line  int         // in the file
	used  bool
}

// newPlan puts the classes in the order of the file; our own comes last.
func newPlan(c *config.Config) (*plan, error) { return (&plan{}).next(c) }

// next is the plan for a new configuration while tasks still have the indexes
// of p. Classes that are gone keep their slot until prune.
func (p *plan) next(c *config.Config) (*plan, error) {
	n := &plan{config: c, index: map[string]int{}}
	n.slots = append(n.slots, p.slots...)
	for i := range n.slots {
		n.slots[i].used = false
	}
	wanted := make([]slot, 0, len(c.Classes)+1)
	for _, class := range c.Classes {
		wanted = append(wanted, slot{class: kernelClass(class), cpus: class.CPUs, line: class.Line, used: true})
	}
	wanted = append(wanted, slot{used: true, class: sched.Class{
		Name: config.ReservedClass, Tier: sched.Priority, Weight: config.DefaultWeight, Cap: ownCap,
	}})
	var fresh []slot
	for _, w := range wanted {
		if i, known := p.index[w.class.Name]; known {
			if w.cpus.Wanted() {
				// Until they are chosen again, which is next.
				w.class.Own, w.note = p.slots[i].class.Own, p.slots[i].note
			}
			n.put(i, w)
		} else {
			fresh = append(fresh, w)
		}
	}
	for _, w := range fresh {
		n.put(n.room(), w)
	}
	return n, n.compile()
}

func (p *plan) put(i int, s slot) {
	if i == len(p.slots) {
		p.slots = append(p.slots, slot{})
	}
	p.slots[i] = s
	p.index[s.class.Name] = i
}

// room is an index for a new class. When all are taken, it is that of a class
// that is gone, although tasks may have it: they are in the new class until
// they are classified, which is next.
func (p *plan) room() int {
	for i, s := range p.slots {
		if s.class.Name == freeSlot && !s.used {
			return i
		}
	}
	if len(p.slots) < sched.MaxClasses {
		return len(p.slots)
	}
	for i, s := range p.slots {
		if !s.used {
			return i
		}
	}
	// config.MaxClasses and our own class fit sched.MaxClasses.
	panic("more classes than slots")
}

// prune is p with the slots of classes that are gone free for others, to be
// used once no task is in them; p itself when there are none.
func (p *plan) prune() *plan {
	pruned := *p
	pruned.slots = slices.Clone(p.slots)
	found := false
	for i := range pruned.slots {
		if s := &pruned.slots[i]; !s.used && s.class.Name != freeSlot {
			*s = slot{class: sched.Class{Name: freeSlot, Tier: sched.Fair, Weight: config.DefaultWeight}}
			found = true
		}
	}
	if !found {
		return p
	}
	return &pruned
}

func (p *plan) compile() error {
	for _, r := range p.config.Rules {
		p.slots[p.index[r.Class]].rules++
	}
	rules, err := Compile(p.config.Rules, func(i int) int { return p.index[p.config.Rules[i].Class] })
	if err != nil {
		return fmt.Errorf("rules: %w", err)
	}
	p.rules = rules
	return nil
}

// Compile is the rules of a configuration as the daemon asks them; index is what the i-th
// answers.
func Compile(rules []config.Rule, index func(i int) int) (*class.Classifier, error) {
	out := make([]class.Rule, len(rules))
	for i, r := range rules {
		out[i] = class.Rule{Cgroup: r.Cgroup, Comm: r.Comm, Exe: r.Exe, User: r.User, Function: r.KernelFunction, Class: index(i)}
	}
	return class.Compile(out)
}

func (p *plan) params() sched.Params {
	out := sched.Params{
		Slice:           p.config.Slice,
		StarvationBound: p.config.StarvationBound,
		Fair:            sched.FairSwitches(p.config.Fair),
		Inherit:         sched.InheritSwitches(p.config.Inherit),
		Watch:           len(p.config.Rules) > 0,
		Frequency:       p.config.Frequency != config.FrequencyOff,
	}
	for _, s := range p.slots {
		out.Classes = append(out.Classes, s.class)
	}
	return out
}

func (p *plan) own() int { return p.index[config.ReservedClass] }

func kernelClass(c config.Class) sched.Class {
	tiers := map[string]sched.Tier{
		config.TierPriority:   sched.Priority,
		config.TierFair:       sched.Fair,
		config.TierBackground: sched.Background,
	}
	return sched.Class{Name: c.Name, Tier: tiers[c.Tier], Weight: c.Weight, Slice: c.Slice, Cap: c.Cap, Inherit: c.Inherit, Dynamic: c.DynamicSlice,
		MemoryBound: uint32(c.MemoryBound*sched.FullSpeed + 0.5)}
}

// slice is the slice of a class, the scheduler's where it has none.
func (p *plan) slice(c sched.Class) time.Duration {
	if c.Slice == 0 {
		return p.config.Slice
	}
	return c.Slice
}
