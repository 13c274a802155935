package daemon

import (
	"maps"
	"testing"

	"rota/internal/class"
	"rota/internal/sched"
)

func TestKnownBy(t *testing.T) {
	tests := []struct {
		name  string
		rules []class.Rule
		want  sched.KnownBy
	}{
		{"names", []class.Rule{{Comm: "x"}}, sched.KnownBy{Comm: true}},
		{"cgroups and users", []class.Rule{{Cgroup: "a"}, {User: "7"}}, sched.KnownBy{Cgroup: true, UID: true}},
		{"a user's name", []class.Rule{{Comm: "x"}, {User: "bob"}}, sched.KnownBy{}},
		{"a program", []class.Rule{{Comm: "x", Exe: "/bin/x"}}, sched.KnownBy{}},
		{"a function", []class.Rule{{Comm: "x"}, {Function: "f"}}, sched.KnownBy{}},
		{"no rules", nil, sched.KnownBy{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tasks, f, proc := newTasks(t)
			proc.task(1, 1, "/a", "x", 7)
			tasks.known.number = func(string) uint64 { return 5 }
			tasks.use(compiled(t, tt.rules...), 9)
			if f.knownBy != tt.want {
				t.Errorf("known by %+v, want %+v", f.knownBy, tt.want)
			}
			tasks.lookAgain(sched.Event{Task: sched.TaskID{TID: 1, Start: 1}, TGID: 1, Asked: 1})
			if got := len(f.known) > 0; got != (tt.want != sched.KnownBy{}) {
				t.Errorf("remembered %v", f.known)
			}
		})
	}
}

func TestRemember(t *testing.T) {
	tasks, f, proc := newTasks(t)
	proc.task(1, 1, "/a", "x", 7)
	proc.task(2, 2, "/b", "x", 0)
	proc.task(3, 3, "/", "y", 0)
	proc.task(100, 101, "/a", "z", 7)
	tasks.known.number = func(path string) uint64 { return uint64(len(path)) }
	tasks.use(compiled(t, class.Rule{Comm: "x", Cgroup: "a", Class: 1}, class.Rule{Comm: "x", Class: 2}), 9)
	for _, e := range []sched.Event{
		{TGID: 1, Task: sched.TaskID{TID: 1, Start: 1}, Asked: 4},
		{TGID: 3, Task: sched.TaskID{TID: 3, Start: 1}, Asked: 1},
		{TGID: 2, Task: sched.TaskID{TID: 2, Start: 1}},               // nobody asked
		{TGID: 100, Task: sched.TaskID{TID: 101, Start: 1}, Asked: 1}, // our own
	} {
		tasks.lookAgain(e)
	}
	want := map[sched.Known]int{{Comm: "x", Cgroup: 2, UID: 0}: 1, {Comm: "y", Cgroup: 1}: 0}
	if !maps.Equal(f.known, want) {
		t.Errorf("remembered %v, want %v", f.known, want)
	}
	tasks.use(compiled(t, class.Rule{Comm: "y", Class: 1}), 9)
	if len(f.known) != 0 {
		t.Errorf("with other rules %v are still known", f.known)
	}
}

// Only what is a cgroup of the v2 tree has a number.
func TestCgroupNumber(t *testing.T) {
	for _, path := range []string{"", "a", "/../cgroup", "/a/../..", "/no/such/cgroup"} {
		if n := cgroupNumber(path); n != 0 {
			t.Errorf("%q is number %d", path, n)
		}
	}
	if hostCgroups(t.TempDir()) {
		t.Error("a folder without a namespace is the host's")
	}
}

// An answer that was overtaken by a change is looked for again, under that one's number.
func TestChangedMeanwhile(t *testing.T) {
	tasks, f, proc := newTasks(t)
	proc.task(1, 1, "/", "x", 0)
	id := sched.TaskID{TID: 1, Start: 1}
	tasks.set = func(a sched.Assignment) error {
		proc.task(1, 1, "/a", "y", 0)
		tasks.set = f.SetClass
		return &sched.ChangedError{Asked: 3}
	}
	tasks.lookAgain(sched.Event{TGID: 1, Task: id, Asked: 2})
	batch, _ := tasks.take()
	if e := batch[1]; e.Task != id || e.Asked != 3 {
		t.Fatalf("to be looked at: %v", batch)
	}
	tasks.lookAgain(batch[1])
	if got, _ := f.class(1); got != 2 || f.answered[1] != 3 {
		t.Errorf("class %d, answered %d", got, f.answered[1])
	}
}
