package runnable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Target is whose waits are counted: a process with all its threads, or a cgroup
// with all below it.
type Target struct {
	Name string // for messages

	process uint32
	cgroup  uint64 // the kernel's number of it
	handle  int    // of the process; 0: none
}

// Ended tells whether the process is gone: nothing more will be counted.
func (t Target) Ended() bool {
	if t.handle == 0 {
		return false
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(t.handle), Events: unix.POLLIN}}, 0)
	return err == nil && n > 0
}

// firstNamespace is the number of the PID namespace in which the kernel itself
// counts; it is the same on every machine.
const firstNamespace = "pid:[4026531836]"

// FindProcess finds a process by its number. The folder is /proc.
func FindProcess(proc string, pid int) (Target, error) {
	object := fmt.Sprintf("process %d", pid)
	if pid < 1 {
		return Target{}, fmt.Errorf("%s: processes have numbers from 1 on: find it with ps", object)
	}
	if ns, err := os.Readlink(filepath.Join(proc, "self/ns/pid")); err == nil && ns != firstNamespace {
		return Target{}, fmt.Errorf("%s: in this container processes have other numbers than in the kernel: run rota outside of it, or name a cgroup", object)
	}
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "status"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return Target{}, fmt.Errorf("%s: there is none: find it with ps", object)
	}
	if err != nil {
		return Target{}, fmt.Errorf("%s: %w", object, err)
	}
	name, leader := parseStatus(string(text))
	if leader != pid {
		return Target{}, fmt.Errorf("%s: is a thread of process %d: name that one, all its threads are counted", object, leader)
	}
	t := Target{Name: fmt.Sprintf("process %d (%s)", pid, name), process: uint32(pid)}
	if fd, err := unix.PidfdOpen(pid, 0); err == nil {
		t.handle = fd
	}
	return t, nil
}

// parseStatus reads the name and the process's number out of /proc/PID/status.
func parseStatus(text string) (name string, leader int) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); key {
		case "Name":
			name = value
		case "Tgid":
			leader, _ = strconv.Atoi(value)
		}
	}
	return name, leader
}

// FindCgroup finds a cgroup by its path, whole or below root, which is where
// cgroup v2 is mounted.
func FindCgroup(root, path string) (Target, error) {
	object := fmt.Sprintf("cgroup %q", path)
	folder := filepath.Clean("/" + path)
	if !strings.HasPrefix(folder+"/", root+"/") {
		folder = filepath.Join(root, folder)
	}
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Target{}, fmt.Errorf("%s: there is no %s: look behind \"0::\" in /proc/PID/cgroup", object, folder)
	case err != nil:
		return Target{}, fmt.Errorf("%s: %w", object, err)
	case !info.IsDir():
		return Target{}, fmt.Errorf("%s: is a file: name the folder that it is in", object)
	}
	var where unix.Statfs_t
	if err := unix.Statfs(folder, &where); err != nil {
		return Target{}, fmt.Errorf("%s: %w", object, err)
	}
	if where.Type != unix.CGROUP2_SUPER_MAGIC {
		return Target{}, fmt.Errorf("%s: %s is not of cgroup v2: name a folder of that (see: findmnt -t cgroup2), or a process", object, folder)
	}
	// The kernel numbers cgroups as it numbers their folders.
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Target{}, fmt.Errorf("%s: its number is not known", object)
	}
	return Target{Name: object, cgroup: stat.Ino}, nil
}
