package binder

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Kinds of objects, which the driver translates on their way.
const (
	typeBinder = 0x73622a85 // a service of the sender
	typeHandle = 0x73682a85 // a service of somebody else
	typeBuffer = 0x70742a85 // memory of the sender, copied along (scatter-gather)
)

const (
	flatBytes       = 24   // struct flat_binder_object
	bufferBytes     = 40   // struct binder_buffer_object
	bufferHasParent = 0x01 // BINDER_BUFFER_FLAG_HAS_PARENT
	vectorBytes     = 16   // hidl_vec: pointer, length, who owns it
)

// NodeFlags are those of Android's libraries: a service takes over any nice
// value of its callers (0x7f) and accepts descriptors.
const NodeFlags = 0x7f | 0x100

// InheritRT asks an Android kernel to take over real-time policies as well, as
// hwbinder's services do. Mainline kernels do not know it and say nothing.
const InheritRT = 0x800

// flatObject is struct flat_binder_object.
type flatObject struct {
	kind, flags  uint32
	what, cookie uint64
}

// Parcel is what a transaction carries: data, objects in it, and buffers that
// the driver gathers. Its memory is used again after Reset. Sizes are checked
// when it is sent.
type Parcel struct {
	data    []byte
	offsets []byte
	// buffers are kept alive until the driver has copied them.
	buffers [][]byte
	extra   uint64 // bytes of the buffers, as the driver counts them
	headers []*[vectorBytes]byte
	vectors int // headers in use
}

// Reset empties the parcel.
func (p *Parcel) Reset() {
	p.data, p.offsets, p.buffers, p.extra, p.vectors = p.data[:0], p.offsets[:0], p.buffers[:0], 0, 0
}

// Uint32 appends a number.
func (p *Parcel) Uint32(v uint32) { p.data = binary.LittleEndian.AppendUint32(p.data, v) }

// Uint64 appends a number.
func (p *Parcel) Uint64(v uint64) { p.data = binary.LittleEndian.AppendUint64(p.data, v) }

// Bytes appends a length and that many bytes, filled up to a whole word.
func (p *Parcel) Bytes(b []byte) {
	p.Uint32(uint32(len(b)))
	p.data = append(p.data, b...)
	p.pad(4)
}

// Buffer appends a vector that lies in memory of its own: the driver gathers it
// and the receiver gets it without another copy. This is how hwbinder sends a
// vector: a header with pointer and length, and the bytes that belong to it.
// The bytes must not change before the call has ended.
func (p *Parcel) Buffer(b []byte) {
	if len(p.data) == 0 {
		p.Uint64(0) // the driver finds no parent at byte 0: its offset means "none"
	}
	if p.vectors == len(p.headers) {
		p.headers = append(p.headers, new([vectorBytes]byte))
	}
	header := p.headers[p.vectors][:]
	p.vectors++
	clear(header)
	binary.LittleEndian.PutUint32(header[8:], uint32(len(b)))
	parent := p.gather(header, 0, 0, 0)
	if len(b) > 0 {
		p.gather(b, bufferHasParent, parent, 0)
	}
}

// gather appends a buffer object and returns its index among the objects.
func (p *Parcel) gather(b []byte, flags uint32, parent, offset uint64) uint64 {
	index := p.object()
	p.Uint32(typeBuffer)
	p.Uint32(flags)
	p.Uint64(address(b))
	p.Uint64(uint64(len(b)))
	p.Uint64(parent)
	p.Uint64(offset)
	p.buffers = append(p.buffers, b)
	p.extra += (uint64(len(b)) + 7) &^ 7
	return index
}

// service appends a service of this process.
func (p *Parcel) service(number uint64, flags uint32) {
	p.flat(flatObject{kind: typeBinder, flags: flags, what: number, cookie: number})
}

// handle appends a service of another process.
func (p *Parcel) handle(h uint32) {
	p.flat(flatObject{kind: typeHandle, flags: NodeFlags, what: uint64(h)})
}

func (p *Parcel) flat(o flatObject) {
	p.object()
	p.Uint32(o.kind)
	p.Uint32(o.flags)
	p.Uint64(o.what)
	p.Uint64(o.cookie)
}

// object notes where the next object begins, and returns its index.
func (p *Parcel) object() uint64 {
	p.pad(8)
	p.offsets = binary.LittleEndian.AppendUint64(p.offsets, uint64(len(p.data)))
	return uint64(len(p.offsets)/8 - 1)
}

func (p *Parcel) pad(to int) {
	for len(p.data)%to != 0 {
		p.data = append(p.data, 0)
	}
}

// size is the room that the parcel takes at its receiver.
func (p *Parcel) size() uint64 {
	return (uint64(len(p.data))+7)&^7 + uint64(len(p.offsets)) + p.extra
}

// errTooLarge is a parcel that no receiver has room for.
var errTooLarge = errors.New("too large for one transaction")

// check says what keeps the parcel from being sent.
func (p *Parcel) check() error {
	if size := p.size(); size > MapBytes {
		return fmt.Errorf("parcel of %d bytes: %w: at most %d; send it in parts", size, errTooLarge, MapBytes)
	}
	return nil
}

// transaction describes the parcel to the driver.
func (p *Parcel) transaction() transaction {
	return transaction{
		dataSize: uint64(len(p.data)), data: address(p.data),
		offsetsSize: uint64(len(p.offsets)), offsets: address(p.offsets),
	}
}
