package sched

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
)

// MaxKnown is how many answers are remembered.
const MaxKnown = 4096

// KnownBy says what the rules look at, where that is enough to know the class of a task. The
// zero value: it is not.
type KnownBy struct{ Comm, Cgroup, UID bool }

func (k KnownBy) bits() (bits uint32) {
	for bit, on := range map[uint32]bool{knownComm: k.Comm, knownCgroup: k.Cgroup, knownUser: k.UID} {
		if on {
			bits |= bit
		}
	}
	return bits
}

// Known is what rules look at. What KnownBy does not name is not used.
type Known struct {
	Comm   string // longer than the kernel keeps one: not remembered
	Cgroup uint64 // the number of its cgroup in the v2 tree; 0: not remembered
	UID    uint32
}

// known is what the kernel side remembers.
type known struct {
	mu    sync.Mutex
	by    KnownBy
	times uint32 // that it was forgotten
	epoch uint32 // 0: nothing is remembered
	keys  map[rotaKnown]struct{}

	begin  func(epoch uint32) error
	put    func(key rotaKnown, class uint32) error
	remove func(key rotaKnown) error
}

// newKnown remembers in the maps of the object; self is our PID.
func newKnown(coll *ebpf.Collection, self uint32) *known {
	classes := coll.Maps["known_classes"]
	return &known{
		keys: map[rotaKnown]struct{}{},
		begin: func(epoch uint32) error {
			return coll.Variables["knowing"].Set(rotaKnowing{Epoch: epoch, Daemon: self})
		},
		put:    func(key rotaKnown, class uint32) error { return classes.Put(key, class) },
		remove: func(key rotaKnown) error { return classes.Delete(key) },
	}
}

// Forget takes back what Remember said. From now on tasks are known by these.
func (s *Scheduler) Forget(by KnownBy) error {
	s.known.mu.Lock()
	defer s.known.mu.Unlock()
	return s.known.forget(by)
}

// Remember has tasks that are known by this put into the class as soon as they are, without
// an event. When MaxKnown are remembered all others are forgotten first.
func (s *Scheduler) Remember(what Known, class int) error {
	s.known.mu.Lock()
	defer s.known.mu.Unlock()
	return s.known.remember(what, class)
}

func (k *known) forget(by KnownBy) error {
	k.times++
	k.by, k.epoch = by, 0
	if bits := by.bits(); bits != 0 {
		k.epoch = k.times<<knownShift | bits
	}
	if err := k.begin(k.epoch); err != nil {
		return fmt.Errorf("classes that are known: %w", err)
	}
	// Nobody who reads one of these now takes it: it is of another epoch.
	for key := range k.keys {
		if err := k.remove(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("classes that are known: %w", err)
		}
	}
	clear(k.keys)
	return nil
}

func (k *known) remember(what Known, class int) error {
	key, can := k.key(what)
	if _, known := k.keys[key]; !can || known {
		return nil
	}
	if len(k.keys) >= MaxKnown {
		if err := k.forget(k.by); err != nil {
			return err
		}
		key, _ = k.key(what)
	}
	if err := k.put(key, uint32(class)); err != nil {
		return fmt.Errorf("class %d of tasks that are known: %w", class, err)
	}
	k.keys[key] = struct{}{}
	return nil
}

// key is under what something is remembered, if it can be.
func (k *known) key(what Known) (key rotaKnown, can bool) {
	if k.epoch == 0 || (k.by.Comm && len(what.Comm) >= len(key.Comm)) || (k.by.Cgroup && what.Cgroup == 0) {
		return key, false
	}
	key.Epoch = k.epoch
	if k.by.Comm {
		copy(key.Comm[:], what.Comm)
	}
	if k.by.Cgroup {
		key.Cgroup = what.Cgroup
	}
	if k.by.UID {
		key.User = what.UID
	}
	return key, true
}
