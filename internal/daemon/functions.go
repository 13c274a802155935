package daemon

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"rota/internal/api"
	"rota/internal/sched"
	"rota/internal/where"
)

const (
	// readEvery is how often we ask who executed the functions of the rules.
	readEvery = 500 * time.Millisecond
	// forgetAfter is how long a task counts as one that executes a function.
	forgetAfter = time.Minute
	// maxExecutors bounds the tasks that are remembered: whoever comes beyond, or lives
	// shorter than pruneEvery when they are many, keeps the class of the other rules.
	maxExecutors = 8192
	pruneEvery   = 5 * time.Second
	// modulesFile lists the loaded modules: what is not known may come with one.
	modulesFile = "proc/modules"
)

// FunctionWatch sees who executes a function; it is a *where.Watch, tests have a fake.
type FunctionWatch interface {
	Tasks() ([]where.Executed, error)
	Close()
}

// functions follows who executes the kernel functions that rules name.
type functions struct {
	root  fs.FS
	proc  procfs
	open  func(name string) (FunctionWatch, error)
	tell  func(sched.Event) // that a task is to be looked at
	log   *slog.Logger
	begun time.Time

	mu      sync.Mutex
	watched []*watched           // changed by who follows, and by who has waited for its end
	seen    map[uint32]*executor // by TID
	pruned  time.Duration        // when those that had ended were looked for, since begun
	full    bool                 // there were more than there is room for
}

// watched is a function of the rules.
type watched struct {
	name    string
	watch   FunctionWatch // nil: it can't be watched
	fault   string        // why
	modules string        // that were loaded when that was tried, or when it began
}

// executor is a task that was seen.
type executor struct {
	tgid    uint32
	started uint64
	last    map[string]time.Duration // by function, since begun
}

func (d *Daemon) newFunctions(t *tasks) *functions {
	return &functions{
		root: d.Root, proc: t.proc, open: d.OpenFunction, tell: t.note, log: d.Log,
		begun: time.Now(), seen: map[uint32]*executor{},
	}
}

// follow watches the functions of the plan in force until ctx ends. What it returns is
// closed when it looks no more; use(nil) then ends the watches.
func (f *functions) follow(ctx context.Context, plan func() *plan) <-chan struct{} {
	return again(ctx, 0, func() time.Duration {
		more := f.use(plan().config.KernelFunctions())
		f.read()
		if more {
			return 0
		}
		return readEvery
	})
}

// use watches these functions and no others. All are begun anew when other modules are
// loaded: one may have come, or been exchanged below a probe that the kernel has ended then.
// One is begun at a time, since that takes long; it returns whether there are more.
func (f *functions) use(names []string) (more bool) {
	if len(names)+len(f.watched) == 0 {
		return false
	}
	modules := f.modules()
	next, begun := make([]*watched, 0, len(names)), false
	for _, name := range names {
		i := slices.IndexFunc(f.watched, func(w *watched) bool { return w.name == name })
		if i >= 0 && f.watched[i].modules == modules {
			next = append(next, f.watched[i])
			continue
		}
		before := &watched{}
		if i >= 0 {
			before = f.watched[i]
		}
		if begun {
			more = true
			if i >= 0 {
				next = append(next, before)
			}
			continue
		}
		begun = true
		next = append(next, f.begin(name, modules, before))
	}
	f.mu.Lock()
	old := f.watched
	f.watched = next
	f.mu.Unlock()
	for _, w := range old {
		if w.watch != nil && !slices.Contains(next, w) {
			w.watch.Close()
		}
	}
	return more
}

// modules names what is loaded, without what changes all the time.
func (f *functions) modules() (names string) {
	text, err := fs.ReadFile(f.root, modulesFile)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		// "name size used by, state address": only what is live can be watched.
		name, rest, _ := strings.Cut(line, " ")
		if strings.Contains(rest, " Live ") {
			names += name + " "
		}
	}
	return names
}

// begin tries to watch a function. It takes as long as the kernel needs to look at all
// its types, so nobody must wait for it.
func (f *functions) begin(name, modules string, before *watched) *watched {
	w := &watched{name: name, modules: modules}
	watch, err := f.open(name)
	switch {
	case err == nil:
		w.watch = watch
		f.log.Info("kernel functions: watched", "function", name)
	case before.fault != err.Error():
		f.log.Warn("kernel functions: not watched, rules with it match nobody", "function", name, "error", err)
		fallthrough
	default:
		w.fault = err.Error()
	}
	return w
}

// read asks who executed the functions since it was asked last, and has those looked at
// for whom that is new or long ago.
func (f *functions) read() {
	now := time.Since(f.begun)
	for _, w := range f.watched {
		if w.watch == nil {
			continue
		}
		tasks, err := w.watch.Tasks()
		if err != nil {
			f.log.Warn("kernel functions: can't be read", "function", w.name, "error", err)
			continue
		}
		f.mu.Lock()
		for _, t := range tasks {
			f.saw(t, w.name, now)
		}
		f.mu.Unlock()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	prune := len(f.seen) > maxExecutors/2 && now-f.pruned > pruneEvery
	if prune {
		f.pruned, f.full = now, len(f.seen) >= maxExecutors
	}
	for tid, e := range f.seen {
		f.forget(tid, e, now, prune)
	}
}

func (f *functions) saw(t where.Executed, name string, now time.Duration) {
	e := f.seen[t.TID]
	if e == nil || e.started != t.Started {
		if e == nil && len(f.seen) >= maxExecutors {
			f.full = true
			return
		}
		e = &executor{tgid: t.TGID, started: t.Started, last: map[string]time.Duration{}}
		f.seen[t.TID] = e
	}
	_, known := e.last[name]
	e.last[name] = now
	if !known {
		f.look(t.TID, e)
	}
}

// forget drops what a task has not executed for long, and with prune the task, if it has
// ended.
func (f *functions) forget(tid uint32, e *executor, now time.Duration, prune bool) {
	changed := false
	for name, last := range e.last {
		if now-last > forgetAfter {
			delete(e.last, name)
			changed = true
		}
	}
	if !changed && !prune {
		return
	}
	lives := f.proc.started(tid, e.started)
	if !lives || len(e.last) == 0 {
		delete(f.seen, tid)
	}
	if lives && changed {
		f.look(tid, e)
	}
}

// look has a task looked at, on another goroutine.
func (f *functions) look(tid uint32, e *executor) {
	f.tell(sched.Event{Task: sched.TaskID{TID: tid, Start: e.started}, TGID: e.tgid})
}

// of are the functions that a task executes.
func (f *functions) of(tid uint32) (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.seen[tid]
	if e == nil || !f.proc.started(tid, e.started) {
		return nil // it has ended, and its number may have been given again
	}
	for name := range e.last {
		names = append(names, name)
	}
	return names
}

// status is what `rota status` says about them.
func (f *functions) status() []api.Function {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := []api.Function{}
	for _, w := range f.watched {
		function := api.Function{Name: w.name, Note: w.fault}
		if f.full && w.fault == "" {
			function.Note = fmt.Sprintf("more than %d tasks execute it and others: choose functions that only those execute who matter", maxExecutors)
		}
		for _, e := range f.seen {
			if _, executes := e.last[w.name]; executes {
				function.Tasks++
			}
		}
		out = append(out, function)
	}
	return out
}
