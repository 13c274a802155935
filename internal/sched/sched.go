// Package sched loads the rota scheduler into the kernel, attaches it,
// configures it and reads what it counts. It is the only importer of
// cilium/ebpf: nothing else in rota knows about BPF objects.
//
// It does not decide which task is in which class and does not restart
// anything: package daemon does both, and is its only caller besides
// `rota check`.
package sched

import "time"

// Tier orders classes: a higher tier runs first, inside its cap.
type Tier uint32

// The tiers, in the order in which they run.
const (
	Priority Tier = iota
	Fair
	Background
)

// String is the word that the configuration uses.
func (t Tier) String() string {
	switch t {
	case Priority:
		return "priority"
	case Fair:
		return "fair"
	case Background:
		return "background"
	}
	return "unknown"
}

// MaxClasses is the number of classes that the scheduler can hold, the
// built-in class "default" (index 0) included.
const MaxClasses = 256

// Class is a scheduling contract as the kernel side sees it. The index in
// Params.Classes is its identity; index 0 is the class of unmatched tasks.
type Class struct {
	Name   string
	Tier   Tier
	Weight uint32        // 1..10000 inside its tier; 100 is nice 0
	Slice  time.Duration // 100us..100ms; 0 means Params.Slice
	Cap    uint32        // per mille of one CPU per 100 ms while others wait; tier priority only
	// Inherit: what its tasks wait for runs at their level; tier priority only.
	Inherit bool
	// Dynamic: a task that wakes asks for what it lately used between two sleeps, at
	// most Slice; tier priority only.
	Dynamic bool
	Own     Own
	// MemoryBound is how much of its time does not depend on the frequency, 0..FullSpeed.
	MemoryBound uint32
}

// FullSpeed is the speed of a CPU at full speed, and all of a task's time.
const FullSpeed = 1024

// Own are the CPUs that a class has to itself; tier priority only.
type Own struct {
	CPUs []int
	Lend bool // others may use them while they would be idle
	// LendAfter: but only while no task of the class has run on any of them for so long, 0..1s.
	LendAfter time.Duration
}

// Params are the knobs of the scheduler. All of them can be changed while it
// runs.
type Params struct {
	Slice           time.Duration // default request, 100us..100ms
	StarvationBound time.Duration // 50ms..10s
	Fair            FairSwitches
	Inherit         InheritSwitches
	Classes         []Class // at least one; at most MaxClasses
	// Watch asks for events about tasks. Without rules that look at tasks
	// there is nothing to classify, and fork storms cost nothing.
	Watch bool
	// Frequency: time counts as it would at full speed, see SetSpeeds.
	Frequency bool
	// Record is for how many events of each CPU there is a record, see
	// WriteRecord: 0, or MinRecord..MaxRecord. It holds from loading on.
	Record int
}

// FairSwitches are the choices that EEVDF leaves to the fair tier.
type FairSwitches struct {
	RunToParity      bool // who runs and is eligible keeps the CPU for its slice
	PreemptShort     bool // but not against a shorter slice
	EligibilityCheck bool // who has become ineligible gives way at once
	BriefRequests    bool // who wakes asks for what it lately used
	LazyPreemption   bool // who wakes does not end a turn that has just begun
	HandOver         bool // who is woken by one that sleeps then has its CPU
}

// InheritSwitches are the waits that boost whom a priority task waits for.
type InheritSwitches struct {
	Futex   bool // for the owner of a lock in user space
	Locks   bool // for the owner of a lock in the kernel
	Wakeups bool // for the task that it woke before it went to sleep
	Binder  bool // for the answer to a binder call
}

// TaskID names one live task: a PID together with its start time, so that a
// reused PID is never mistaken for the task that had it before.
type TaskID struct {
	TID   uint32
	Start uint64 // nanoseconds since boot, as the kernel's start_boottime; 0 means "whoever has this TID now"
}

// Assignment says which class a task is to have.
type Assignment struct {
	Task  TaskID
	Class int    // index in Params.Classes
	Asked uint32 // that of the event which this answers, 0: none
	// Alone: the class is for what the task does itself: about its children there will
	// be an event.
	Alone bool
}

// EventKind says why a task may have to be classified anew.
type EventKind uint32

// The kinds of event.
const (
	EventExec   EventKind = iota + 1 // the task executes a new program
	EventComm                        // the task was renamed
	EventCgroup                      // the task moved to another cgroup
	EventUser                        // the task changed its user
	EventFork                        // a new task whose cgroup differs from its parent's
	EventLost                        // events were lost: look at every task
)

// Event tells the daemon to look at a task again. New children get their
// parent's class in the kernel and make no event.
type Event struct {
	Kind EventKind
	Task TaskID
	TGID uint32
	// Asked is how often the kernel asked about the task, this time included; the answer
	// says it again.
	Asked uint32
}

