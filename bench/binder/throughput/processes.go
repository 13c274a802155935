package throughput

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"rota/bench/binder"
	"rota/bench/binder/pairs"
	"rota/bench/peer"
)

// Roles of the processes.
const (
	serverRole = "binder-throughput-server"
	clientRole = "binder-throughput-client"
)

// Codes of a call: send the vector back, and tell the CPU time used.
const (
	codeEcho = 1
	codeUsed = 2
)

// serverThreads is as in the latency test: one is always free.
const serverThreads = 2

// work is what both processes need to know.
type work struct{ Gather bool }

// batchOrder asks the client for some iterations; batch is its answer.
type batchOrder struct{ Payload, Iterations int }

type batch struct {
	Real, Client, Server time.Duration
	MoreIoctls           int
	Descriptors          int // that both processes have more than before
}

// serve is the role of the server.
func serve(p *peer.Peer) error {
	d, err := pairs.Serve(p, serverThreads, binder.NodeFlags, func(o pairs.Order[work]) binder.Handler {
		return func(_ *binder.Thread, call *binder.Message, reply *binder.Parcel) error {
			return answer(o.Work.Gather, call, reply)
		}
	})
	if err != nil {
		return err
	}
	return d.Serve(serverThreads)
}

func answer(gather bool, call *binder.Message, reply *binder.Parcel) error {
	if call.Code == codeUsed {
		u, err := use()
		reply.Uint64(uint64(u.cpu))
		reply.Uint32(uint32(u.descriptors))
		return err
	}
	r := call.Read()
	if gather {
		reply.Buffer(r.Buffer())
	} else {
		reply.Bytes(r.Bytes())
	}
	return r.Err()
}

// client is the state of the client process.
type client struct {
	gather  bool
	target  binder.Handle
	thread  *binder.Thread
	request binder.Parcel
}

// call is the role of the client.
func call(p *peer.Peer) error {
	runtime.LockOSThread()
	o, _, t, h, err := pairs.Find[work](p, 1)
	if err != nil {
		return err
	}
	c := &client{gather: o.Work.Gather, target: h, thread: t}
	for {
		var next batchOrder
		if err := p.Order(&next); err != nil {
			return err
		}
		b, err := c.batch(next)
		if err == nil {
			err = p.Say(b)
		}
		if err != nil {
			return err
		}
	}
}

// batch makes that many calls.
func (c *client) batch(o batchOrder) (b batch, err error) {
	vector := bytes.Repeat([]byte{0x5a}, o.Payload)
	server, err := c.serverUse()
	if err != nil {
		return b, err
	}
	own, err := use()
	if err != nil {
		return b, err
	}
	began := c.thread.Now()
	for range o.Iterations {
		if err := c.echo(vector); err != nil {
			return b, fmt.Errorf("%d bytes: %w", o.Payload, err)
		}
		if c.thread.Exchanges != 1 {
			b.MoreIoctls++
		}
	}
	b.Real = c.thread.Now() - began
	ownAfter, err := use()
	if err != nil {
		return b, err
	}
	serverAfter, err := c.serverUse()
	b.Client, b.Server = ownAfter.cpu-own.cpu, serverAfter.cpu-server.cpu
	b.Descriptors = ownAfter.descriptors - own.descriptors + serverAfter.descriptors - server.descriptors
	return b, err
}

// echo sends the vector and takes it back. The answer's memory is given back
// with the next call, as Android's libraries do.
func (c *client) echo(vector []byte) error {
	c.request.Reset()
	if c.gather {
		c.request.Buffer(vector)
	} else {
		c.request.Bytes(vector)
	}
	m, err := c.thread.Call(c.target, codeEcho, &c.request)
	if err != nil {
		return fmt.Errorf("call the server: %w", err)
	}
	r := m.Read()
	back := 0
	if c.gather {
		back = len(r.Buffer())
	} else {
		back = len(r.Bytes())
	}
	c.thread.Free(&m)
	if r.Err() == nil && back != len(vector) {
		return fmt.Errorf("%d bytes came back", back)
	}
	return r.Err()
}

// serverUse asks the server what it uses.
func (c *client) serverUse() (usage, error) {
	c.request.Reset()
	m, err := c.thread.Call(c.target, codeUsed, &c.request)
	if err != nil {
		return usage{}, fmt.Errorf("ask the server for its CPU time: %w", err)
	}
	r := m.Read()
	u := usage{cpu: time.Duration(r.Uint64()), descriptors: int(r.Uint32())}
	c.thread.Free(&m)
	return u, r.Err()
}

// usage is what a process has used of the CPUs, and its open descriptors.
type usage struct {
	cpu         time.Duration
	descriptors int
}

// use is the usage of this process.
func use() (usage, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		return usage{}, fmt.Errorf("read the own CPU time: %w", err)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return usage{}, fmt.Errorf("count the own descriptors: %w", err)
	}
	return usage{time.Duration(t.Nano()), len(open)}, nil
}
