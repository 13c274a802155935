package daemon

import (
	"context"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"rota/internal/counters"
	"rota/internal/sched"
)

// fakeScheduler notes what it is told.
type fakeScheduler struct {
	events chan sched.Event
	exit   chan sched.ExitInfo

	mu      sync.Mutex
	params  []sched.Params
	classes map[uint32]int
	starts  map[uint32]uint64
	// answered is which event about a task was answered last, 0: none.
	answered map[uint32]uint32
	alone    map[uint32]bool
	sets     int
	// known is what was remembered, by what knownBy says.
	known    map[sched.Known]int
	knownBy  sched.KnownBy
	stats    sched.Stats
	refuse   error // what Configure answers
	tasks    map[uint32]sched.Task
	closed   bool
	speeds   [][]uint32
	counters []sched.Counters
	// counterFault is what SetCounters answers, came what Came does.
	counterFault error
	came         uint32
}

func newFake() *fakeScheduler {
	return &fakeScheduler{
		events:   make(chan sched.Event, 100),
		exit:     make(chan sched.ExitInfo, 1),
		classes:  map[uint32]int{},
		starts:   map[uint32]uint64{},
		answered: map[uint32]uint32{},
		alone:    map[uint32]bool{},
	}
}

func (f *fakeScheduler) Configure(p sched.Params) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse != nil {
		return f.refuse
	}
	f.params = append(f.params, p)
	return nil
}

func (f *fakeScheduler) Explain(tid uint32) (sched.Task, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, known := f.tasks[tid]
	if !known {
		return t, fs.ErrNotExist
	}
	return t, nil
}

func (f *fakeScheduler) SetClass(a sched.Assignment) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	t := a.Task
	f.classes[t.TID], f.starts[t.TID], f.answered[t.TID], f.alone[t.TID] = a.Class, t.Start, a.Asked, a.Alone
	f.sets++
	return nil
}

func (f *fakeScheduler) Forget(by sched.KnownBy) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.knownBy, f.known = by, map[sched.Known]int{}
	return nil
}

func (f *fakeScheduler) Remember(what sched.Known, class int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known[what] = class
	return nil
}

func (f *fakeScheduler) Domains() []uint32 { return []uint32{0, 0, 1, 1} }
func (f *fakeScheduler) Sweep() error      { return nil }

func (f *fakeScheduler) SetSpeeds(speeds []uint32) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.speeds = append(f.speeds, speeds)
	return nil
}

func (f *fakeScheduler) SetCounters(c sched.Counters) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counters = append(f.counters, c)
	return f.counterFault
}

func (f *fakeScheduler) Came() (uint32, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.came, nil
}

func (f *fakeScheduler) Events() <-chan sched.Event  { return f.events }
func (f *fakeScheduler) Exit() <-chan sched.ExitInfo { return f.exit }

func (f *fakeScheduler) Stats() (sched.Stats, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stats, nil
}

func (f *fakeScheduler) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed = true
		close(f.events)
	}
	return nil
}

func (f *fakeScheduler) class(tid uint32) (int, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, set := f.classes[tid]
	return c, set
}

// configured is how many configurations arrived after the first.
func (f *fakeScheduler) configured() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.params)
}

// looks is how many classes were set.
func (f *fakeScheduler) looks() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sets
}

// fakeProc is a folder in the form of procfs.
type fakeProc struct {
	t    *testing.T
	root string
}

func (p fakeProc) write(path, text string) {
	p.t.Helper()
	full := filepath.Join(p.root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// task adds a thread of a process.
func (p fakeProc) task(pid, tid int, cgroup, comm string, uid int) {
	p.t.Helper()
	id := strconv.Itoa(tid)
	p.write(strconv.Itoa(pid)+"/task/"+id+"/x", "")
	p.write(id+"/cgroup", "1:name=systemd:/x\n0::"+cgroup+"\n")
	p.write(id+"/comm", comm+"\n")
	p.write(id+"/status", "Name:\tx\nUid:\t1\t"+strconv.Itoa(uid)+"\t1\t1\n")
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// newDaemon is a daemon with a configuration, an empty procfs and fakes.
func newDaemon(t *testing.T, text string, load func() (Scheduler, error)) (*Daemon, *notes) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "rota.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	proc := filepath.Join(dir, "proc")
	if err := os.Mkdir(proc, 0o755); err != nil {
		t.Fatal(err)
	}
	n := &notes{}
	d, err := New(Options{
		Source: Source{Path: path},
		Load:   func(context.Context, sched.Params, *slog.Logger) (Scheduler, error) { return load() },
		Proc:   proc,
		Root:   os.DirFS(dir),
		Passwd: filepath.Join(dir, "passwd"),
		OpenCounters: func(string, time.Duration, []int) (*counters.Set, error) {
			return nil, counters.ErrNone
		},
		Notify: n.add,
		Log:    quiet(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return d, n
}

// notes are what systemd was told.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) add(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, s)
}

func (n *notes) count(prefix string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := 0
	for _, s := range n.list {
		if strings.HasPrefix(s, prefix) {
			count++
		}
	}
	return count
}
