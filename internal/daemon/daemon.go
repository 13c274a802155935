// Package daemon keeps the scheduler alive: it loads it, gives every task its
// class, follows the configuration file, and loads it again when the kernel
// has ended it.
//
// It does not know how scheduling works (bpf/), how a scheduler is loaded
// (package sched), what the file says (package config) or which rule matches
// (package class): it brings them together. Its only caller is `rota run`.
// Clients reach it through package api, for which it is the Daemon.
package daemon

import (
	"context"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"rota/internal/api"
	"rota/internal/config"
	"rota/internal/counters"
	"rota/internal/sched"
)

// Scheduler is what the daemon needs of a *sched.Scheduler; tests have a fake.
type Scheduler interface {
	Configure(sched.Params) error
	SetClass(sched.Assignment) error
	Forget(sched.KnownBy) error
	Remember(sched.Known, int) error
	Events() <-chan sched.Event
	Exit() <-chan sched.ExitInfo
	Stats() (sched.Stats, error)
	Explain(tid uint32) (sched.Task, error)
	Domains() []uint32        // by CPU: its cache domain
	SetSpeeds([]uint32) error // of the CPUs, in 1024ths of the fastest; 0: not known
	SetCounters(sched.Counters) error
	Came() (uint32, error) // how often a CPU came online
	Sweep() error          // of tasks that wait where nobody looks any more
	Close() error
}

// Options are what the daemon is given; none may be nil.
type Options struct {
	Source Source
	Load   func(context.Context, sched.Params, *slog.Logger) (Scheduler, error)
	Proc   string // where procfs is mounted
	Root   fs.FS  // the machine's files
	Passwd string // the file with the users' names
	// OpenFunction watches a function of the kernel, named as in a rule.
	OpenFunction func(name string) (FunctionWatch, error)
	// OpenCounters opens counters of the processor on these CPUs: of an event, or
	// without one those that this processor has.
	OpenCounters func(event string, latency time.Duration, cpus []int) (*counters.Set, error)
	Notify       func(state string) // tells systemd
	Log          *slog.Logger
	Version      string
	Kernel       string // release
	// Watchdog is how often systemd wants to hear that we are alive; 0: never.
	Watchdog time.Duration
	// ProvokeError makes the loaded scheduler fail once, for tests of what
	// happens then.
	ProvokeError bool
}

// Daemon is the running daemon. It implements api.Daemon.
type Daemon struct {
	Options
	started time.Time

	// change is held by whoever changes what is in force: a reload, or
	// loading and ending the scheduler. It is taken before mu.
	change sync.Mutex
	// explaining is held while all tasks are looked at for one client.
	explaining sync.Mutex
	seen       stamp // of the file that was read last

	mu       sync.Mutex
	state    api.State
	reason   string
	restarts int
	lastExit *api.Exit
	force    force
	refused  []api.Fault
	session  *session // nil while not attached
}

// force is the configuration in force.
type force struct {
	config *config.Config
	path   string // empty: built-in defaults
	loaded time.Time
}

// New reads the configuration. The error is the refusal of the file.
func New(o Options) (*Daemon, error) {
	seen := o.Source.stamp()
	c, path, err := o.Source.read()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &Daemon{
		Options: o,
		started: now,
		state:   api.Starting,
		force:   force{c, path, now},
		seen:    seen,
	}, nil
}

// setState says what the daemon is doing, to clients and to systemd.
func (d *Daemon) setState(s api.State, reason string) {
	d.mu.Lock()
	d.state, d.reason = s, reason
	d.mu.Unlock()
	text := string(s)
	if reason != "" {
		text += ": " + reason
	}
	d.Notify("STATUS=" + oneLine(text))
}

// current is the session to talk to, nil while there is none.
func (d *Daemon) current() *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.session
}
