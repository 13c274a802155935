package daemon

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"rota/internal/class"
	"rota/internal/identity"
	"rota/internal/sched"
)

func compiled(t *testing.T, rules ...class.Rule) *class.Classifier {
	t.Helper()
	c, err := class.Compile(rules)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newTasks has the rules comm x: 1, cgroup a: 2, user 7: 3, user bob: 4, and
// our own class 9.
func newTasks(t *testing.T) (*tasks, *fakeScheduler, fakeProc) {
	t.Helper()
	rules := compiled(t, class.Rule{Comm: "x", Class: 1}, class.Rule{Cgroup: "a", Class: 2}, class.Rule{User: "7", Class: 3}, class.Rule{User: "bob", Class: 4})
	f, proc := newFake(), fakeProc{t, t.TempDir()}
	proc.write("passwd", "root:x:0:0::/:/bin/sh\nbob:x:8:8::/:\n")
	tasks := &tasks{
		proc:     procfs{proc.root},
		names:    &identity.Users{Path: proc.root + "/passwd"},
		hold:     func(uint32) (hold, error) { return hold{-1}, nil }, // always alive
		set:      f.SetClass,
		known:    newKnown(f, proc.root),
		executes: func(uint32) []string { return nil },
		self:     100,
		log:      quiet(),
		pending:  map[uint32]sched.Event{},
		wake:     make(chan struct{}, 1),
	}
	tasks.use(rules, 9)
	return tasks, f, proc
}

func TestRescan(t *testing.T) {
	tasks, f, proc := newTasks(t)
	proc.task(1, 1, "/", "x", 0)
	proc.task(1, 2, "/a/b", "y", 0) // a thread in another cgroup
	proc.task(3, 3, "/", "y", 7)
	proc.task(4, 4, "/", "y", 8)
	proc.task(5, 5, "/", "y", 5)
	proc.task(6, 6, "/", "x\n", 0) // not the name x
	proc.task(100, 100, "/a", "x", 7)
	proc.task(100, 101, "/a", "x", 7)
	proc.write("7/task/7/x", "") // ended meanwhile: nothing to read
	if n := tasks.scan(t.Context()); n != 9 {
		t.Errorf("%d tasks", n)
	}
	want := map[uint32]int{1: 1, 2: 2, 3: 3, 4: 4, 5: 0, 6: 0, 100: 9, 101: 9}
	for tid, class := range want {
		if got, set := f.class(tid); !set || got != class {
			t.Errorf("task %d: class %d (%v), want %d", tid, got, set, class)
		}
	}
	if _, set := f.class(7); set {
		t.Error("an ended task got a class")
	}
}

// Without rules there is nothing to look at but our own threads.
func TestScanWithoutRules(t *testing.T) {
	tasks, f, proc := newTasks(t)
	tasks.use(compiled(t), 1)
	proc.task(1, 1, "/", "x", 0)
	proc.task(100, 100, "/", "x", 0)
	tasks.scan(t.Context())
	if c, _ := f.class(100); c != 1 || f.sets != 1 {
		t.Errorf("own class %d, %d tasks looked at", c, f.sets)
	}
}

// The TID is used again while the task is looked at: whoever has it now must
// end in the right class.
func TestReusedTID(t *testing.T) {
	tasks, f, proc := newTasks(t)
	ended, err := os.Open("/dev/zero") // always readable, as the pidfd of an ended task
	if err != nil {
		t.Fatal(err)
	}
	defer ended.Close()
	held := 0
	proc.task(1, 1, "/", "x", 0)
	tasks.hold = func(uint32) (hold, error) {
		held++
		if held == 1 {
			fd, err := dup(ended)
			return hold{fd}, err
		}
		proc.task(1, 1, "/a", "y", 0)
		return hold{-1}, nil
	}
	tasks.lookUp(1, 1)
	if got, _ := f.class(1); got != 2 || held != 2 {
		t.Errorf("class %d after %d looks", got, held)
	}
	tasks.hold = func(uint32) (hold, error) { return hold{}, errors.New("no such process") }
	sets := f.looks()
	tasks.lookUp(1, 1)
	if f.looks() != sets {
		t.Error("an ended task got a class")
	}
}

func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks, f, proc := newTasks(t)
		proc.task(1, 1, "/", "x", 0)
		proc.task(2, 2, "/a", "y", 0)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go tasks.collect(f.events)
		go tasks.work(ctx)

		f.events <- sched.Event{Kind: sched.EventExec, Task: sched.TaskID{TID: 1, Start: 55}, TGID: 1}
		synctest.Wait()
		if got, set := f.class(1); !set || got != 1 || f.starts[1] != 55 {
			t.Errorf("class %d, start %d", got, f.starts[1])
		}

		// A storm about one task is one look per pause.
		sets := f.looks()
		for n := range uint32(1000) {
			f.events <- sched.Event{Kind: sched.EventComm, Task: sched.TaskID{TID: 1, Start: 55}, TGID: 1, Asked: n + 1}
		}
		time.Sleep(10 * batchPause)
		if n := f.looks() - sets; n > 10 || n == 0 {
			t.Errorf("%d looks for a storm", n)
		}
		if f.answered[1] != 1000 {
			t.Errorf("the event that was answered last is %d, want 1000", f.answered[1])
		}

		f.events <- sched.Event{Kind: sched.EventLost}
		time.Sleep(batchPause)
		if got, set := f.class(2); !set || got != 2 {
			t.Errorf("after lost events task 2 has class %d (%v)", got, set)
		}

		// Scans don't follow each other closely, however much is lost.
		sets = f.looks()
		for range 50 {
			f.events <- sched.Event{Kind: sched.EventLost}
			time.Sleep(scanPause / 100)
		}
		if n := f.looks() - sets; n > 2*2 {
			t.Errorf("%d looks at 2 tasks within half a scan pause", n)
		}
		cancel()
		close(f.events)
		synctest.Wait()
	})
}

