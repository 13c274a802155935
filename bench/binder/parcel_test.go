package binder

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// delivered is what the driver makes of a parcel: everything in one piece of
// the receiver's memory, with the buffers' addresses there.
func delivered(p *Parcel) *Message {
	memory := bytes.Clone(p.data)
	data := len(memory)
	place := func(b []byte) uint64 {
		for len(memory)%8 != 0 {
			memory = append(memory, 0)
		}
		at := fakeBase + uint64(len(memory))
		memory = append(memory, b...)
		return at
	}
	buffers := p.buffers
	for offsets := p.offsets; len(offsets) > 0; offsets = offsets[8:] {
		at := binary.LittleEndian.Uint64(offsets)
		if binary.LittleEndian.Uint32(memory[at:]) != typeBuffer {
			continue
		}
		where := place(buffers[0])
		buffers = buffers[1:]
		binary.LittleEndian.PutUint64(memory[at+8:], where)
		if binary.LittleEndian.Uint32(memory[at+4:]) == bufferHasParent { // fix the pointer in the header up
			parent := binary.LittleEndian.Uint64(p.offsets[8*binary.LittleEndian.Uint64(memory[at+24:]):])
			header := binary.LittleEndian.Uint64(memory[parent+8:]) - fakeBase
			binary.LittleEndian.PutUint64(memory[header:], where)
		}
	}
	return &Message{data: memory[:data], offsets: p.offsets, mapping: mapping{base: fakeBase, memory: memory}}
}

func TestParcelAndBack(t *testing.T) {
	var p Parcel
	for range 2 { // the memory is used again
		p.Reset()
		p.Uint32(7)
		p.Bytes([]byte("hello"))
		p.handle(3)
		p.Buffer([]byte("gathered"))
		p.Buffer(nil)
		p.Uint64(9)
		r := delivered(&p).Read()
		if a, b, h := r.Uint32(), string(r.Bytes()), r.handle(); a != 7 || b != "hello" || h != 3 {
			t.Errorf("%d %q %d", a, b, h)
		}
		if a, b, c := string(r.Buffer()), r.Buffer(), r.Uint64(); a != "gathered" || b != nil || c != 9 || r.Err() != nil {
			t.Errorf("%q %q %d, error %v", a, b, c, r.Err())
		}
	}
	p.Reset()
	p.Buffer([]byte("first"))
	r := delivered(&p).Read()
	if got := string(r.Buffer()); got != "first" || r.Err() != nil {
		t.Errorf("a vector at the beginning: %q, error %v", got, r.Err())
	}
}

func TestReaderIsSuspicious(t *testing.T) {
	forged := func(change func(m *Message)) *Message {
		var p Parcel
		p.Buffer([]byte("12345678"))
		m := delivered(&p)
		m.offsets = bytes.Clone(m.offsets)
		change(m)
		return m
	}
	for name, test := range map[string]struct {
		change func(m *Message)
		want   string
	}{
		"not an object":  {func(m *Message) { m.offsets = nil }, "no object at its byte 8"},
		"elsewhere":      {func(m *Message) { m.offsets[0] = 16 }, "no object"},
		"another kind":   {func(m *Message) { m.data[8]++ }, "an object of kind"},
		"short":          {func(m *Message) { m.data = m.data[:40] }, "shorter"},
		"far away":       {func(m *Message) { m.data[8+15] = 0xff }, "not in the memory"},
		"long header":    {func(m *Message) { m.data[8+16] = 17 }, "the header of a vector"},
		"shorter body":   {func(m *Message) { m.data[48+16] = 7 }, "a body of 7"},
		"longer body":    {func(m *Message) { m.data[48+17] = 7 }, "not in the memory"},
		"another's body": {func(m *Message) { m.data[48+8]++; m.data[48+16]-- }, "a body of 7"},
	} {
		r := forged(test.change).Read()
		if r.Buffer(); r.Err() == nil || !strings.Contains(r.Err().Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, r.Err(), test.want)
		}
	}
	r := (&Message{data: words(100, 1)}).Read()
	if b := r.Bytes(); b != nil || r.Err() == nil || r.Uint32() != 0 {
		t.Errorf("bytes that are not there: %v, error %v", b, r.Err())
	}
}

func FuzzReader(f *testing.F) {
	var p Parcel
	p.Buffer([]byte("12345678"))
	m := delivered(&p)
	f.Add(m.mapping.memory, len(m.data), m.offsets)
	f.Fuzz(func(t *testing.T, memory []byte, data int, offsets []byte) {
		m := Message{data: memory[:min(max(data, 0), len(memory))], offsets: offsets, mapping: mapping{base: fakeBase, memory: memory}}
		for _, read := range []func(*Reader){
			func(r *Reader) { r.Buffer() }, func(r *Reader) { r.Bytes() }, func(r *Reader) { r.handle() },
		} {
			r := m.Read()
			for r.Err() == nil {
				read(&r)
				r.Uint64()
			}
		}
	})
}

func TestView(t *testing.T) {
	m := mapping{base: fakeBase, memory: make([]byte, 16)}
	for _, test := range []struct {
		at, length uint64
		ok         bool
	}{
		{fakeBase, 16, true}, {fakeBase + 16, 0, true}, {0, 0, true}, {fakeBase + 15, 1, true},
		{fakeBase, 17, false}, {fakeBase + 16, 1, false}, {fakeBase - 1, 1, false},
		{fakeBase + 1, ^uint64(0), false}, {^uint64(0), 1, false}, {0, 1, false},
	} {
		if b, err := m.view(test.at, test.length); (err == nil) != test.ok || err == nil && uint64(len(b)) != test.length {
			t.Errorf("%#x, %d: %d bytes, error %v", test.at, test.length, len(b), err)
		}
	}
}
