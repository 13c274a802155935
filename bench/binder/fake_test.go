package binder

import (
	"encoding/binary"
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// fake is a driver that answers from a script and keeps what it was given.
type fake struct {
	script  []step
	given   []byte // all commands of the exchanges so far
	errno   unix.Errno
	manager error
	exited  int
	closed  bool
}

// step is what one exchange does: how many bytes it takes (-1: all), what it
// answers, and how it fails.
type step struct {
	takes  int
	answer []byte
	err    error
}

var errScript = errors.New("the script is over")

func (f *fake) exchange(write, read []byte) (int, int, error) {
	if f.closed {
		return 0, 0, unix.EBADF
	}
	if len(f.script) == 0 {
		return 0, 0, errScript
	}
	s := f.script[0]
	f.script = f.script[1:]
	if s.takes < 0 || s.takes > len(write) {
		s.takes = len(write)
	}
	f.given = append(f.given, write[:s.takes]...)
	return s.takes, copy(read, s.answer), s.err
}

func (f *fake) lastError() unix.Errno { return f.errno }
func (f *fake) becomeManager() error  { return f.manager }
func (f *fake) exitThread() error     { f.exited++; return nil }
func (f *fake) close() error          { f.closed = true; return nil }

const fakeBase = 0x7f0000001000

// scripted is a device whose driver answers from a script, and which has been
// lent that memory.
func scripted(memory []byte, script ...step) (*Device, *fake) {
	f := &fake{script: script}
	return newDevice("/dev/fake", f, mapping{base: fakeBase, memory: memory}), f
}

// words is an answer of codes and numbers: a uint32 takes 4 bytes, a uint64 8.
func words(list ...any) (b []byte) {
	for _, w := range list {
		switch w := w.(type) {
		case int:
			b = binary.LittleEndian.AppendUint32(b, uint32(w))
		case uint32:
			b = binary.LittleEndian.AppendUint32(b, w)
		case uint64:
			b = binary.LittleEndian.AppendUint64(b, w)
		case transaction:
			b = w.append(b)
		case []byte:
			b = append(b, w...)
		}
	}
	return b
}

// codes lists the commands in what the driver was given.
func codes(t *testing.T, given []byte) (list []uint32) {
	t.Helper()
	for len(given) > 0 {
		a, rest, err := nextAnswer(given)
		if err != nil {
			t.Fatal(err)
		}
		list, given = append(list, a.code), rest
	}
	return list
}
