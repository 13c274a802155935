package binder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// answerBytes is room for a transaction and what the driver may put before it.
const answerBytes = 512

// maxDepth bounds calls inside calls on one thread.
const maxDepth = 16

// Handle names a service of another process, as this process's driver does.
type Handle uint32

// managerHandle is the service manager of the device.
const managerHandle Handle = 0

// Thread is one operating system thread as the driver knows it. The goroutine
// that uses it is locked to its thread (runtime.LockOSThread).
type Thread struct {
	// Began is when the last call's ioctl began, by CLOCK_MONOTONIC. Span is the
	// time from there to after it: one ioctl and the two readings of the clock.
	Began, Span time.Duration
	// Exchanges is how many ioctls the last call took: 1, or more when a signal
	// interrupted it or somebody called back.
	Exchanges int

	device  *Device
	held    bool   // see hold
	out     []byte // commands for the next exchange
	depth   int
	frames  []*frame
	sending *Parcel // keeps it on the heap, where the driver finds it
}

// frame is the memory of one call or of one answer.
type frame struct {
	in    []byte // for the driver to fill
	reply Parcel
}

// Thread is the state of a new thread of this process. When a thread has ended
// after Exit, another may use it.
func (d *Device) Thread() *Thread {
	return &Thread{device: d, out: make([]byte, 0, answerBytes)}
}

// enter takes the memory for one more call.
func (t *Thread) enter() (*frame, error) {
	if t.depth == maxDepth {
		return nil, fmt.Errorf("call: %d calls inside each other on one thread", maxDepth)
	}
	if t.depth == len(t.frames) {
		t.frames = append(t.frames, &frame{in: make([]byte, answerBytes)})
	}
	t.depth++
	return t.frames[t.depth-1], nil
}

func (t *Thread) leave() { t.depth-- }

// Call calls a service and waits for its answer, which lies in the driver's
// memory until Free.
func (t *Thread) Call(h Handle, code uint32, p *Parcel) (Message, error) {
	return t.send(h, code, flagAcceptFds, p)
}

// Send calls a service and does not wait for it to answer.
func (t *Thread) Send(h Handle, code uint32, p *Parcel) error {
	_, err := t.send(h, code, flagOneWay, p)
	return err
}

func (t *Thread) send(h Handle, code, flags uint32, p *Parcel) (Message, error) {
	if err := p.check(); err != nil {
		return Message{}, err
	}
	f, err := t.enter()
	if err != nil {
		return Message{}, err
	}
	defer t.leave()
	t.sending = p
	tr := p.transaction()
	tr.target, tr.code, tr.flags = uint64(h), code, flags
	t.transact(bcTransaction, tr, p)
	return t.await(f, flags&flagOneWay != 0)
}

// transact adds a transaction to the commands.
func (t *Thread) transact(command uint32, tr transaction, p *Parcel) {
	if p.extra > 0 {
		command += sgStep
	}
	t.command(command)
	t.out = tr.append(t.out)
	if p.extra > 0 {
		t.out = binary.LittleEndian.AppendUint64(t.out, p.extra)
	}
}

// outcome is how a call ended.
type outcome struct {
	done  bool
	reply Message
	err   error
}

// await exchanges until the call has ended.
func (t *Thread) await(f *frame, oneWay bool) (Message, error) {
	var o outcome
	t.Exchanges = 0
	t.hold()
	defer t.LetGo()
	began := t.device.Now()
	for !o.done {
		filled, err := t.exchange(f.in)
		ended := t.device.Now()
		t.Exchanges++
		if err != nil {
			return Message{}, err
		}
		if err := t.read(f.in[:filled], func(a answer) error { return t.ends(a, oneWay, &o) }); err != nil {
			return Message{}, err
		}
		t.Began, t.Span = began, ended-began
	}
	return o.reply, o.err
}

// ends looks whether an answer ends the call; else it is handled as any other.
func (t *Thread) ends(a answer, oneWay bool, o *outcome) error {
	switch a.code {
	case brReply:
		tr, err := readTransaction(a.payload)
		if err != nil {
			return err
		}
		if o.reply, err = t.device.mapping.message(tr); err != nil {
			return err
		}
		o.done, o.err = true, t.status(&o.reply)
	case brDeadReply, brFailedReply, brFrozenReply:
		o.done, o.err = true, t.refused(a.code)
	case brTransactionComplete, brOnewaySpamSuspect:
		o.done = o.done || oneWay
	default:
		return t.handle(a)
	}
	return nil
}

// status is the error that an answer carries instead of data.
func (t *Thread) status(m *Message) error {
	if m.flags&flagStatusCode == 0 {
		return nil
	}
	r := m.Read()
	status := int32(r.Uint32())
	t.Free(m)
	if r.Err() != nil {
		return r.Err()
	}
	return &StatusError{status}
}

// read hands on each answer of one exchange.
func (t *Thread) read(answers []byte, each func(answer) error) error {
	for len(answers) > 0 {
		a, rest, err := nextAnswer(answers)
		if err == nil {
			err = each(a)
		}
		if err != nil {
			return err
		}
		answers = rest
	}
	return nil
}

// exchange hands the commands in and waits until the driver has something for
// this thread, unless in is empty.
func (t *Thread) exchange(in []byte) (filled int, err error) {
	if len(in) > 0 {
		t.hold()
	}
	for {
		written, filled, err := t.device.driver.exchange(t.out, in)
		t.out = t.out[:copy(t.out, t.out[min(max(written, 0), len(t.out)):])]
		switch {
		case err == nil, errors.Is(err, unix.EINTR) && filled > 0:
			return min(max(filled, 0), len(in)), nil
		case errors.Is(err, unix.EINTR):
			// A signal; what was handed in is not handed in again.
		case errors.Is(err, unix.EBADF) && t.device.closed.Load():
			return 0, ErrClosed
		default:
			return 0, fmt.Errorf("%s: exchange with the driver: %w", t.device.path, err)
		}
	}
}

// Free gives the memory of a message back, with the next exchange.
func (t *Thread) Free(m *Message) {
	if m.address == 0 {
		return
	}
	t.command(bcFreeBuffer)
	t.out = binary.LittleEndian.AppendUint64(t.out, m.address)
	*m = Message{}
}

// Flush hands in what waits for the next exchange.
func (t *Thread) Flush() error {
	for len(t.out) > 0 {
		if _, err := t.exchange(nil); err != nil {
			return err
		}
	}
	return nil
}

// Enter makes the thread known to the driver, which else happens with its first
// call and makes that one take two ioctls: the driver sends each new thread back
// once.
func (t *Thread) Enter() error {
	_, err := t.exchange(nil)
	return err
}

// Exit ends the thread for the driver; the operating system thread may then end.
func (t *Thread) Exit() error { return errors.Join(t.Flush(), t.device.driver.exitThread()) }

func (t *Thread) command(code uint32) { t.out = binary.LittleEndian.AppendUint32(t.out, code) }

// reference adds a command about one of our handles.
func (t *Thread) reference(command uint32, h Handle) {
	t.command(command)
	t.out = binary.LittleEndian.AppendUint32(t.out, uint32(h))
}

// Release gives up a service that Find found.
func (t *Thread) Release(h Handle) error {
	t.reference(bcRelease, h)
	return t.Flush()
}

// Now reads CLOCK_MONOTONIC.
func (t *Thread) Now() time.Duration { return t.device.Now() }
