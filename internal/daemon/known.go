package daemon

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"rota/internal/class"
	"rota/internal/sched"
)

// known has the scheduler find by itself the class of a task when a task of which the rules
// see the same was asked about before.
type known struct {
	forget func(sched.KnownBy) error
	note   func(sched.Known, int) error
	// number is that of the cgroup with this path, 0: not known.
	number func(path string) uint64

	by sched.KnownBy
}

func newKnown(s Scheduler, proc string) known {
	number := func(string) uint64 { return 0 }
	if hostCgroups(proc) {
		number = cgroupNumber
	}
	return known{forget: s.Forget, note: s.Remember, number: number}
}

// use forgets what was remembered, and remembers what is enough for rules that look at this.
// What can change while a task stays the same is not: a program's path, a user's name, and what
// the task executes.
func (k *known) use(needs class.Needs) error {
	k.by = sched.KnownBy{Comm: needs.Comm, Cgroup: needs.Cgroup, UID: needs.UID}
	if needs.Exe || needs.User || needs.Functions {
		k.by = sched.KnownBy{}
	}
	return k.forget(k.by)
}

// remember notes the class of a workload.
func (k *known) remember(w class.Workload, index int) error {
	if k.by == (sched.KnownBy{}) {
		return nil
	}
	what := sched.Known{Comm: w.Comm, UID: w.UID}
	if k.by.Cgroup {
		what.Cgroup = k.number(w.Cgroup)
	}
	return k.note(what, index)
}

// cgroupTree is where the v2 tree is mounted.
const cgroupTree = "/sys/fs/cgroup"

// initCgroups is the kernel's number of the first namespace of cgroups (PROC_CGROUP_INIT_INO).
const initCgroups = "cgroup:[4026531835]"

// rootNumber is the number of the root of the v2 tree.
const rootNumber = 1

// hostCgroups tells whether the paths that /proc gives are those of the whole tree, and the
// whole tree is mounted.
func hostCgroups(proc string) bool {
	namespace, err := os.Readlink(filepath.Join(proc, "self/ns/cgroup"))
	return err == nil && namespace == initCgroups && cgroupNumber("/") == rootNumber
}

// cgroupNumber is the kernel's number of a cgroup, which is that of its folder.
func cgroupNumber(path string) uint64 {
	var (
		folder = filepath.Join(cgroupTree, path)
		kind   unix.Statfs_t
		stat   unix.Stat_t
	)
	if !strings.HasPrefix(path, "/") || strings.Contains(path, "/..") {
		return 0
	}
	if unix.Statfs(folder, &kind) != nil || kind.Type != unix.CGROUP2_SUPER_MAGIC || unix.Stat(folder, &stat) != nil {
		return 0
	}
	return stat.Ino
}
