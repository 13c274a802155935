// Package api is rota's only door: what is said over the daemon's UNIX
// socket, the server that says it and the client that asks. openapi.yaml
// describes the same for everybody who is not written in Go; a test holds the
// two together.
//
// It knows nothing about scheduling and imports nothing of ours. Package
// daemon answers behind the interface Daemon; the commands of cmd/rota and,
// later, the Kubernetes agent are the clients.
package api

import (
	"fmt"
	"strings"
	"time"
)

// DefaultSocket is where the daemon listens unless told otherwise.
const DefaultSocket = "/run/rota/rota.sock"

// State is what the daemon is doing.
type State string

// The states of the daemon.
const (
	Starting State = "starting" // not attached yet
	Running  State = "running"  // every task runs under rota
	Waiting  State = "waiting"  // the kernel ended the scheduler; another try follows
	Stopping State = "stopping" // detaching, or detached for good
)

// Status is the answer to GET /v1/status. Counters count since the scheduler
// was attached; a counter can start again at zero when that happens.
type Status struct {
	Version         string           `json:"version"`
	PID             int              `json:"pid"`
	State           State            `json:"state"`
	Reason          string           `json:"reason"`      // why it is not running, or what is worth knowing; may be empty
	Kernel          string           `json:"kernel"`      // release
	KernelState     string           `json:"kernelState"` // the kernel's word for the state of sched_ext
	UptimeSeconds   float64          `json:"uptimeSeconds"`
	AttachedSeconds float64          `json:"attachedSeconds"` // 0 while not attached
	Restarts        int              `json:"restarts"`        // times that the scheduler was loaded again
	LastExit        *Exit            `json:"lastExit"`        // null: the kernel has never ended it
	Config          Config           `json:"config"`
	Classes         []Class          `json:"classes"`
	CPUs            []CPU            `json:"cpus"`
	Boosts          Boosts           `json:"boosts"`
	Answers         Answers          `json:"answers"`
	Functions       []Function       `json:"functions"` // of the kernel, that rules name
	Frequency       Frequency        `json:"frequency"`
	KernelEvents    map[string]int64 `json:"kernelEvents"`
}

