// Package config reads rota's configuration file and checks every word of it.
//
// It knows the file and nothing else: which tasks a rule matches is package
// class's business, what a class does is the scheduler's, and when to read
// the file again is the daemon's. Callers are package daemon and the commands
// `rota run` and `rota config check`. It imports nothing of ours; the check of
// a rule's patterns is handed in by the caller.
package config

import (
	"slices"
	"time"
)

// Bounds and defaults of the file's values.
const (
	MinSlice           = 100 * time.Microsecond
	MaxSlice           = 100 * time.Millisecond
	MinStarvationBound = 50 * time.Millisecond
	MaxStarvationBound = 10 * time.Second
	MinWeight          = 1
	MaxWeight          = 10000

	MinLendAfter = 100 * time.Microsecond
	MaxLendAfter = time.Second

	MinAccessLatency = time.Nanosecond
	MaxAccessLatency = time.Millisecond

	DefaultSlice           = 2100 * time.Microsecond
	DefaultStarvationBound = time.Second
	DefaultWeight          = 100
	DefaultCap             = 950 // per mille of one CPU

	// MaxClasses counts the built-in class "default".
	MaxClasses = 255
	// MaxRules bounds what the daemon has to compile.
	MaxRules = 10000
	// MaxFunctions bounds the functions of the kernel that rules name: each is watched.
	MaxFunctions = 8
	// MaxFile is the size in bytes above which a file is not read.
	MaxFile = 4 << 20
)

// The tiers that a class can be in.
const (
	TierPriority   = "priority"
	TierFair       = "fair"
	TierBackground = "background"
)

// The values of frequencyFairness.
const (
	FrequencyOff  = "off"
	FrequencyOn   = "on"        // frequency, and the strength of the core
	FrequencyOnly = "frequency" // each core compared with its own top
)

// The values of counters; others are events.
const (
	CountersAuto = "auto" // what this processor has
	CountersOff  = "off"
)

// DefaultClass is the name of the class of unmatched tasks: always there,
// always first.
const DefaultClass = "default"

// ReservedClass is the name of the class that the daemon keeps for its own
// threads; a file may not use it.
const ReservedClass = "rota"

// Config is a file that has passed every check.
type Config struct {
	Slice           time.Duration // default request, MinSlice..MaxSlice
	StarvationBound time.Duration // MinStarvationBound..MaxStarvationBound
	Fair            Fair
	Inherit         Inherit
	Frequency       string // FrequencyOff, FrequencyOn or FrequencyOnly
	Counters        string // CountersAuto, CountersOff, or an event, rHEX or GROUP:NAME, or EVENT/EVENT
	// AccessLatency is how long each counted event waits, up to MaxAccessLatency; 0: what is
	// counted are cycles.
	AccessLatency time.Duration
	Classes       []Class // Classes[0] is DefaultClass; at most MaxClasses
	Rules         []Rule  // in the file's order; the first match wins
}

// Fair are the switches of the fair tier: what EEVDF leaves open.
type Fair struct {
	// RunToParity: a task that is eligible keeps the CPU for its slice when
	// another of no greater weight wakes.
	RunToParity bool
	// PreemptShort: but not against a task with a shorter slice, nor for more than
	// 0.35 ms, and a hog not at all, against one that makes a brief request.
	PreemptShort bool
	// EligibilityCheck: a task that has become ineligible gives way at once.
	EligibilityCheck bool
	// BriefRequests: a task that wakes asks for twice what it lately used
	// between two sleeps, at least MinSlice, where that is no more than an
	// eighth of its slice, and asks so again until it has used that eighth. Who asks for
	// MinSlice so is not charged for being chosen, up to a 32nd of a CPU's time.
	BriefRequests bool
	// LazyPreemption: a turn that is younger than 0.35 ms is not ended by whom a task wakes, unless
	// these two only answer each other, or who is woken weighs more or asks for a shorter slice.
	// Who is put off so waits for 2 ms of the turn at most.
	LazyPreemption bool
	// HandOver: whom a task wakes that sleeps within 10 us, as it did the last eight times, and
	// more often after it was wrong, runs on its CPU then, if nobody else waits there.
	HandOver bool
}

// Inherit are the waits that boost whom a priority task waits for.
type Inherit struct {
	Futex   bool // for the owner of a lock in user space
	Locks   bool // for the owner of a lock in the kernel
	Wakeups bool // for the task that it woke before it went to sleep
	Binder  bool // for the answer to a binder call
}

// everyWait is the value without a word.
func everyWait() Inherit { return Inherit{Futex: true, Locks: true, Wakeups: true, Binder: true} }

// A preset is a value for all switches and the slice, under one name.
type preset struct {
	name  string
	slice time.Duration
	fair  Fair
}

// balanced is the preset without a word.
func balanced() preset {
	return preset{"balanced", DefaultSlice, Fair{RunToParity: true, PreemptShort: true, BriefRequests: true, HandOver: true}}
}

// presets are for wake-ups first, for both, and for work done. The slice of the first takes a third
// of the longest of a hundred waits, and 8 % of the work (docs/decisions/0008-brief.md), that of the last is
// just below a tick of 4 ms, so that a turn that begins at one ends at the next.
func presets() []preset {
	return []preset{
		{"latency", 1500 * time.Microsecond, Fair{PreemptShort: true, BriefRequests: true, HandOver: true}},
		balanced(),
		{"throughput", 3900 * time.Microsecond, Fair{RunToParity: true, LazyPreemption: true, HandOver: true}},
	}
}

// Class is one entry of "classes".
type Class struct {
	Name   string
	Tier   string        // TierPriority, TierFair or TierBackground
	Weight uint32        // MinWeight..MaxWeight
	Slice  time.Duration // 0: the scheduler's slice
	Cap    uint32        // per mille of one CPU per 100 ms; 0 outside of TierPriority
	// Inherit: what its tasks wait for runs at their level; TierPriority only.
	Inherit bool
	// DynamicSlice: a task that wakes asks for what it lately used; TierPriority only.
	DynamicSlice bool
	CPUs         CPUs // that it has to itself; TierPriority only
	// MemoryBound is how much of its time does not depend on the CPU's frequency, 0..1.
	MemoryBound float64
	Line        int // in the file; 0 when built in
}

// Rule is one entry of "rules". Empty match keys are absent.
type Rule struct {
	Cgroup, Comm, Exe, User string
	KernelFunction          string // "function" or "module:function"
	Class                   string // the name of a class in Config.Classes
	Line                    int
}

// KernelFunctions are the functions that rules name, each once, in the file's order.
func (c *Config) KernelFunctions() (names []string) {
	for _, r := range c.Rules {
		if r.KernelFunction != "" && !slices.Contains(names, r.KernelFunction) {
			names = append(names, r.KernelFunction)
		}
	}
	return names
}

// Default is the configuration without a file.
func Default() *Config {
	return &Config{
		Slice:           balanced().slice,
		StarvationBound: DefaultStarvationBound,
		Fair:            balanced().fair,
		Inherit:         everyWait(),
		Frequency:       FrequencyOff,
		Counters:        CountersAuto,
		Classes:         []Class{{Name: DefaultClass, Tier: TierFair, Weight: DefaultWeight}},
	}
}
