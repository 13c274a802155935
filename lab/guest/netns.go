package guest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

const netnsDir = "/run/netns" // where iproute2 looks too

// Netns makes a named network namespace with its loopback up, for Cmd.Netns
// and for "ip netns".
func (g *Guest) Netns(name string) error {
	if err := onLostThread(func() error { return makeNetns(name) }); err != nil {
		return fmt.Errorf("network namespace %q: %w", name, err)
	}
	return nil
}

// onLostThread runs f on a thread that ends afterwards, and with it whatever f
// did to the thread. The process's first thread never ends and is avoided.
func onLostThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked after f: the thread ends with the goroutine
		if unix.Gettid() == unix.Getpid() {
			err := onLostThread(f)
			runtime.UnlockOSThread()
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

func makeNetns(name string) error {
	if err := os.MkdirAll(netnsDir, 0o755); err != nil {
		return err
	}
	path := filepath.Join(netnsDir, name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0)
	if err != nil {
		return err
	}
	f.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	self := fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid())
	if err := unix.Mount(self, path, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return loopbackUp()
}

func enterNetns(name string) error {
	f, err := os.Open(filepath.Join(netnsDir, name))
	if err != nil {
		return fmt.Errorf("network namespace %q: %w", name, err)
	}
	defer f.Close()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace %q: %w", name, err)
	}
	return nil
}

// loopbackUp brings lo up in the calling thread's namespace.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}
