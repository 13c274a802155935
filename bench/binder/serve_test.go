package binder

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// called is a device that gets one call, and what it does about it.
func called(t *testing.T, memory []byte, tr transaction, h Handler) []uint32 {
	t.Helper()
	d, f := scripted(memory, step{-1, words(brNoop, uint32(brTransaction), tr), nil}, step{-1, nil, nil})
	d.add(h)
	if err := d.Thread().Loop(); !errors.Is(err, errScript) {
		t.Fatal(err)
	}
	return codes(t, f.given)
}

func TestServe(t *testing.T) {
	call := transaction{target: 1, code: 5, dataSize: 4, data: fakeBase, pid: 9}
	fine := func(_ *Thread, m *Message, reply *Parcel) error {
		r := m.Read()
		if m.Code != 5 || m.PID != 9 || r.Uint32() != 42 {
			t.Errorf("call %+v", m)
		}
		return nil
	}
	for name, test := range map[string]struct {
		change func(*transaction)
		handle Handler
		want   []uint32
	}{
		"answered":  {func(*transaction) {}, fine, []uint32{bcEnterLooper, bcReply, bcFreeBuffer}},
		"one way":   {func(tr *transaction) { tr.flags = flagOneWay }, fine, []uint32{bcEnterLooper, bcFreeBuffer}},
		"not ours":  {func(tr *transaction) { tr.target = 2 }, fine, []uint32{bcEnterLooper, bcReply, bcFreeBuffer}},
		"gathered":  {func(*transaction) {}, func(_ *Thread, _ *Message, p *Parcel) error { p.Buffer([]byte("x")); return nil }, []uint32{bcEnterLooper, bcReplySG, bcFreeBuffer}},
		"fails":     {func(*transaction) {}, func(*Thread, *Message, *Parcel) error { return errScript }, []uint32{bcEnterLooper, bcReply, bcFreeBuffer}},
		"too large": {func(*transaction) {}, func(_ *Thread, _ *Message, p *Parcel) error { p.Bytes(make([]byte, MapBytes)); return nil }, []uint32{bcEnterLooper, bcReply, bcFreeBuffer}},
	} {
		tr := call
		test.change(&tr)
		if got := called(t, words(42), tr, test.handle); !slices.Equal(got, test.want) {
			t.Errorf("%s: commands %x, want %x", name, got, test.want)
		}
	}
}

func TestReferences(t *testing.T) {
	d, f := scripted(nil, step{-1, words(uint32(brIncrefs), uint64(1), uint64(8), uint32(brAcquire), uint64(1), uint64(8)), nil},
		step{-1, words(brNoop), nil}, step{-1, words(uint32(brRelease), uint64(1), uint64(8), uint32(brDecrefs), uint64(1), uint64(8)), nil})
	d.add(nil)
	th := d.Thread()
	for _, want := range []int{1, 1, 0} {
		in := make([]byte, 256)
		filled, err := th.exchange(in)
		if err == nil {
			err = th.read(in[:filled], th.handle)
		}
		if err != nil || d.References() != want {
			t.Errorf("%d references, want %d, error %v", d.References(), want, err)
		}
	}
	if got := codes(t, f.given); !slices.Equal(got, []uint32{bcIncrefsDone, bcAcquireDone}) {
		t.Errorf("commands %x", got)
	}
}

// askManager calls the manager and returns the status of its answer, 0 for none.
func askManager(t *testing.T, th *Thread, code uint32, p *Parcel) int32 {
	t.Helper()
	m := delivered(p)
	m.Code, m.target = code, managerNode
	var reply Parcel
	if th.ask(m, &reply) == 0 {
		return 0
	}
	r := (&Message{data: reply.data}).Read()
	return int32(r.Uint32())
}

func TestManager(t *testing.T) {
	d, _ := scripted(nil)
	if err := d.Manage(); err != nil {
		t.Fatal(err)
	}
	th := d.Thread()
	named := func(name string, handle uint32) *Parcel {
		p := &Parcel{}
		p.Bytes([]byte(name))
		if handle != 0 {
			p.handle(handle)
		}
		return p
	}
	for _, test := range []struct {
		what   string
		code   uint32
		parcel *Parcel
		want   int32
	}{
		{"nobody there", codeFind, named("a", 0), statusNoName},
		{"new", codePublish, named("a", 5), 0},
		{"taken", codePublish, named("a", 6), statusTaken},
		{"there", codeFind, named("a", 0), 0},
		{"without a service", codePublish, named("b", 0), statusBad},
		{"without a name", codePublish, named("", 7), statusBad},
		{"name too long", codePublish, named(strings.Repeat("x", maxName+1), 7), statusBad},
		{"another code", 99, named("a", 0), statusUnknown},
	} {
		if got := askManager(t, th, test.code, test.parcel); got != test.want {
			t.Errorf("%s: status %d, want %d", test.what, got, test.want)
		}
	}
	if got := codes(t, th.out); !slices.Equal(got, []uint32{bcAcquire, bcRequestDeathNote}) {
		t.Errorf("commands %x", got)
	}
	th.out = nil
	th.died(5)
	if got := codes(t, th.out); !slices.Equal(got, []uint32{bcDeadBinderDone, bcRelease}) {
		t.Errorf("a death: commands %x", got)
	}
	if got := askManager(t, th, codeFind, named("a", 0)); got != statusNoName {
		t.Errorf("found after its death: status %d", got)
	}
}

func TestSecondManager(t *testing.T) {
	d, f := scripted(nil)
	f.manager = unix.EBUSY
	if err := d.Manage(); err == nil || !strings.Contains(err.Error(), "another process is its service manager") {
		t.Error(err)
	}
}

func TestPublishAndFind(t *testing.T) {
	found := words(uint32(typeHandle), 0, uint64(3), uint64(0), uint64(0)) // the object, then its offset
	answer := transaction{dataSize: flatBytes, data: fakeBase, offsetsSize: 8, offsets: fakeBase + flatBytes}
	d, f := scripted(found, step{-1, words(uint32(brReply), answer), nil}, step{-1, nil, nil})
	if h, err := d.Thread().Find("x"); h != 3 || err != nil {
		t.Errorf("handle %d, error %v", h, err)
	}
	if got := codes(t, f.given); !slices.Equal(got, []uint32{bcTransaction, bcAcquire, bcFreeBuffer}) {
		t.Errorf("commands %x", got)
	}
	d, _ = scripted(words(statusTaken), step{-1, words(uint32(brReply), reply(flagStatusCode)), nil})
	if err := d.Thread().Publish("x", NodeFlags, nil); err == nil || len(d.nodes) != 0 || !strings.Contains(err.Error(), `publish "x"`) {
		t.Errorf("%d nodes, error %v", len(d.nodes), err)
	}
	if err := d.Thread().Publish("", 0, nil); err == nil {
		t.Error("published without a name")
	}
}
