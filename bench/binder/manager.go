package binder

import (
	"encoding/binary"
	"fmt"
	"sync"
)

// Codes of the service manager. It is our own: Android's speaks another
// language, which needs Android's user space on both sides.
const (
	codeFind    = 1 // name -> handle
	codePublish = 2 // name, service
)

// Bounds on what a process may ask of the manager.
const (
	maxName     = 127
	maxServices = 4096
)

// manager keeps the names of a device's services.
type manager struct {
	mu       sync.Mutex
	services map[string]uint32
}

func (m *manager) handle(t *Thread, call *Message, reply *Parcel) error {
	r := call.Read()
	name := string(r.Bytes())
	if r.Err() != nil || name == "" || len(name) > maxName {
		return &StatusError{statusBad}
	}
	switch call.Code {
	case codeFind:
		return m.find(name, reply)
	case codePublish:
		h := r.handle()
		if r.Err() != nil {
			return &StatusError{statusBad}
		}
		return m.publish(t, name, h)
	}
	return &StatusError{statusUnknown}
}

func (m *manager) find(name string, reply *Parcel) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, there := m.services[name]
	if !there {
		return &StatusError{statusNoName}
	}
	reply.handle(h)
	return nil
}

// publish keeps the service, which the call's memory holds until it is freed,
// and asks to be told of its end.
func (m *manager) publish(t *Thread, name string, h uint32) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := m.services[name]; taken || len(m.services) == maxServices {
		return &StatusError{statusTaken}
	}
	m.services[name] = h
	t.reference(bcAcquire, Handle(h))
	t.reference(bcRequestDeathNote, Handle(h))
	t.out = binary.LittleEndian.AppendUint64(t.out, uint64(h))
	return nil
}

// dead forgets a service whose process has ended.
func (m *manager) dead(t *Thread, cookie uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, h := range m.services {
		if uint64(h) == cookie {
			delete(m.services, name)
			t.reference(bcRelease, Handle(h))
		}
	}
}

// Publish gives a service of this process a name; flags are NodeFlags, or more.
// Serve answers its callers.
func (t *Thread) Publish(name string, flags uint32, h Handler) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("publish %q: a name has 1 to %d bytes", name, maxName)
	}
	number := t.device.add(h)
	var p Parcel
	p.Bytes([]byte(name))
	p.service(number, flags)
	reply, err := t.Call(managerHandle, codePublish, &p)
	if err != nil {
		t.device.drop(number)
		return fmt.Errorf("publish %q on %s: %w", name, t.device.path, err)
	}
	t.Free(&reply)
	return t.Flush()
}

// Find asks the service manager for a service of another process.
func (t *Thread) Find(name string) (Handle, error) {
	var p Parcel
	p.Bytes([]byte(name))
	reply, err := t.Call(managerHandle, codeFind, &p)
	if err != nil {
		return 0, fmt.Errorf("find %q on %s: %w", name, t.device.path, err)
	}
	r := reply.Read()
	h := Handle(r.handle())
	if r.Err() == nil {
		t.reference(bcAcquire, h) // before the memory that holds it is given back
	}
	t.Free(&reply)
	if err := r.Err(); err != nil {
		return 0, fmt.Errorf("find %q on %s: %w", name, t.device.path, err)
	}
	return h, t.Flush()
}