// ExitInfo says why the kernel ended the scheduler.
type ExitInfo struct {
	Kind   uint64 // enum scx_exit_kind
	Code   int64
	Reason string // the kernel's short reason, as "unregistered from user space"
	Msg    string // what the scheduler or the kernel said
	Dump   string // the kernel's debug dump; may be empty
	// Asked is true when the exit was asked for (unregistered by us).
	Asked bool
	// Restart is true when the kernel asks to load again (CPU hotplug races).
	Restart bool
}

// ClassStats counts one class since the scheduler was attached.
type ClassStats struct {
	Tasks      uint64        // live tasks
	Runtime    time.Duration // CPU time
	Progress   time.Duration // the time that the same would have taken at full speed
	Waited     time.Duration // that waited for memory, as counted
	Counted    time.Duration // of so much work, as at full speed; 0: nothing was counted
	Dispatches uint64        // times that a task got a CPU
	Preempting uint64        // wake-ups that preempted a running task
	Preempted  uint64        // times that a task of this class was preempted
	CapHits    uint64        // times that the cap made the class wait
	Rescues    uint64        // times that the starvation bound moved a task forward
	Returns    uint64        // times that a task wanted CPUs that were lent
	Expected   uint64        // of these, they had come back before
	WaitHist   []uint64      // bucket i: waits in [2^(i-1), 2^i) us; bucket 0: below 1 us
	WaitMax    time.Duration // longest wait for a CPU
}

// CPUStats counts one CPU since the scheduler was attached.
type CPUStats struct {
	CPU                        int
	Speed                      uint32 // 1..FullSpeed, by which time counts; 0: not known
	Priority, Fair, Background uint64 // dispatches by tier
	Direct                     uint64 // wake-ups placed on this idle CPU without queueing
	Handed                     uint64 // whom a task woke that was about to leave this CPU, for them
	Preemptions                uint64 // wake-ups that preempted what ran here
	Steals                     uint64 // tasks pulled from another CPU's queue
	Rescues                    uint64
	CapHits                    uint64
	Limited                    uint64 // times that a task had to wait for its cgroup's cpu.max
	// Where the CPU belongs to a class: the CPU time of tasks that do not belong there,
	// because they may run nowhere else, because it was lent to them, and on their way out.
	Bound, Guests, Stray time.Duration
}

// BoostStats counts boosts since the scheduler was attached, of all CPUs.
type BoostStats struct {
	// begun, by what was waited for
	Futex, Locks, Wakeups, Binder uint64

	Chained uint64        // of these, passed on by a task that was boosted itself
	Fetched uint64        // boosted tasks that were taken out of a queue to run at once
	Ended   uint64        // that ended with the wait
	Spent   uint64        // that used up the time of a boost
	Runtime time.Duration // CPU time of boosted tasks
}

// AnswerStats counts how tasks that had changed got their classes, of all CPUs.
type AnswerStats struct {
	Asked uint64 // by an event
	Known uint64 // at once, see Remember
}

// Task is what the scheduler knows of one task.
type Task struct {
	Class, Level int // of Params.Classes: its own, and the one at whose level it runs
	Weight       uint32
	Slice        time.Duration
	Lag          time.Duration // CPU time that it is owed, < 0: had too much; 0 where it does not compete
	CPU          int
	Running      bool
	Ready        time.Duration // for how long it waits for a CPU; 0: it does not
	Awaited      bool          // somebody who gives a boost waits for it
	Spent        bool          // but it has used up the time of a boost
	Boosted      time.Duration // CPU time that it had by this boost
	Waits        Wait
	RealTime     bool // of another scheduling class, which runs before rota's
	Calls        Calls
}

// Calls are the binder calls that a task answered, of callers that give their level, since
// it began or the scheduler was attached.
type Calls struct{ Given, Boosted uint64 } // Boosted: served at that level or above

// Wait says for whom a task waits.
type Wait struct {
	TID    uint32 // 0: for nobody that is known
	Reason string // "futex", "lock", "wakeup", "binder"
	Gives  bool   // whom it waits for runs at its level
	For    time.Duration
}

// Stats is one consistent-enough reading of all counters.
type Stats struct {
	Since   time.Time
	Classes []ClassStats // as Params.Classes
	CPUs    []CPUStats
	Boosts  BoostStats
	Answers AnswerStats
	Kernel  map[string]int64 // the kernel's own sched_ext event counters; empty where it has none
	State   string           // /sys/kernel/sched_ext/state
}

// Finding is one line of the preflight.
type Finding struct {
	Name   string // "kernel", "sched_ext", "BTF", "kfuncs", "privileges", "another scheduler"
	OK     bool
	Fatal  bool   // rota cannot run while this is not OK
	Unfit  bool   // the kernel itself is unfit: exit code 78
	Detail string // what was found
	Fix    string // what to do; empty when OK
}
