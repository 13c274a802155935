package binder

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// reply is a reply with 4 bytes at the beginning of the memory.
func reply(flags uint32) transaction {
	return transaction{flags: flags, dataSize: 4, data: fakeBase}
}

func TestCall(t *testing.T) {
	memory := words(42, 0, 0, 0)
	for name, test := range map[string]struct {
		script    []step
		errno     unix.Errno
		want      error
		text      string
		exchanges int
	}{
		"answered":           {script: []step{{-1, words(brNoop, brTransactionComplete, uint32(brReply), reply(0)), nil}}, exchanges: 1},
		"interrupted":        {script: []step{{-1, nil, unix.EINTR}, {-1, words(uint32(brReply), reply(0)), nil}}, exchanges: 1},
		"in two reads":       {script: []step{{-1, words(brTransactionComplete), nil}, {-1, words(uint32(brReply), reply(0)), nil}}, exchanges: 2},
		"dead":               {script: []step{{-1, words(brNoop, brDeadReply), nil}}, want: ErrDead},
		"frozen":             {script: []step{{-1, words(brFrozenReply), nil}}, want: ErrFrozen},
		"failed":             {script: []step{{-1, words(brFailedReply), nil}}, want: ErrFailed},
		"full":               {script: []step{{-1, words(brFailedReply), nil}}, errno: unix.ENOSPC, want: ErrFull},
		"refused":            {script: []step{{-1, words(brFailedReply), nil}}, errno: unix.EPERM, want: unix.EPERM},
		"ioctl":              {script: []step{{-1, nil, unix.EFAULT}}, want: unix.EFAULT},
		"breaks off":         {script: []step{{-1, words(uint32(brReply), uint64(1)), nil}}, text: "breaks off"},
		"outside the memory": {script: []step{{-1, words(uint32(brReply), transaction{dataSize: 4, data: fakeBase - 1}), nil}}, text: "not in the memory"},
		"too much":           {script: []step{{-1, words(uint32(brReply), transaction{dataSize: 17, data: fakeBase}), nil}}, text: "not in the memory"},
		"unknown":            {script: []step{{-1, words(uint32(0x7299)), nil}}, text: "not known"},
		"status":             {script: []step{{-1, words(uint32(brReply), reply(flagStatusCode)), nil}}, text: "status 42"},
	} {
		t.Run(name, func(t *testing.T) {
			d, f := scripted(memory, test.script...)
			f.errno = test.errno
			th := d.Thread()
			m, err := th.Call(1, 2, &Parcel{})
			switch {
			case test.want != nil && !errors.Is(err, test.want), test.want == nil && test.text == "" && err != nil,
				test.text != "" && (err == nil || !strings.Contains(err.Error(), test.text)):
				t.Fatalf("error %v, want %v %s", err, test.want, test.text)
			case err != nil:
				return
			}
			r := m.Read()
			if got := r.Uint32(); got != 42 || r.Err() != nil || th.Exchanges != test.exchanges {
				t.Errorf("answer %d, error %v, %d exchanges", got, r.Err(), th.Exchanges)
			}
		})
	}
}

// What the driver did not take is handed in with the next exchange.
func TestPartlyTaken(t *testing.T) {
	d, f := scripted(nil, step{4 + transactionBytes, words(brDeadReply), nil}, step{-1, nil, nil})
	th := d.Thread()
	m := Message{address: 77}
	p := &Parcel{}
	th.transact(bcTransaction, p.transaction(), p)
	th.Free(&m)
	if _, err := th.await(&frame{in: make([]byte, 64)}, false); !errors.Is(err, ErrDead) {
		t.Fatal(err)
	}
	if err := th.Flush(); err != nil || !slices.Equal(codes(t, f.given), []uint32{bcTransaction, bcFreeBuffer}) {
		t.Errorf("given %x, error %v", codes(t, f.given), err)
	}
}

func TestTooLarge(t *testing.T) {
	d, f := scripted(nil)
	p := &Parcel{}
	p.Bytes(make([]byte, MapBytes))
	if _, err := d.Thread().Call(1, 1, p); !errors.Is(err, ErrTooLarge) || len(f.given) != 0 {
		t.Errorf("error %v, %d bytes given", err, len(f.given))
	}
	p.Reset()
	p.Buffer(make([]byte, MapBytes))
	if err := d.Thread().Send(1, 1, p); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v", err)
	}
}

func TestSend(t *testing.T) {
	d, _ := scripted(nil, step{-1, words(brNoop, brTransactionComplete), nil})
	if err := d.Thread().Send(1, 1, &Parcel{}); err != nil {
		t.Error(err)
	}
}

func TestDepth(t *testing.T) {
	d, _ := scripted(nil)
	th := d.Thread()
	th.depth = maxDepth
	if _, err := th.Call(1, 1, &Parcel{}); err == nil || !strings.Contains(err.Error(), "inside each other") {
		t.Error(err)
	}
}

func TestClosed(t *testing.T) {
	d, f := scripted(nil)
	if err := errors.Join(d.Close(), d.Close()); err != nil || !f.closed {
		t.Fatal(err)
	}
	if err := d.Thread().Loop(); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func TestExit(t *testing.T) {
	d, f := scripted(nil, step{-1, nil, nil})
	th := d.Thread()
	th.Free(&Message{address: 1})
	if err := th.Exit(); err != nil || f.exited != 1 || len(f.given) != 12 {
		t.Errorf("error %v, %d exits, given %x", err, f.exited, f.given)
	}
}

// FuzzAwait lets the driver answer anything.
func FuzzAwait(f *testing.F) {
	f.Add(words(brNoop, brTransactionComplete, uint32(brReply), reply(0)), []byte{1, 2, 3, 4})
	f.Add(words(uint32(brTransaction), transaction{target: 1, data: fakeBase, dataSize: 8}), make([]byte, 64))
	f.Add(words(uint32(brAcquire), uint64(1), uint64(1), uint32(brDeadBinder), uint64(1)), []byte{})
	f.Fuzz(func(t *testing.T, answer, memory []byte) {
		d, _ := scripted(memory, step{-1, answer, nil}, step{-1, answer, nil})
		if err := d.Manage(); err != nil {
			t.Fatal(err)
		}
		d.add(func(_ *Thread, call *Message, reply *Parcel) error {
			r := call.Read()
			reply.Bytes(r.Bytes())
			reply.Buffer(r.Buffer())
			return r.Err()
		})
		m, err := d.Thread().Call(1, 1, &Parcel{})
		if err == nil {
			r := m.Read()
			r.Bytes()
			r.Buffer()
		}
	})
}
