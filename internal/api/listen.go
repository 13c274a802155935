package api

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	socketMode  = 0o660
	socketGroup = "rota"
	maxSocket   = 100 // bytes of a path; the kernel's bound is 107, and we append
)

// Listener is the daemon's socket together with the lock that keeps a second
// daemon away.
type Listener struct {
	*net.UnixListener
	path string
	lock *os.File
}

// Listen makes the socket at path: mode 0660, and group "rota" where there is
// one. What a dead daemon left behind is replaced; a live one, or anything
// that is not a socket, is not.
func Listen(path string) (*Listener, error) {
	if len(path) > maxSocket {
		return nil, fmt.Errorf("socket %s: path has %d bytes: use at most %d", path, len(path), maxSocket)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("socket %s: %w: choose another place with --socket", path, err)
	}
	lock, err := takeLock(path)
	if err != nil {
		return nil, err
	}
	l, err := listen(path)
	if err != nil {
		lock.Close()
		return nil, err
	}
	return &Listener{UnixListener: l, path: path, lock: lock}, nil
}

// takeLock holds path.lock for the life of the daemon. The kernel drops the
// lock however the daemon ends, so a stale one cannot be.
func takeLock(path string) (*os.File, error) {
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w: run as root, or choose another place with --socket", path, err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer lock.Close()
		owner := make([]byte, 20)
		n, _ := lock.Read(owner)
		return nil, another(path, strings.TrimSpace(string(owner[:n])))
	}
	err = lock.Truncate(0)
	if err == nil {
		_, err = lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("socket %s: write lock: %w", path, err)
	}
	return lock, nil
}

func another(path, pid string) error {
	if _, err := strconv.Atoi(pid); err != nil {
		pid = "unknown"
	}
	return fmt.Errorf("socket %s: another rota is running, PID %s: stop it first, or choose another place with --socket", path, pid)
}

// listen makes the socket under another name and renames it, so that nobody
// ever connects to one with the wrong mode.
func listen(path string) (*net.UnixListener, error) {
	if err := replaceable(path); err != nil {
		return nil, err
	}
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("socket %s: %w: remove it", fresh, err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fresh, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w: choose another place with --socket", path, err)
	}
	l.SetUnlinkOnClose(false)
	err = protect(fresh)
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		l.Close()
		os.Remove(fresh)
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	return l, nil
}

// replaceable tells whether what is at path may go.
func replaceable(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("socket %s: %w", path, err)
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("socket %s: is there and not a socket: remove it, or choose another place with --socket", path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return nil
	}
	defer c.Close()
	return another(path, peer(c))
}

// peer is the PID of the process that listens at the other end.
func peer(c net.Conn) string {
	pid := "unknown"
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return pid
	}
	_ = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = strconv.Itoa(int(cred.Pid))
		}
	})
	return pid
}

func protect(path string) error {
	if group, err := user.LookupGroup(socketGroup); err == nil {
		gid, err := strconv.Atoi(group.Gid)
		if err != nil {
			return err
		}
		// Without the right to give it away, the socket stays ours alone.
		if err := os.Lchown(path, -1, gid); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return os.Chmod(path, socketMode)
}

// Close stops listening and takes the socket away. The lock's file stays:
// removing it would let two daemons lock two files of one name.
func (l *Listener) Close() error {
	err := l.UnixListener.Close()
	if errors.Is(err, net.ErrClosed) {
		return err
	}
	return errors.Join(err, os.Remove(l.path), l.lock.Close())
}
