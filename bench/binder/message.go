package binder

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Flags of a transaction.
const (
	flagOneWay     = 0x01
	flagStatusCode = 0x08
	flagAcceptFds  = 0x10
)

// Message is what was received: a call, or the answer to one. It lies in the
// memory lent to the driver until Thread.Free.
type Message struct {
	Code  uint32
	PID   int // of the caller; 0 in an answer and in a call without one
	flags uint32

	target  uint64 // the node that was called
	address uint64 // of the data, by which the driver knows it
	data    []byte
	offsets []byte
	mapping mapping
}

// message checks what the driver says about a transaction.
func (m mapping) message(t transaction) (Message, error) {
	data, err := m.view(t.data, t.dataSize)
	if err != nil {
		return Message{}, err
	}
	offsets, err := m.view(t.offsets, t.offsetsSize)
	if err != nil {
		return Message{}, err
	}
	return Message{Code: t.code, PID: int(t.pid), flags: t.flags, target: t.target,
		address: t.data, data: data, offsets: offsets, mapping: m}, nil
}

// Read returns a reader at the beginning of the message.
func (m *Message) Read() Reader { return Reader{message: m, rest: m.data} }

// Reader takes a message apart. The first fault stays: after it everything read
// is zero, and Err says what it was.
type Reader struct {
	message *Message
	rest    []byte
	objects int // taken so far
	err     error
}

// Err is the first fault, nil when all was there.
func (r *Reader) Err() error { return r.err }

var errShort = errors.New("message: it is shorter than what is in it")

func (r *Reader) take(n uint64) []byte {
	if r.err != nil || uint64(len(r.rest)) < n {
		r.fail(errShort)
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *Reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Uint32 takes a number.
func (r *Reader) Uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// Uint64 takes a number.
func (r *Reader) Uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Bytes takes what Parcel.Bytes wrote. It is the driver's memory: read only,
// and gone after Free.
func (r *Reader) Bytes() []byte {
	n := uint64(r.Uint32())
	b := r.take(n)
	r.align(4)
	return b
}

// align goes on to the next whole word.
func (r *Reader) align(to int) {
	if used := len(r.message.data) - len(r.rest); used%to != 0 {
		r.take(uint64(to - used%to))
	}
}

// object goes to the next object and returns its bytes.
func (r *Reader) object(kind uint32, size uint64) []byte {
	r.align(8)
	if r.err != nil {
		return nil
	}
	at := uint64(len(r.message.data) - len(r.rest))
	if len(r.message.offsets) < 8*(r.objects+1) || binary.LittleEndian.Uint64(r.message.offsets[8*r.objects:]) != at {
		// Without the driver's word for it, it is bytes of the sender.
		r.fail(fmt.Errorf("message: there is no object at its byte %d", at))
		return nil
	}
	r.objects++
	b := r.take(size)
	if b != nil && binary.LittleEndian.Uint32(b) != kind {
		r.fail(fmt.Errorf("message: an object of kind %#x where one of kind %#x belongs", binary.LittleEndian.Uint32(b), kind))
		return nil
	}
	return b
}

// handle takes a service of another process.
func (r *Reader) handle() uint32 {
	b := r.object(typeHandle, flatBytes)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint32(b[8:])
}

// Buffer takes what Parcel.Buffer wrote, which is the driver's memory.
func (r *Reader) Buffer() []byte {
	if len(r.rest) == len(r.message.data) {
		r.Uint64() // see Parcel.Buffer
	}
	header, _ := r.gathered()
	if r.err == nil && len(header) != vectorBytes {
		r.fail(fmt.Errorf("message: the header of a vector has %d bytes; it has %d", len(header), vectorBytes))
	}
	if r.err != nil {
		return nil
	}
	pointer, length := binary.LittleEndian.Uint64(header), binary.LittleEndian.Uint32(header[8:])
	if length == 0 {
		return nil
	}
	body, at := r.gathered()
	if r.err == nil && (at != pointer || uint64(len(body)) != uint64(length)) {
		r.fail(fmt.Errorf("message: a vector of %d bytes with a body of %d", length, len(body)))
	}
	if r.err != nil {
		return nil
	}
	return body
}

// gathered takes one buffer object: its bytes and where they lie.
func (r *Reader) gathered() (bytes []byte, at uint64) {
	b := r.object(typeBuffer, bufferBytes)
	if b == nil {
		return nil, 0
	}
	at = binary.LittleEndian.Uint64(b[8:])
	bytes, err := r.message.mapping.view(at, binary.LittleEndian.Uint64(b[16:]))
	if err != nil {
		r.fail(err)
	}
	return bytes, at
}

// Received is a message of plain data, as if the driver had brought it: for
// tests of those who read messages.
func Received(data []byte) *Message { return &Message{data: data} }
