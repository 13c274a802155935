package sched

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// validate refuses what the kernel side cannot hold. The configuration has
// been checked before, in the user's words; these are the limits of the
// object itself.
func (p Params) validate() error {
	switch {
	case len(p.Classes) == 0 || len(p.Classes) > MaxClasses:
		return fmt.Errorf("%d classes: must be 1..%d", len(p.Classes), MaxClasses)
	case p.Slice < 100*time.Microsecond || p.Slice > 100*time.Millisecond:
		return fmt.Errorf("slice %v: must be 100us..100ms", p.Slice)
	case p.StarvationBound < 50*time.Millisecond || p.StarvationBound > 10*time.Second:
		return fmt.Errorf("starvation bound %v: must be 50ms..10s", p.StarvationBound)
	case p.Record != 0 && (p.Record < MinRecord || p.Record > MaxRecord):
		return fmt.Errorf("record of %d events: must be %d..%d", p.Record, MinRecord, MaxRecord)
	}
	for _, class := range p.Classes {
		if class.MemoryBound > FullSpeed {
			return fmt.Errorf("class %q: memory bound %d: must be 0..%d", class.Name, class.MemoryBound, FullSpeed)
		}
		if class.Weight < 1 || class.Weight > 10000 || class.Tier > Background || class.Cap > 1000 {
			return fmt.Errorf("class %q: weight %d, tier %d or cap %d out of range",
				class.Name, class.Weight, class.Tier, class.Cap)
		}
		if slices.ContainsFunc(class.Own.CPUs, func(cpu int) bool { return cpu < 0 || cpu >= maxCPUs }) || (len(class.Own.CPUs) > 0 && class.Tier != Priority) {
			return fmt.Errorf("class %q: CPUs %v: must be 0..%d, of tier priority", class.Name, class.Own.CPUs, maxCPUs-1)
		}
		if class.Own.LendAfter < 0 || class.Own.LendAfter > time.Second {
			return fmt.Errorf("class %q: CPUs are lent after %v: must be 0..1s", class.Name, class.Own.LendAfter)
		}
		if class.Slice != 0 && (class.Slice < 100*time.Microsecond || class.Slice > 100*time.Millisecond) {
			return fmt.Errorf("class %q: slice %v: must be 100us..100ms", class.Name, class.Slice)
		}
	}
	return nil
}

func (p Params) knobs() rotaKnobs {
	knobs := rotaKnobs{
		SliceNs:      uint64(p.Slice),
		StarvationNs: uint64(p.StarvationBound),
		NrClasses:    uint32(len(p.Classes)),
	}
	if p.Watch {
		knobs.Watch = 1
	}
	if p.Frequency {
		knobs.Frequency = 1
	}
	for _, class := range p.Classes {
		knobs.Tiers |= 1 << class.Tier
	}
	for flag, on := range map[uint32]bool{
		fairRunToParity:      p.Fair.RunToParity,
		fairPreemptShort:     p.Fair.PreemptShort,
		fairEligibilityCheck: p.Fair.EligibilityCheck,
		fairBriefRequests:    p.Fair.BriefRequests,
		fairLazyPreemption:   p.Fair.LazyPreemption,
		fairHandOver:         p.Fair.HandOver,
	} {
		if on {
			knobs.Fair |= flag
		}
	}
	knobs.Inherit = p.reasons()
	return knobs
}

// reasons are the bits of what boosts; none where no class gives a boost.
func (p Params) reasons() (bits uint32) {
	if !slices.ContainsFunc(p.Classes, func(c Class) bool { return c.Tier == Priority && c.Inherit }) {
		return 0
	}
	for reason, on := range map[uint32]bool{
		reasonFutex: p.Inherit.Futex, reasonLock: p.Inherit.Locks, reasonWake: p.Inherit.Wakeups,
		reasonBinder: p.Inherit.Binder,
	} {
		if on {
			bits |= 1 << reason
		}
	}
	return bits
}

