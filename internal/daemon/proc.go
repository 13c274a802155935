package daemon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"rota/internal/identity"
)

// procfs reads what the kernel says about tasks. Names in it were chosen by
// the tasks themselves: reads are bounded, and nothing is trusted to be text.
type procfs struct{ root string }

// maxRead is the most in bytes that is read of one file: a cgroup file with
// a long path in each of a dozen hierarchies.
const maxRead = 64 << 10

// read reads the beginning of a task's file. It makes the system calls
// itself, since it runs at each exec of the machine, and asks once when the
// answer leaves room: these files come in one piece and never block.
func (p procfs) read(tid uint32, name string) ([]byte, error) {
	fd, err := unix.Open(p.path(tid, name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	buffer := make([]byte, 2048)
	for used := 0; ; {
		n, err := unix.Read(fd, buffer[used:])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, err
		}
		used += n
		if used < len(buffer) || used >= maxRead {
			return buffer[:used], nil
		}
		buffer = append(buffer, make([]byte, len(buffer))...)
	}
}

func (p procfs) path(tid uint32, name string) string {
	return p.root + "/" + strconv.FormatUint(uint64(tid), 10) + "/" + name
}

// started tells whether the task is the one that was started then, in ns since boot.
func (p procfs) started(tid uint32, ns uint64) bool {
	data, err := p.read(tid, "stat")
	return err == nil && identity.StartedAt(string(data), ns)
}

// cgroup is the path of the task's cgroup in the v2 tree; empty where that is
// not mounted.
func (p procfs) cgroup(tid uint32) (string, error) {
	data, err := p.read(tid, "cgroup")
	if err != nil {
		return "", err
	}
	return identity.Cgroup(string(data)), nil
}

// comm is the task's own name, which may hold anything, newlines too.
func (p procfs) comm(tid uint32) (string, error) {
	data, err := p.read(tid, "comm")
	return identity.Comm(string(data)), err
}

// exe is the path of the task's program; empty for a kernel thread.
func (p procfs) exe(tid uint32) (string, error) {
	path, err := os.Readlink(p.path(tid, "exe"))
	if errors.Is(err, fs.ErrPermission) {
		return "", err
	}
	return strings.TrimSuffix(path, " (deleted)"), nil
}

// uid is the task's effective user.
func (p procfs) uid(tid uint32) (uint32, error) {
	data, err := p.read(tid, "status")
	if err != nil {
		return 0, err
	}
	return parseUID(string(data))
}

// parseUID finds the second number of the line "Uid: real effective saved fs".
// The kernel escapes newlines in the name, so no task can fake that line.
func parseUID(status string) (uint32, error) {
	for line := range strings.Lines(status) {
		if rest, found := strings.CutPrefix(line, "Uid:"); found {
			fields := strings.Fields(rest)
			if len(fields) < 2 {
				break
			}
			uid, err := strconv.ParseUint(fields[1], 10, 32)
			if err != nil {
				break
			}
			return uint32(uid), nil
		}
	}
	return 0, errors.New("status has no line with the user")
}

// processes lists all PIDs.
func (p procfs) processes() ([]uint32, error) { return numbers(p.root) }

// threads lists the TIDs of a process.
func (p procfs) threads(pid uint32) ([]uint32, error) { return numbers(p.path(pid, "task")) }

// everyThread yields the PID and the TID of each thread, as far as it can be listed.
func (p procfs) everyThread() (iter.Seq2[uint32, uint32], error) {
	pids, err := p.processes()
	if err != nil {
		return nil, err
	}
	return func(yield func(pid, tid uint32) bool) {
		for _, pid := range pids {
			tids, _ := p.threads(pid) // none: it has ended
			for _, tid := range tids {
				if !yield(pid, tid) {
					return
				}
			}
		}
	}, nil
}

// numbers are the entries of a folder that are numbers.
func numbers(folder string) ([]uint32, error) {
	f, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []uint32
	for {
		names, err := f.Readdirnames(512)
		for _, name := range names {
			if n, err := strconv.ParseUint(name, 10, 32); err == nil {
				out = append(out, uint32(n))
			}
		}
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
	}
}

// hold keeps a TID from meaning another task unnoticed.
type hold struct{ fd int }

// holdThread opens a pidfd of one thread.
func holdThread(tid uint32) (hold, error) {
	fd, err := unix.PidfdOpen(int(tid), unix.PIDFD_THREAD)
	if err != nil {
		return hold{-1}, fmt.Errorf("task %d: %w", tid, err)
	}
	return hold{fd}, nil
}

// alive tells whether the thread has not ended since it was held: the pidfd
// of an ended one is readable.
func (h hold) alive() bool {
	fds := []unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 0
}

func (h hold) close() { _ = unix.Close(h.fd) }
