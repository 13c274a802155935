package latency

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"rota/bench/binder"
	"rota/bench/binder/pairs"
	"rota/bench/level"
	"rota/bench/peer"
)

// Codes of a call: one that counts, and one that asks after nice alone.
const (
	codeCall  = 1
	codeProbe = 2
)

// fifo is the level of the real-time caller.
var fifo = level.Level{Policy: level.Fifo, Priority: level.MaxPriority}

// niceProbes are the nice values that the verdict on nice is made of, and
// probeCalls how often each calls.
var niceProbes = [...]int32{-10, 10}

const probeCalls = 50

// joinNap is how long to sleep between two looks at whether a thread has ended.
const joinNap = 50 * time.Microsecond

// collectEvery is after how many iterations Go's collector runs, between calls.
const collectEvery = 4096

// client is the state of one client process.
type client struct {
	order   order
	target  binder.Handle
	main    *binder.Thread
	fresh   *binder.Thread // of the thread that makes one call
	request binder.Parcel
	answer  reply
	samples Samples
	tracing *tracing
}

// call is the role of a client.
func call(p *peer.Peer) error {
	runtime.LockOSThread()
	o, d, t, h, err := pairs.Find[order](p, 2)
	if err != nil {
		return err
	}
	c := &client{order: o.Work, target: h, main: t, fresh: d.Thread()}
	c.samples.Fifo.grow(o.Work.Iterations)
	c.samples.Other.grow(o.Work.Iterations)
	if o.Work.Trace {
		if c.tracing, err = openTracing(); err != nil {
			return err
		}
	}
	if err := c.run(); err != nil {
		return err
	}
	if err := t.Release(h); err != nil {
		return err
	}
	return p.Say(c.samples)
}

func (c *client) run() error {
	for i := range c.order.Iterations {
		if i%collectEvery == collectEvery-1 {
			runtime.GC()
		}
		if err := c.inThread(fifo, c.onceFresh); err != nil {
			return err
		}
		if c.stopAt(&c.samples.Fifo) {
			return nil
		}
		if err := c.once(c.main, "other-caller", level.Level{}, &c.samples.Other); err != nil {
			return err
		}
		if !c.order.Compat && c.stopAt(&c.samples.Other) {
			return nil
		}
	}
	if c.order.Extended {
		c.samples.Nice = c.probeNice()
	}
	return nil
}

// inThread does work on a new thread of that level and waits for its end, as the
// original joins it: else it would still be on a CPU while the next call is made.
func (c *client) inThread(l level.Level, work func() error) error {
	done, tid := make(chan error), 0
	go func() {
		runtime.LockOSThread() // and never unlocked: so the thread ends
		tid = unix.Gettid()
		err := l.Set()
		if err == nil {
			err = work()
		}
		if err == nil {
			err = c.fresh.Exit()
		}
		done <- err
	}()
	err := <-done
	// Go lets the thread that main() began on wait for ever, where others end.
	for pid := os.Getpid(); tid != pid && unix.Tgkill(pid, tid, 0) == nil; {
		nap := unix.NsecToTimespec(joinNap.Nanoseconds())
		unix.Nanosleep(&nap, nil) // not time.Sleep: it may end on another thread
	}
	return err
}

// onceFresh is once in a new thread. In the original the driver gets to know the
// thread within the measured span.
func (c *client) onceFresh() error {
	if !c.order.Compat {
		if err := c.fresh.Enter(); err != nil {
			return err
		}
	}
	return c.once(c.fresh, "fifo-caller", fifo, &c.samples.Fifo)
}

// once makes one call and keeps what came of it.
func (c *client) once(t *binder.Thread, who string, l level.Level, s *Series) error {
	if c.order.Verbose {
		dump(who, l, c.order.Compat)
	}
	cpu := level.CPU()
	c.tracing.begin(who)
	err := c.ask(t, codeCall, l, cpu)
	c.tracing.end()
	if err != nil {
		return err
	}
	s.add(t, c.answer, l, cpu)
	return t.Flush()
}

// ask makes one call of the original's size.
func (c *client) ask(t *binder.Thread, code uint32, l level.Level, cpu uint32) error {
	c.request.Reset()
	c.request.Uint32(l.Priority)
	c.request.Uint32(cpu)
	c.request.Uint64(0)
	m, err := t.Call(c.target, code, &c.request)
	if err != nil {
		return fmt.Errorf("call the server: %w", err)
	}
	defer t.Free(&m)
	if c.answer, err = readReply(&m); err != nil {
		return fmt.Errorf("answer of the server: %w", err)
	}
	return nil
}

// reply is what the server says of itself.
type reply struct {
	received int64 // CLOCK_MONOTONIC
	level    level.Level
	cpu      uint32
}

func readReply(m *binder.Message) (reply, error) {
	r := m.Read()
	a := reply{received: int64(r.Uint64())}
	a.level = level.Level{Policy: r.Uint32(), Priority: r.Uint32(), Nice: int32(r.Uint32())}
	a.cpu = r.Uint32()
	return a, r.Err()
}

// stopAt stops the kernel's tracing when the last call missed its deadline.
func (c *client) stopAt(s *Series) bool {
	last := s.Spans[len(s.Spans)-1]
	if c.tracing == nil || last <= c.order.DeadlineNs {
		return false
	}
	c.tracing.stop()
	c.samples.Missed = true
	return true
}

// probeNice calls at other nice values. Where they may not be set, there is
// nothing to tell.
func (c *client) probeNice() (n NiceProbe) {
	for _, nice := range niceProbes {
		l := level.Level{Nice: nice}
		err := c.inThread(l, func() error {
			for range probeCalls {
				if err := c.ask(c.fresh, codeProbe, l, level.CPU()); err != nil {
					return err
				}
				n.Calls++
				if c.answer.level.Nice == nice {
					n.Followed++
				}
			}
			return nil
		})
		if err != nil {
			n.Fault = err.Error()
			return n
		}
	}
	return n
}

func threadID() int { return unix.Gettid() }

// mark is what the trace calls a call.
func mark(who string) string { return fmt.Sprintf("B|%d|binder call, %s", os.Getpid(), who) }