func (p Params) classes() []rotaClass {
	table := make([]rotaClass, MaxClasses)
	for i, class := range p.Classes {
		table[i] = rotaClass{
			SliceNs: uint64(class.Slice),
			CapNs:   capNs(class.Cap),
			Weight:  class.Weight,
			Tier:    uint32(class.Tier),

			MemoryBound: class.MemoryBound,
		}
		if class.Inherit {
			table[i].Inherit = 1
		}
		if class.Dynamic {
			table[i].Dynamic = 1
		}
		if class.Own.Lend {
			table[i].LendAfterNs = uint32(class.Own.LendAfter)
		}
		if len(class.Own.CPUs) > 0 {
			table[i].OwnFirst, table[i].OwnEnd = uint32(slices.Min(class.Own.CPUs)), uint32(slices.Max(class.Own.CPUs))+1
		}
	}
	return table
}

// owners says of each CPU which class it belongs to, as bpf/own.bpf.h wants it, and of
// how many CPUs.
func (p Params) owners() (table []uint32, owned uint32) {
	table = make([]uint32, maxCPUs)
	for i, class := range p.Classes {
		for _, cpu := range class.Own.CPUs {
			table[cpu] = uint32(i) + 1
			if class.Own.Lend {
				table[cpu] |= lendCPU
			}
			owned++
		}
	}
	return table, owned
}

// capNs is the CPU time per window that a cap in per mille allows.
func capNs(perMille uint32) uint64 {
	return uint64(window) * uint64(perMille) / 1000
}

// tierCap bounds all priority classes of a CPU together: the largest of
// their caps, so that adding a class never leaves less for the others.
func (p Params) tierCap() uint64 {
	var largest uint32
	for _, class := range p.Classes {
		if class.Tier == Priority {
			largest = max(largest, class.Cap)
		}
	}
	return capNs(largest)
}

// Configure changes the knobs of the running scheduler without detaching it.
// Tasks keep their class index: callers must reclassify when indexes change
// their meaning.
func (s *Scheduler) Configure(p Params) error {
	if err := p.validate(); err != nil {
		return err
	}
	owners, owned := p.owners()
	if owned > 0 && !s.ownable {
		return fmt.Errorf("configure scheduler: CPUs for a class: %w: use a kernel with scx_bpf_select_cpu_and (6.16 or later)", errors.ErrUnsupported)
	}
	for name, value := range map[string]any{
		"classes":         p.classes(),
		"knobs":           p.knobs(),
		"priority_cap_ns": p.tierCap(),
		"cpu_owner":       owners,
		"own_cpus":        owned,
	} {
		if err := s.coll.Variables[name].Set(value); err != nil {
			return fmt.Errorf("configure scheduler: %s: %w", name, err)
		}
	}
	p.Record = s.params.Record
	s.params = p
	s.want(p.reasons(), nil)
	// The second marks all tasks as out of date, as the first does.
	program := "rota_reconfigured"
	if s.owned = s.owned || owned > 0; s.owned {
		program = "rota_own"
	}
	return s.run(program, "configure scheduler")
}

// SetSpeeds says how fast the CPUs run, by their numbers: 1..FullSpeed, 0 and CPUs beyond
// the end: not known. It counts while Params.Frequency is on.
func (s *Scheduler) SetSpeeds(speeds []uint32) error {
	table := make([]uint32, maxCPUs)
	if copy(table, speeds) < len(speeds) {
		return fmt.Errorf("speeds of %d CPUs: must be at most %d", len(speeds), maxCPUs)
	}
	if err := s.coll.Variables["cpu_speed"].Set(table); err != nil {
		return fmt.Errorf("speeds of the CPUs: %w", err)
	}
	return nil
}

// Sweep gives those a queue that is served who wait in one that has lost its CPUs.
func (s *Scheduler) Sweep() error {
	if !s.owned {
		return nil
	}
	return s.run("rota_own_sweep", "look for lost tasks")
}