// Exit says why and when the kernel last ended the scheduler.
type Exit struct {
	Time    time.Time `json:"time"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
}

// Config says what configuration is in force.
type Config struct {
	Path    string    `json:"path"` // empty: built-in defaults
	Loaded  time.Time `json:"loaded"`
	Rules   int       `json:"rules"`
	Refused []Fault   `json:"refused"` // why the newer file is not in force; empty when there is none
}

// Class is one class, what it promises and what it got.
type Class struct {
	Name        string  `json:"name"`
	Tier        string  `json:"tier"`
	Weight      uint32  `json:"weight"`
	SliceMicros int64   `json:"sliceMicros"`
	CapPercent  float64 `json:"capPercent"` // 0: no cap
	Line        int     `json:"line"`       // in the configuration; 0: built in
	Rules       int     `json:"rules"`      // rules that give this class
	CPUs        []int   `json:"cpus"`       // that belong to it; empty: none does
	CPUsLent    bool    `json:"cpusLent"`   // others may use them while they would be idle
	// But only once no task of the class has run on any of them for so long; 0: when one is idle.
	CPUsLentAfterMicros int64   `json:"cpusLentAfterMicros"`
	CPUsReturned        uint64  `json:"cpusReturned"` // times that a task of the class wanted CPUs that were lent after that time
	CPUsExpected        uint64  `json:"cpusExpected"` // of these, they had come back before
	CPUsNote            string  `json:"cpusNote"`     // why it has not the CPUs that it wants; empty: it has
	Tasks               uint64  `json:"tasks"`
	RuntimeMicros       int64   `json:"runtimeMicros"`
	SharePercent        float64 `json:"sharePercent"` // of the CPU time of all classes
	// What the same would have taken at full speed, where frequency fairness is on.
	ProgressMicros       int64    `json:"progressMicros"`
	ProgressSharePercent float64  `json:"progressSharePercent"` // of that of all classes
	MemoryBoundPercent   float64  `json:"memoryBoundPercent"`   // of its time at full speed, that frequencies do not change
	MemoryBoundCounted   bool     `json:"memoryBoundCounted"`   // that was counted; else it is as declared
	MemoryCountedMicros  int64    `json:"memoryCountedMicros"`  // in so much of its time at full speed; 0: nothing was
	Dispatches           uint64   `json:"dispatches"`
	Preempting           uint64   `json:"preempting"`
	Preempted            uint64   `json:"preempted"`
	CapHits              uint64   `json:"capHits"`
	Rescues              uint64   `json:"rescues"`
	WaitP50Micros        float64  `json:"waitP50Micros"`
	WaitP99Micros        float64  `json:"waitP99Micros"`
	WaitMaxMicros        float64  `json:"waitMaxMicros"`
	WaitHistogram        []uint64 `json:"waitHistogram"` // bucket i: waits in [2^(i-1), 2^i) us; bucket 0: below 1 us
}

// Boosts counts tasks that ran at another's level because that one waited for them.
type Boosts struct {
	Futex         uint64 `json:"futex"`         // begun: for the owner of a lock in user space
	Locks         uint64 `json:"locks"`         // for the owner of a lock in the kernel
	Wakeups       uint64 `json:"wakeups"`       // for the task that a priority task woke before it went to sleep
	Binder        uint64 `json:"binder"`        // for the answer to a binder call
	Chained       uint64 `json:"chained"`       // of these, passed on by a task that was boosted itself
	Fetched       uint64 `json:"fetched"`       // boosted tasks that were taken out of a queue to run at once
	Ended         uint64 `json:"ended"`         // ended with the wait
	Spent         uint64 `json:"spent"`         // ended because they used up the time of a boost
	RuntimeMicros int64  `json:"runtimeMicros"` // CPU time of boosted tasks
}

// Answers counts how tasks that had changed, as their name, got their classes.
type Answers struct {
	Asked uint64 `json:"asked"` // times that the daemon was asked
	Known uint64 `json:"known"` // that it was not, because it had answered about such a task
}

// Explanation is the answer to GET /v1/explain?pid=N.
type Explanation struct {
	PID     int      `json:"pid"`
	Threads []Thread `json:"threads"` // all of a process, or the one thread that was asked for
}

// Thread is one thread: its class and why, its level and why.
type Thread struct {
	TID           int     `json:"tid"`
	Name          string  `json:"name"`
	Class         string  `json:"class"`
	Rule          string  `json:"rule"`   // file:line of the rule that gives the class; empty: none does
	Tier          string  `json:"tier"`   // of its class
	Level         string  `json:"level"`  // the class at whose level it runs: its own, or that of a giver
	State         string  `json:"state"`  // runs, waits for a CPU, sleeps; real-time tasks are not rota's
	CPU           int     `json:"cpu"`    // that it runs on, or ran on last
	Weight        uint32  `json:"weight"` // 1024: nice 0 in a class of weight 100
	SliceMicros   int64   `json:"sliceMicros"`
	LagMicros     int64   `json:"lagMicros"`   // CPU time that it is owed, < 0: had too much; 0 where it does not compete by EEVDF
	ReadyMicros   int64   `json:"readyMicros"` // for how long it waits for a CPU; 0: it does not
	Boosted       bool    `json:"boosted"`
	Spent         bool    `json:"spent"`         // it was boosted until it had used up the time of a boost
	BoostedMicros int64   `json:"boostedMicros"` // CPU time that it had by this boost
	Givers        []Giver `json:"givers"`        // who waits for it and gives it a boost
	WaitsFor      []Link  `json:"waitsFor"`      // the chain from the one that it waits for on
	Calls         Calls   `json:"calls"`
}

// Calls counts the binder calls that a thread answered, of callers that give it their
// level, since it began or the scheduler was attached.
type Calls struct {
	Given   uint64 `json:"given"`
	Boosted uint64 `json:"boosted"` // of these, served at that level or above
}

// Giver is one who gives a boost, at the other end of a chain.
type Giver struct {
	TID   int    `json:"tid"`
	Name  string `json:"name"`
	Class string `json:"class"`
	Chain []Link `json:"chain"` // from the one that the giver waits for to the thread itself
}

// Link is one wait of a chain: somebody waits for this task.
type Link struct {
	TID       int    `json:"tid"`
	Name      string `json:"name"`
	Reason    string `json:"reason"` // futex, lock, wakeup, binder
	Gives     bool   `json:"gives"`  // it runs at the level of who waits
	AgeMicros int64  `json:"ageMicros"`
}

// CPU counts one CPU.
type CPU struct {
	CPU          int     `json:"cpu"`
	Priority     uint64  `json:"priority"` // dispatches by tier
	Fair         uint64  `json:"fair"`
	Background   uint64  `json:"background"`
	Direct       uint64  `json:"direct"`
	Handed       uint64  `json:"handed"`
	Preemptions  uint64  `json:"preemptions"`
	Steals       uint64  `json:"steals"`
	Rescues      uint64  `json:"rescues"`
	CapHits      uint64  `json:"capHits"`
	Limited      uint64  `json:"limited"`      // times that a task had to wait for its cgroup's cpu.max
	SpeedPercent float64 `json:"speedPercent"` // of the fastest CPU at its top frequency; 0: not known
	Owner        string  `json:"owner"`        // the class that it belongs to; empty: none
	// CPU time, since it has an owner, of tasks that do not belong there.
	BoundMicros int64 `json:"boundMicros"` // who may run nowhere else
	GuestMicros int64 `json:"guestMicros"` // whom it was lent to
	StrayMicros int64 `json:"strayMicros"` // who was on its way out
}

// Frequency is whether and how frequencies count.
type Frequency struct {
	Mode string `json:"mode"` // off, on, frequency
	Note string `json:"note"` // why the speeds of the CPUs are not known; empty: they are
	// Counters is what counts how much tasks wait for memory; empty: nothing does, it is
	// as declared, and CountersNote says why, unless nobody wanted that.
	Counters     string `json:"counters"`
	CountersNote string `json:"countersNote"`
}

// Function is a function of the kernel that rules name.
type Function struct {
	Name  string `json:"name"`  // as in the rule
	Tasks int    `json:"tasks"` // that lately executed it
	Note  string `json:"note"`  // why it can't be watched; empty: it is
}

// Classes is the answer to GET /v1/classes.
type Classes struct {
	Classes []Class `json:"classes"`
}

// Reload is the answer to a POST /v1/reload that was accepted.
type Reload struct {
	Config  Config `json:"config"`
	Tasks   int    `json:"tasks"`   // that were given their class again
	Classes int    `json:"classes"` // in force now
}

// Fault is one thing that is wrong with a configuration file.
type Fault struct {
	File  string `json:"file"`
	Line  int    `json:"line"` // 0: the file as a whole
	Fault string `json:"fault"`
	Fix   string `json:"fix"`
}

// Error is every answer that is not a success.
type Error struct {
	Fault  string  `json:"fault"`
	Fix    string  `json:"fix"`
	Faults []Fault `json:"faults,omitempty"` // of a refused configuration
	More   int     `json:"more,omitempty"`   // faults beyond those listed
	Code   int     `json:"-"`                // HTTP status; 0 means 500
}

// Error is one line, and one more for each fault of a configuration.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Fault)
	if e.Fix != "" {
		b.WriteString(": " + e.Fix)
	}
	for _, f := range e.Faults {
		b.WriteString("\n" + f.String())
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "\nand %d more faults", e.More)
	}
	return b.String()
}

// String is one line: file:line: fault: fix.
func (f Fault) String() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: %s: %s", f.File, f.Fault, f.Fix)
	}
	return fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Fault, f.Fix)
}
