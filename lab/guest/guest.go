// Package guest is the inside of a lab machine: the program that runs as
// PID 1 of the booted kernel, the handle a scenario works with there, and the
// protocol by which results leave the machine.
//
// The same binary is both ends. On the host it calls ReadResults on what came
// out of the machine's second serial port; in the guest it calls Main, which
// never returns. A scenario sees only Guest: it starts programs with exact
// scheduling attributes (Cmd), makes cgroups and network namespaces, and emits
// metrics.
//
// What it does not do: boot a machine (lab/machine), build the initramfs
// (lab/guest/initramfs), or know a scenario by name (cmd/rota-lab passes the
// functions in).
package guest

import (
	"fmt"
	"math/rand"
	"time"
)

// Row is one column of a scenario's table: what the machine is booted with.
type Row struct {
	Name      string `json:"name"`             // column title, "kernel", "rota+classes"
	Kernel    string `json:"kernel,omitempty"` // row of the lock file; "" = as asked on the command line
	Scheduler string `json:"scheduler"`        // "kernel", "rota", or a path with arguments
	Config    string `json:"config,omitempty"` // rota's YAML; "" = started without a file
	Fifo      bool   `json:"fifo,omitempty"`   // the scenario runs its measured chain SCHED_FIFO
	// Features of the kernel's own scheduler, as in debugfs: "NO_RUN_TO_PARITY".
	Features []string `json:"features,omitempty"`
	// Record is for how many events of each CPU rota writes a record, which is
	// in RecordPath when the scheduler has ended; 0 = none.
	Record int `json:"record,omitempty"`
	// About is one line for a reader, where the rest of the row doesn't say it.
	About string `json:"-"`
}

// Guest is the running machine as a scenario sees it. Its methods are safe for
// use by several goroutines.
type Guest struct {
	Row     Row
	Seed    int64  // changes the workload's random choices, nothing else
	CPUs    int    // virtual CPUs, numbered from 0
	Release string // kernel release, as uname -r
	Command string // of the command exec: a line for the shell

	out       *writer
	scheduler *Proc
	mayDetach bool
}

// Bucket is one bar of a histogram: Count values in [Low, High), in the unit
// that the histogram's name ends in.
type Bucket struct {
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Count int64   `json:"count"`
}

// Rand returns a new generator that depends on the seed and on name only.
func (g *Guest) Rand(name string) *rand.Rand {
	h := uint64(g.Seed)
	for _, c := range []byte(name) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return rand.New(rand.NewSource(int64(h)))
}

// Sleep waits for d of virtual time.
func (g *Guest) Sleep(d time.Duration) { time.Sleep(d) }

// Metric reports one number. The name matches ^[a-z][a-z0-9_]*$ and ends in
// the unit; a bad name or a value that is not finite fails the run.
func (g *Guest) Metric(name string, value float64) { g.out.metric(name, value) }

// Histogram reports a distribution under the rules of Metric.
func (g *Guest) Histogram(name string, buckets []Bucket) { g.out.histogram(name, buckets) }

// Event reports that something happened; name obeys the rules of Metric.
func (g *Guest) Event(name, text string) { g.out.event(name, text) }

// Log keeps a line for whoever reads the run's log; it fails nothing.
func (g *Guest) Log(format string, args ...any) { g.out.log(fmt.Sprintf(format, args...)) }

// Scheduler returns the daemon under test, or nil in a row of the kernel's own
// scheduler. A scenario that ends it must call ExpectDetach first.
func (g *Guest) Scheduler() *Proc { return g.scheduler }

// ExpectDetach says that the scheduler may be gone at the end: the run then
// reports "attached" as it finds it instead of failing.
func (g *Guest) ExpectDetach() { g.mayDetach = true }
