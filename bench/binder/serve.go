package binder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
)

// Handler answers a call: what it puts into reply is sent back, and an error
// (best a *StatusError) is sent as a status. The call's memory is given back
// when the answer is sent; the reply may point into it. On t the handler can
// call others.
type Handler func(t *Thread, call *Message, reply *Parcel) error

// node is a service of this process. The driver knows it by a number and
// counts who holds it.
type node struct {
	handle Handler
	dead   func(t *Thread, cookie uint64) // somebody whom the handler watches has ended
	strong int
}

// managerNode is the number of a manager's own node.
const managerNode = 0

func (d *Device) node(number uint64) *node {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.nodes[number]
}

// node finds who is called, and lets go where that or the handler may block.
func (t *Thread) node(number uint64) *node {
	if !t.device.Brief || !t.device.mu.TryRLock() {
		t.LetGo()
		return t.device.node(number)
	}
	defer t.device.mu.RUnlock()
	return t.device.nodes[number]
}

// add gives a new service its number.
func (d *Device) add(h Handler) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	number := d.next
	d.next++
	d.nodes[number] = &node{handle: h}
	return number
}

func (d *Device) drop(number uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.nodes, number)
}

// References is how often others hold services of this process.
func (d *Device) References() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	n := 0
	for _, node := range d.nodes {
		n += node.strong
	}
	return n
}

// Serve answers calls with that many threads. It ends with the first thread
// that fails: a thread that waits for calls cannot be called back, so whoever
// serves ends with its process.
func (d *Device) Serve(threads int) error {
	failed := make(chan error, threads)
	for range threads {
		go func() {
			runtime.LockOSThread() // for good: the thread ends with its goroutine
			failed <- d.Thread().Loop()
		}()
	}
	return <-failed
}

// Loop answers calls on this thread until the device fails or is closed.
func (t *Thread) Loop() error {
	f, err := t.enter()
	if err != nil {
		return err
	}
	defer t.leave()
	defer t.LetGo()
	t.command(bcEnterLooper)
	for {
		filled, err := t.exchange(f.in)
		if err == nil {
			err = t.read(f.in[:filled], t.handle)
		}
		if err != nil {
			return err
		}
	}
}

// handle does what an answer asks for that ends no call of ours.
func (t *Thread) handle(a answer) error {
	switch a.code {
	case brNoop, brTransactionComplete, brOnewaySpamSuspect, brSpawnLooper:
	case brDeadReply, brFailedReply, brFrozenReply:
		// The caller did not want our answer any more: its affair.
	case brTransaction, brTransactionSecCtx:
		return t.answer(a)
	case brIncrefs, brAcquire, brRelease, brDecrefs:
		t.LetGo()
		t.count(a)
	case brDeadBinder:
		t.LetGo()
		t.died(binary.LittleEndian.Uint64(a.payload))
	case brError:
		return fmt.Errorf("%s: the driver reports error %d", t.device.path, int32(binary.LittleEndian.Uint32(a.payload)))
	default:
		return fmt.Errorf("%s: the driver answers %#x, which is not known here", t.device.path, a.code)
	}
	return nil
}

// count keeps the driver's books on who holds our services.
func (t *Thread) count(a answer) {
	number, cookie := pair(a.payload)
	change := 0
	switch a.code {
	case brIncrefs, brAcquire:
		done := uint32(bcIncrefsDone)
		if a.code == brAcquire {
			done, change = bcAcquireDone, 1
		}
		t.command(done)
		t.out = binary.LittleEndian.AppendUint64(t.out, number)
		t.out = binary.LittleEndian.AppendUint64(t.out, cookie)
	case brRelease:
		change = -1
	}
	t.device.mu.Lock()
	defer t.device.mu.Unlock()
	if n := t.device.nodes[number]; n != nil {
		n.strong += change
	}
}

// answer lets a handler answer a call and adds the reply to the commands.
func (t *Thread) answer(a answer) error {
	tr, err := readTransaction(a.payload)
	if err != nil {
		return err
	}
	call, err := t.device.mapping.message(tr)
	if err != nil {
		return err
	}
	f, err := t.enter()
	if err != nil {
		return err
	}
	defer t.leave()
	f.reply.Reset()
	flags := t.ask(&call, &f.reply)
	if call.flags&flagOneWay == 0 {
		back := f.reply.transaction()
		back.flags = flags
		t.transact(bcReply, back, &f.reply)
	}
	t.Free(&call) // behind the reply, which may point into it
	return nil
}

// ask calls the handler and returns the flags of the reply.
func (t *Thread) ask(call *Message, reply *Parcel) uint32 {
	var err error = &StatusError{statusUnknown}
	if n := t.node(call.target); n != nil {
		err = n.handle(t, call, reply)
	}
	if err == nil {
		err = reply.check()
	}
	if err == nil {
		return 0
	}
	status := int32(statusBad)
	var s *StatusError
	if errors.As(err, &s) {
		status = s.Status
	}
	reply.Reset()
	reply.Uint32(uint32(status))
	return flagStatusCode
}

// died hears that a watched service has ended.
func (t *Thread) died(cookie uint64) {
	t.command(bcDeadBinderDone)
	t.out = binary.LittleEndian.AppendUint64(t.out, cookie)
	if n := t.device.node(managerNode); n != nil && n.dead != nil {
		n.dead(t, cookie)
	}
}