func (s *Scheduler) run(program, what string) error {
	result, err := s.coll.Programs[program].Run(&ebpf.RunOptions{})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if errno := unix.Errno(-int32(result)); errno != 0 {
		return fmt.Errorf("%s: %w", what, errno)
	}
	return nil
}

// Domains says of each CPU, by its number, which share a last-level cache.
func (s *Scheduler) Domains() []uint32 { return s.topology.llcOf }

// ChangedError says that a task has changed since it was looked at: it has to be looked at
// again, to answer the event Asked.
type ChangedError struct{ Asked uint32 }

func (e *ChangedError) Error() string { return "the task has changed meanwhile" }

// SetClass puts a live task into a class.
// It returns an error that wraps fs.ErrNotExist when the task is gone, and a *ChangedError
// where the class may be that of what it was before.
func (s *Scheduler) SetClass(a Assignment) error {
	t, class := a.Task, a.Class
	args := rotaSetClass{StartNs: t.Start, Tid: t.TID, Class: uint32(class), Asked: a.Asked}
	if a.Alone {
		args.Alone = 1
	}
	out := rotaSetClass{}
	opts := &ebpf.RunOptions{Context: args, ContextOut: &out}
	if _, err := s.coll.Programs["rota_set_class"].Run(opts); err != nil {
		return fmt.Errorf("task %d: set class %d: %w", t.TID, class, err)
	}
	switch errno := unix.Errno(-out.Result); {
	case out.Result == 0:
		return nil
	case errors.Is(errno, unix.ESRCH):
		return fmt.Errorf("task %d: %w", t.TID, fs.ErrNotExist)
	case errors.Is(errno, unix.EAGAIN):
		return &ChangedError{Asked: out.Asked}
	default:
		return fmt.Errorf("task %d: class %d: %w", t.TID, class, errno)
	}
}

// reasonNames are the words for why a task waits.
var reasonNames = [reasons]string{"futex", "lock", "wakeup", "binder"}

// Explain tells what the scheduler knows of the task that has this TID now. It
// returns an error that wraps fs.ErrNotExist when there is none.
func (s *Scheduler) Explain(tid uint32) (Task, error) {
	out := rotaExplain{}
	opts := &ebpf.RunOptions{Context: rotaExplain{Tid: tid}, ContextOut: &out}
	if _, err := s.coll.Programs["rota_explain_task"].Run(opts); err != nil {
		return Task{}, fmt.Errorf("task %d: %w", tid, err)
	}
	if out.Result != 0 {
		return Task{}, fmt.Errorf("task %d: %w", tid, fs.ErrNotExist)
	}
	return out.task(), nil
}

func (e *rotaExplain) task() Task {
	t := Task{
		Class: int(e.Class), Level: int(e.Level), Weight: e.Weight,
		Slice: time.Duration(e.SliceNs), CPU: int(e.Cpu), Running: e.Running != 0, Ready: time.Duration(e.ReadyNs),
		Lag:     time.Duration(e.LagNs),
		Awaited: e.Awaited != 0, Spent: e.Spent != 0, RealTime: !ours(e.Policy),
		Calls: Calls{Given: e.Given, Boosted: e.Lifted},
	}
	if t.Awaited {
		t.Boosted = time.Duration(e.BoostedNs)
	}
	if e.WaitsTid != 0 {
		t.Waits = Wait{TID: e.WaitsTid, Gives: e.WaitsGives != 0, For: time.Duration(e.WaitsNs)}
		if e.WaitsReason < reasons {
			t.Waits.Reason = reasonNames[e.WaitsReason]
		}
	}
	return t
}

// ours tells whether tasks of a policy run under rota: all but SCHED_FIFO, RR and
// DEADLINE.
func ours(policy uint32) bool { return policy != 1 && policy != 2 && policy != 6 }

// DebugFault ends the scheduler as an error of its own would, so that tests
// can see what happens then.
func (s *Scheduler) DebugFault() error {
	if _, err := s.coll.Programs["rota_debug_fault"].Run(&ebpf.RunOptions{}); err != nil {
		return fmt.Errorf("provoke a fault: %w", err)
	}
	return nil
}