// The kernel takes only the answer to the latest that it asked; what was asked before may
// be noted after it, by who looks again.
func TestLatestAsked(t *testing.T) {
	tasks, _, _ := newTasks(t)
	id := sched.TaskID{TID: 7, Start: 9}
	for _, asked := range []uint32{2, 5, 3} {
		tasks.note(sched.Event{Kind: sched.EventComm, Task: id, TGID: 7, Asked: asked})
	}
	if batch, _ := tasks.take(); batch[7].Asked != 5 {
		t.Errorf("asked %d times, want 5", batch[7].Asked)
	}
	tasks.note(sched.Event{Kind: sched.EventComm, Task: id, TGID: 7, Asked: 8})
	other := sched.TaskID{TID: 7, Start: 10}
	tasks.note(sched.Event{Kind: sched.EventComm, Task: other, TGID: 7, Asked: 1})
	if batch, _ := tasks.take(); batch[7].Asked != 1 {
		t.Errorf("another task with that TID: asked %d times, want 1", batch[7].Asked)
	}
}

func TestTooManyEvents(t *testing.T) {
	tasks, _, _ := newTasks(t)
	for tid := range uint32(maxPending + 10) {
		tasks.note(sched.Event{Kind: sched.EventExec, Task: sched.TaskID{TID: tid}})
	}
	if len(tasks.pending) != 0 || !tasks.lost {
		t.Errorf("%d pending, lost %v", len(tasks.pending), tasks.lost)
	}
}

// The real procfs and pidfds, for a real process.
func TestRealProcess(t *testing.T) {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	pid := uint32(child.Process.Pid)
	tasks, f, _ := newTasks(t)
	tasks.proc = procfs{"/proc"}
	tasks.use(compiled(t, class.Rule{Comm: "sleep", Exe: "**/*", Class: 5}), 9)
	for range 200 { // until the child has called exec
		tasks.lookUp(pid, pid)
		if got, _ := f.class(pid); got == 5 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if got, _ := f.class(pid); got != 5 {
		t.Errorf("class %d", got)
	}
	held, err := holdThread(pid)
	if err != nil {
		t.Skip("this kernel has no pidfd of threads: ", err)
	}
	defer held.close()
	if !held.alive() {
		t.Error("dead while it sleeps")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	if held.alive() {
		t.Error("alive after it was killed")
	}
}
