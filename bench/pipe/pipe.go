// Package pipe measures round trips over a bare pair of pipes between two
// processes: the least that one process can ask another and be answered. It is
// the scale beside which a binder call is read, at the same level and under the
// same load. With both processes on one CPU, and beside the same system calls of
// one process, it tells what a context switch costs.
package pipe

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"rota/bench/level"
	"rota/bench/peer"
)

// Roles of the two processes; Main of the program has them.
const (
	NearRole   = "pipe-near"
	FarRole    = "pipe-far"
	SwitchRole = "pipe-switch"
)

// Roles are the processes of this package.
func Roles() map[string]peer.Role {
	return map[string]peer.Role{NearRole: Near, FarRole: Far, SwitchRole: switchNear}
}

// messageBytes is what goes each way: as much as in a binder latency call.
const messageBytes = 16

// Descriptors of both processes: where they read, and where they write.
const (
	readFd  = 4
	writeFd = 5
)

// order says how often to ask, at which level, and on which CPU; nil: on any.
type order struct {
	Trips int
	Level level.Level
	CPU   *int
}

// Measure returns the times of that many round trips in each of so many pairs of
// processes, all at once and all at that level.
func Measure(g *peer.Group, pairs, trips int, l level.Level) (spans []time.Duration, err error) {
	near := make([]*peer.Process, pairs)
	for i := range near {
		far, err := join(g, &near[i], NearRole, order{Trips: trips, Level: l})
		if err != nil {
			return nil, err
		}
		defer far.Stop()
		defer near[i].Stop()
	}
	for _, p := range near {
		if err := p.Tell(ready{}); err != nil {
			return nil, err
		}
	}
	for _, p := range near {
		var some []time.Duration
		if err := p.Hear(&some); err != nil {
			return nil, err
		}
		if len(some) != trips {
			return nil, fmt.Errorf("pipes: %d round trips, want %d", len(some), trips)
		}
		spans = append(spans, some...)
	}
	return spans, nil
}

// ready is said by a near end that may begin, and to it.
type ready struct{}

// join starts two processes with pipes between them.
func join(g *peer.Group, near **peer.Process, role string, o order) (far *peer.Process, err error) {
	there, ask, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	back, answer, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, there.Close(), ask.Close())
	}
	defer func() {
		for _, f := range []*os.File{there, ask, back, answer} {
			f.Close()
		}
	}()
	if far, err = g.Start("far end of the pipes", FarRole, o, there, answer); err != nil {
		return nil, err
	}
	if *near, err = g.Start("near end of the pipes", role, o, back, ask); err == nil {
		err = (*near).Hear(&ready{})
	}
	if err != nil {
		far.Stop()
	}
	return far, err
}

// begin takes the order and the level.
func begin(p *peer.Peer) (order, error) {
	var o order
	if err := p.Order(&o); err != nil {
		return o, err
	}
	runtime.LockOSThread()
	runtime.GOMAXPROCS(3)
	if o.CPU != nil {
		if err := pin(*o.CPU); err != nil {
			return o, err
		}
	}
	return o, o.Level.Set()
}

// Far answers until the pipe ends.
func Far(p *peer.Peer) error {
	if _, err := begin(p); err != nil {
		return err
	}
	message := make([]byte, messageBytes)
	for transfer(unix.SYS_READ, readFd, message) {
		transfer(unix.SYS_WRITE, writeFd, message)
	}
	return nil
}

// Near asks and takes the times.
func Near(p *peer.Peer) error {
	o, err := begin(p)
	if err != nil {
		return err
	}
	if err := p.Say(ready{}); err != nil {
		return err
	}
	if err := p.Order(&ready{}); err != nil {
		return err
	}
	began := time.Now()
	spans := make([]time.Duration, o.Trips)
	message := make([]byte, messageBytes)
	for i := range spans {
		from := time.Since(began)
		ok := transfer(unix.SYS_WRITE, writeFd, message) && transfer(unix.SYS_READ, readFd, message)
		spans[i] = time.Since(began) - from
		if !ok {
			return fmt.Errorf("pipes: broken after %d round trips", i)
		}
	}
	return p.Say(spans)
}

// transfer moves the whole message; false means that the other end is gone. As
// in a binder call, Go is not told of the system call.
func transfer(call uintptr, fd uintptr, message []byte) bool {
	for {
		n, _, errno := unix.RawSyscall(call, fd, uintptr(unsafe.Pointer(&message[0])), uintptr(len(message)))
		runtime.KeepAlive(message)
		if errno != unix.EINTR {
			return errno == 0 && int(n) == len(message)
		}
	}
}
