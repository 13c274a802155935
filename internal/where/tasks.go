package where

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"rota/internal/identity"
)

// taskID is one task: numbers are used again.
type taskID struct {
	tid     uint32
	started uint64 // ns after boot
}

// tasks knows what the kernel side does not say about tasks and cgroups.
type tasks struct {
	proc    string            // /proc
	cgroups string            // where cgroup v2 is mounted
	exes    map[taskID]string // of those that may have ended since
	paths   map[uint64]string // of cgroups, by their numbers
}

func newTasks() *tasks {
	t := &tasks{proc: "/proc", cgroups: "/sys/fs/cgroup", exes: map[taskID]string{}, paths: map[uint64]string{}}
	var mount unix.Statfs_t
	if unix.Statfs(t.cgroups, &mount) == nil && mount.Type != unix.CGROUP2_SUPER_MAGIC {
		t.cgroups += "/unified" // beside v1
	}
	return t
}

// describe adds what is known about a task while it lives, or was when it lived.
func (t *tasks) describe(id taskID, task *Task) {
	defer func() { task.Exe = t.exes[id] }()
	folder := filepath.Join(t.proc, strconv.FormatUint(uint64(id.tid), 10))
	if id.tid == 0 || !t.same(folder, id.started) {
		return
	}
	exe, _ := os.Readlink(filepath.Join(folder, "exe"))
	comm, _ := os.ReadFile(filepath.Join(folder, "comm"))
	cgroup, _ := os.ReadFile(filepath.Join(folder, "cgroup"))
	if !t.same(folder, id.started) {
		return // it ended meanwhile: that may have been another one
	}
	if exe != "" {
		t.exes[id] = strings.TrimSuffix(exe, " (deleted)")
	}
	if name := identity.Comm(string(comm)); name != "" {
		task.Comm = name
	}
	if path := identity.Cgroup(string(cgroup)); path != "" {
		task.Cgroup = path
	}
}

// same tells whether the task of a folder was started then.
func (t *tasks) same(folder string, started uint64) bool {
	text, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return false
	}
	return identity.StartedAt(string(text), started)
}

// path is the path of a cgroup in the v2 tree, empty when it is gone.
func (t *tasks) path(number uint64) string {
	if path, known := t.paths[number]; known {
		return path
	}
	path, err := cgroupPath(t.cgroups, number)
	if err != nil && !errors.Is(err, unix.ESTALE) {
		return "" // ask again
	}
	t.paths[number] = path
	return path
}

// cgroupPath asks the kernel for the folder of a cgroup by its number.
func cgroupPath(root string, number uint64) (string, error) {
	const kernfsHandle = 0xfe // FILEID_KERNFS
	mount, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(mount)
	handle := unix.NewFileHandle(kernfsHandle, binary.NativeEndian.AppendUint64(nil, number))
	fd, err := unix.OpenByHandleAt(mount, handle, unix.O_PATH|unix.O_CLOEXEC)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return "", err
	}
	below, inside := strings.CutPrefix(path+"/", root+"/")
	if !inside {
		return "", fmt.Errorf("%s: is not below %s", path, root)
	}
	return "/" + strings.TrimSuffix(below, "/"), nil
}
