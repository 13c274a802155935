package daemon

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"rota/internal/class"
	"rota/internal/identity"
	"rota/internal/sched"
)

const (
	// maxPending bounds the tasks that wait to be looked at. Above it all
	// tasks are looked at, which costs a bounded time as well.
	maxPending = 8192
	// batchPause is the least time between two batches: a task that renames
	// itself in a loop is looked at 500 times a second, not a million times.
	batchPause = 2 * time.Millisecond
	// scanPause is the least time between two looks at every task.
	scanPause = time.Second
	// maxPasses bounds the passes of one look at every task.
	maxPasses = 5
)

// tasks gives each task its class.
type tasks struct {
	proc  procfs
	names *identity.Users
	// executes are the functions of the rules that a task executes.
	executes func(tid uint32) []string
	hold     func(tid uint32) (hold, error)
	set      func(sched.Assignment) error
	known    known
	self     uint32 // our PID
	log      *slog.Logger

	// looking is held while one task is looked at, so that no older view of
	// a task overwrites a newer one.
	looking sync.Mutex
	rules   *class.Classifier
	own     int      // the class of our threads
	refused []string // what was logged, see complain
	dark    bool

	mu      sync.Mutex
	pending map[uint32]sched.Event // by TID, the newest event
	lost    bool                   // look at every task
	wake    chan struct{}
}

// use sets the rules for tasks that are looked at from now on.
func (t *tasks) use(rules *class.Classifier, own int) {
	t.looking.Lock()
	defer t.looking.Unlock()
	t.rules, t.own = rules, own
	// What is known of the old rules ends before any task is looked at by the new ones.
	t.complain("can't forget classes of other rules", t.known.use(rules.Needs()))
}

// collect notes events until the scheduler closes the channel. It never waits
// for anything else, so that the kernel's buffer stays empty, and nobody ever
// waits for it.
func (t *tasks) collect(events <-chan sched.Event) {
	for e := range events {
		t.note(e)
	}
}

func (t *tasks) note(e sched.Event) {
	t.mu.Lock()
	if e.Kind == sched.EventLost || len(t.pending) >= maxPending {
		t.lost = true
		clear(t.pending)
	} else if !t.lost {
		// The kernel waits for the answer to the latest that it asked.
		if old := t.pending[e.Task.TID]; old.Task == e.Task {
			e.Asked = max(e.Asked, old.Asked)
		}
		t.pending[e.Task.TID] = e
	}
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default: // it will be looked at with what is noted already
	}
}

// work looks at noted tasks in batches.
func (t *tasks) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		}
		pause := batchPause
		batch, lost := t.take()
		if lost {
			t.log.Info("tasks: events were lost, looking at every task")
			t.rescan(ctx)
			pause = scanPause
		}
		for _, e := range batch {
			t.lookAgain(e)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

func (t *tasks) take() (batch map[uint32]sched.Event, lost bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	batch, lost = t.pending, t.lost
	t.pending, t.lost = map[uint32]sched.Event{}, false
	return batch, lost
}

// lookAgain looks at the task of an event. The event says when its task was
// started and the kernel refuses a class for another task with that TID, so
// whatever we read in between belonged to the task or does no harm.
func (t *tasks) lookAgain(e sched.Event) {
	if e.Task.Start == 0 {
		t.lookUp(e.TGID, e.Task.TID)
		return
	}
	t.look(e.Task, e.TGID, e.Asked)
}

// lookUp looks at a task of which only the TID is known. TIDs are used again,
// so what was read could belong to one task and the class be given to
// another. A pidfd opened first and still alive at the end proves that the
// TID meant one task all the time; otherwise whoever has it now is looked at.
func (t *tasks) lookUp(tgid, tid uint32) {
	for range 3 {
		h, err := t.hold(tid)
		if err != nil {
			return // it has ended
		}
		t.look(sched.TaskID{TID: tid}, tgid, 0)
		alive := h.alive()
		h.close()
		if alive {
			return
		}
	}
}

// look classifies one task and tells the kernel, which asked, if it did.
func (t *tasks) look(id sched.TaskID, tgid, asked uint32) {
	t.looking.Lock()
	defer t.looking.Unlock()
	a := sched.Assignment{Task: id, Class: t.own, Asked: asked}
	if tgid != t.self {
		w, err := t.workload(id.TID)
		if err != nil {
			return // it has ended
		}
		var rule int
		a.Class, rule = t.rules.Classify(w)
		a.Alone = t.rules.ByFunction(rule)
		// Only what is asked about: others would take the room.
		if asked != 0 {
			t.complain("can't remember a class", t.known.remember(w, a.Class))
		}
	}
	err := t.set(a)
	var changed *sched.ChangedError
	if errors.As(err, &changed) {
		t.note(sched.Event{Kind: sched.EventComm, Task: id, TGID: tgid, Asked: changed.Asked})
		return
	}
	t.complain("can't set a class", err, "tid", id.TID)
}

// complain logs what the scheduler refused, of each kind the first of many.
func (t *tasks) complain(what string, err error, args ...any) {
	if err == nil || errors.Is(err, fs.ErrNotExist) || slices.Contains(t.refused, what) {
		return
	}
	t.refused = append(t.refused, what)
	t.log.Error("tasks: "+what, append(args, "error", err)...)
}

// workload gathers what the rules look at.
func (t *tasks) workload(tid uint32) (w class.Workload, err error) {
	needs := t.rules.Needs()
	if needs.Cgroup {
		if w.Cgroup, err = t.proc.cgroup(tid); err != nil {
			return w, err
		}
	}
	if needs.Comm {
		if w.Comm, err = t.proc.comm(tid); err != nil {
			return w, err
		}
	}
	if needs.UID {
		if w.UID, err = t.proc.uid(tid); err != nil {
			return w, err
		}
	}
	if needs.User {
		w.User = t.names.Name(w.UID)
	}
	if needs.Functions {
		w.Functions = t.executes(tid)
	}
	if needs.Exe {
		w.Exe, err = t.proc.exe(tid)
		if errors.Is(err, fs.ErrPermission) && !t.dark {
			t.dark = true
			t.log.Warn("tasks: exe of other users' tasks can't be read, rules with exe miss them: give rota CAP_SYS_PTRACE", "tid", tid)
		}
	}
	return w, nil
}

// scan is the first look at every task: our own threads first, so that we
// stay quick on a busy machine. Without rules every task is where it belongs.
func (t *tasks) scan(ctx context.Context) int {
	own, _ := t.proc.threads(t.self)
	for _, tid := range own {
		t.lookUp(t.self, tid)
	}
	t.looking.Lock()
	watch := t.rules.Needs() != class.Needs{}
	t.looking.Unlock()
	if !watch {
		return len(own)
	}
	return t.rescan(ctx)
}

// rescan looks at every task and returns how many there were. A task born
// meanwhile has its parent's class, which may have been the old one, and may
// be missed by the walk: passes are repeated until one finds nobody new.
func (t *tasks) rescan(ctx context.Context) int {
	seen := map[uint32]struct{}{}
	for range maxPasses {
		before := len(seen)
		threads, err := t.proc.everyThread()
		if err != nil {
			t.log.Error("tasks: can't list them", "error", err)
			break
		}
		for pid, tid := range threads {
			if ctx.Err() != nil {
				return len(seen)
			}
			if _, done := seen[tid]; !done {
				seen[tid] = struct{}{}
				t.lookUp(pid, tid)
			}
		}
		if len(seen) == before {
			break
		}
	}
	return len(seen)
}
