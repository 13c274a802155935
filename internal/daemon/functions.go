package daemon

import (
	"context"
	"io/fs"
	"log/slog"
	"slices"
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
	watched []*watched
	seen    map[uint32]*executor // by TID
}

// watched is a function of the rules.
type watched struct {
	name    string
	watch   FunctionWatch // nil: it can't be watched
	fault   string        // why
	modules string        // that were loaded when that was tried
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
// closed when none is watched any more.
func (f *functions) follow(ctx context.Context, plan func() *plan) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer f.use(nil)
		tick := time.NewTicker(readEvery)
		defer tick.Stop()
		for {
			f.use(plan().config.KernelFunctions())
			f.read()
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return done
}

// use watches these functions and no others. Which can't be watched is tried again when
// other modules are loaded.
func (f *functions) use(names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(names)+len(f.watched) == 0 {
		return
	}
	f.watched = slices.DeleteFunc(f.watched, func(w *watched) bool {
		gone := !slices.Contains(names, w.name)
		if gone && w.watch != nil {
			w.watch.Close()
		}
		return gone
	})
	modules := ""
	if text, err := fs.ReadFile(f.root, modulesFile); err == nil {
		modules = string(text)
	}
	for _, name := range names {
		i := slices.IndexFunc(f.watched, func(w *watched) bool { return w.name == name })
		if i < 0 {
			i = len(f.watched)
			f.watched = append(f.watched, &watched{name: name})
		} else if f.watched[i].watch != nil || f.watched[i].modules == modules {
			continue
		}
		f.try(f.watched[i], modules)
	}
}

// try begins to watch a function.
func (f *functions) try(w *watched, modules string) {
	watch, err := f.open(w.name)
	if err == nil {
		w.watch, w.fault = watch, ""
		f.log.Info("kernel functions: watched", "function", w.name)
		return
	}
	if w.fault != err.Error() {
		f.log.Warn("kernel functions: not watched, rules with it match nobody", "function", w.name, "error", err)
	}
	w.fault, w.modules = err.Error(), modules
}

// read asks who executed the functions since it was asked last, and has those looked at
// for whom that is new or long ago.
func (f *functions) read() {
	f.mu.Lock()
	defer f.mu.Unlock()
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
		for _, t := range tasks {
			f.saw(t, w.name, now)
		}
	}
	for tid, e := range f.seen {
		f.forget(tid, e, now)
	}
}

func (f *functions) saw(t where.Executed, name string, now time.Duration) {
	e := f.seen[t.TID]
	if e == nil || e.started != t.Started {
		e = &executor{tgid: t.TGID, started: t.Started, last: map[string]time.Duration{}}
		f.seen[t.TID] = e
	}
	_, known := e.last[name]
	e.last[name] = now
	if !known {
		f.look(t.TID, e)
	}
}

// forget drops what a task has not executed for long.
func (f *functions) forget(tid uint32, e *executor, now time.Duration) {
	changed := false
	for name, last := range e.last {
		if now-last > forgetAfter {
			delete(e.last, name)
			changed = true
		}
	}
	if len(e.last) == 0 {
		delete(f.seen, tid)
	}
	if changed {
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
		for _, e := range f.seen {
			if _, executes := e.last[w.name]; executes {
				function.Tasks++
			}
		}
		out = append(out, function)
	}
	return out
}
