// Package binder speaks the protocol of the kernel's binder driver, with raw
// ioctls and without Android's user space: it opens a device, calls services,
// answers calls with a pool of threads, and has a small service manager that
// gives names to services.
//
// A process opens a Device. Each of its threads that talks to the driver has a
// Thread, whose goroutine is locked to its operating system thread:
//
//	manager:  d.Manage(); d.Serve(1)
//	server:   t := d.Thread(); t.Publish("clock", handler); d.Serve(4)
//	client:   t := d.Thread(); clock, err := t.Find("clock"); t.Call(clock, 1, request)
//
// It knows nothing of what is measured: bench/binder/latency and
// bench/binder/throughput do, and start the processes with bench/peer. Whatever
// comes from the driver or from a peer is checked for its length first.
package binder

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// MapBytes is how much of its memory a process lends to the driver for what it
// receives: as much as Android's libraries. A transaction fits when there is
// room for it there.
const MapBytes = 1<<20 - 2*4096

// driver is what a device does for us. The kernel is one; tests have another.
type driver interface {
	// exchange hands commands in and fills read with what the driver has for
	// this thread, waiting for it when read is not empty. It returns how much
	// of each was used, also with an error.
	exchange(write, read []byte) (written, filled int, err error)
	// lastError is why the last transaction of this thread failed, 0 = unknown.
	lastError() unix.Errno
	becomeManager() error
	exitThread() error
	close() error
}

// Device is a binder device as this process has opened it. Its methods may be
// used by several threads.
type Device struct {
	// Brief says that the handlers of this process do not block, or say so with
	// LetGo first. Set it before Serve.
	Brief bool

	path    string
	driver  driver
	mapping mapping
	clock   clock
	closed  atomic.Bool

	mu    sync.RWMutex
	nodes map[uint64]*node // by the number that the driver knows them by
	next  uint64
}

// Open opens a device, such as /dev/binder, and lends it memory.
func Open(path string) (*Device, error) {
	k, memory, err := openKernel(path)
	if err != nil {
		return nil, err
	}
	return newDevice(path, k, memory), nil
}

func newDevice(path string, d driver, m mapping) *Device {
	return &Device{path: path, driver: d, mapping: m, clock: newClock(), nodes: map[uint64]*node{}, next: 1}
}

// Manage makes this process the device's service manager: there is one for
// each device. Serve answers its callers.
func (d *Device) Manage() error {
	if err := d.driver.becomeManager(); err != nil {
		if errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("%s: another process is its service manager; end that one, or give rota a device of its own", d.path)
		}
		return fmt.Errorf("%s: become its service manager: %w", d.path, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	m := &manager{services: map[string]uint32{}}
	d.nodes[managerNode] = &node{handle: m.handle, dead: m.dead}
	return nil
}

// Now reads CLOCK_MONOTONIC, which is the same in all processes.
func (d *Device) Now() time.Duration { return d.clock.now() }

// Close gives the device back: the driver ends every call to our services.
func (d *Device) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	return d.driver.close()
}

// Quiet prepares this process for threads that stay in the driver: Go's
// collector would wait for each of them, and its scheduler needs a processor
// for each. Who needs the collector calls runtime.GC where it does not disturb.
// Start the process with GODEBUG=asyncpreemptoff=1, or Go's own signals
// interrupt calls again and again: harmless, and not what is to be measured.
// Memory comes in small pages: the kernel clears a huge one, 2 MB, in the midst of a call.
func Quiet(threads int) {
	_ = unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0) // without it there are none to avoid
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(1 << 62)
	runtime.GOMAXPROCS(max(threads+2, runtime.NumCPU()))
}
