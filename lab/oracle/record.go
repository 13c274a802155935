// Package oracle reads the record of what the scheduler decided and judges it
// against EEVDF as its authors define it (Stoica and Abdel-Wahab 1995), with
// what Linux adds: placement by lag, ghosts of sleepers, relative deadlines.
//
// It shares no code with the scheduler and measures no time of its own: what
// was not recorded it cannot judge, and whether another policy would have been
// better it does not say. The lab and its tests call it with a record file.
package oracle

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	magic      = "ROTAREC1"
	eventBytes = 64
	headBytes  = 16
	partBytes  = 8
	maxCPUs    = 8192
	maxEvents  = 1 << 25 // of a whole file: 2 GB
)

// Kind says what an Event is about.
type Kind uint8

// The kinds of events, as the file numbers them.
const (
	Join Kind = iota + 1
	Leave
	Settle
	Release
	Wait
	Pick
	Run
	Charge
	Ahead
	Yield
	Pull // it waits no more: another CPU is about to take it
)

// InVain is Event.How of a Pull that came to nothing: the task waits again.
const InVain uint16 = 1

// Bits of Event.How at Join and at Leave.
const (
	JoinEmpty uint16 = 1 << iota // nobody was there but ghosts, who are gone with that
	JoinNew                      // first join after fork
	JoinGhost                    // it took its ghost back, with its deadline unless that is JoinBrief's
	JoinBrief                    // its request, Span, is by what it lately used
)

const (
	LeaveSleep uint16 = 1 << iota // it sleeps; without, it moves or changes
	LeaveAfar                     // the sums keep it until the next Settle
	LeaveGhost                    // it stays in the sums as a ghost
	LeaveLast                     // nobody is left
)

// Values of Event.How at Pick.
const (
	Dispatch uint16 = iota + 1
	Keep
	Preempt
	Direct
	Rescue
	Last
	Come // to an idle CPU, or pulled there: placement, and no choice among those who wait
)

// Event is one record. Virtual times wrap modulo 2^64; 16384 units are 1 ns of
// a task of weight 1. What a field means depends on Kind; 0 is "not said".
type Event struct {
	Time     uint64 // ns, one clock for all CPUs
	V        uint64 // virtual time
	Deadline uint64 // virtual time
	NowV     uint64 // V of the queue as the scheduler computed it
	Span     uint64 // ns; at Settle a sum of weights, at Preempt a TID
	TID      uint32
	Weight   uint32 // 1024 is nice 0
	Request  uint32 // what the task asks for at a time, ns
	CPU      uint16 // whose queue this is about
	Tier     uint8  // 1 fair, 2 background
	Kind     Kind
	How      uint16
	Writer   uint16 // the CPU that wrote it
	Slice    uint32 // the task's slice, ns, of which a request may be a part
}

// Record is what one run of the scheduler wrote: for each CPU what it wrote, in
// its order. A part with Capacity events is full: it ends too early.
type Record struct {
	Capacity uint32
	Parts    [][]Event
}

// Read reads a record file. It refuses a file that ends early or goes on after
// its end, counts and fields out of range and more than 32 million events; the
// error names the CPU and the event. It takes memory for what is there, not
// for what a count promises.
func Read(r io.Reader) (*Record, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	rec, err := read(in)
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("bytes after the last CPU's part")
		}
		return nil, fmt.Errorf("read record: %w", err)
	}
	return rec, nil
}

func read(in io.Reader) (*Record, error) {
	var head [headBytes]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, fmt.Errorf("header: %w", cut(err))
	}
	if string(head[:8]) != magic {
		return nil, fmt.Errorf("header begins with %q: must be %q", head[:8], magic)
	}
	cpus := binary.LittleEndian.Uint32(head[8:])
	rec := &Record{Capacity: binary.LittleEndian.Uint32(head[12:])}
	if cpus < 1 || cpus > maxCPUs {
		return nil, fmt.Errorf("header: %d CPUs: must be 1..%d", cpus, maxCPUs)
	}
	total := 0
	for cpu := range cpus {
		part, err := readPart(in, rec.Capacity, uint16(cpus), uint16(cpu), maxEvents-total)
		if err != nil {
			return nil, fmt.Errorf("CPU %d: %w", cpu, err)
		}
		total += len(part)
		rec.Parts = append(rec.Parts, part)
	}
	return rec, nil
}

func readPart(in io.Reader, capacity uint32, cpus, cpu uint16, room int) ([]Event, error) {
	var head [partBytes]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, fmt.Errorf("count: %w", cut(err))
	}
	count := binary.LittleEndian.Uint32(head[:])
	if count > capacity || int64(count) > int64(room) {
		return nil, fmt.Errorf("%d events: at most %d fit a part and %d the rest of a file", count, capacity, room)
	}
	part := make([]Event, 0, min(count, 1<<14))
	var data [eventBytes]byte
	for i := range count {
		if _, err := io.ReadFull(in, data[:]); err != nil {
			return nil, fmt.Errorf("event %d of %d: %w", i, count, cut(err))
		}
		e := decode(&data)
		if err := e.check(cpus, cpu); err != nil {
			return nil, fmt.Errorf("event %d of %d: %w", i, count, err)
		}
		part = append(part, e)
	}
	return part, nil
}

// cut says in our words that a file ends too early.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file ends here")
	}
	return err
}

func decode(data *[eventBytes]byte) Event {
	le := binary.LittleEndian
	return Event{
		Time: le.Uint64(data[0:]), V: le.Uint64(data[8:]), Deadline: le.Uint64(data[16:]),
		NowV: le.Uint64(data[24:]), Span: le.Uint64(data[32:]),
		TID: le.Uint32(data[40:]), Weight: le.Uint32(data[44:]), Request: le.Uint32(data[48:]),
		CPU: le.Uint16(data[52:]), Tier: data[54], Kind: Kind(data[55]),
		How: le.Uint16(data[56:]), Writer: le.Uint16(data[58:]), Slice: le.Uint32(data[60:]),
	}
}

func (e *Event) encode(data *[eventBytes]byte) {
	le := binary.LittleEndian
	*data = [eventBytes]byte{54: e.Tier, 55: uint8(e.Kind)}
	for i, word := range []uint64{e.Time, e.V, e.Deadline, e.NowV, e.Span} {
		le.PutUint64(data[8*i:], word)
	}
	for i, word := range []uint32{e.TID, e.Weight, e.Request} {
		le.PutUint32(data[40+4*i:], word)
	}
	le.PutUint16(data[52:], e.CPU)
	le.PutUint16(data[56:], e.How)
	le.PutUint16(data[58:], e.Writer)
	le.PutUint32(data[60:], e.Slice)
}

func (e *Event) check(cpus, writer uint16) error {
	switch {
	case e.Kind < Join || e.Kind > Pull:
		return fmt.Errorf("kind %d: must be %d..%d", e.Kind, Join, Pull)
	case e.Tier < 1 || e.Tier > 2:
		return fmt.Errorf("tier %d: must be 1 or 2", e.Tier)
	case e.CPU >= cpus:
		return fmt.Errorf("cpu %d: must be less than %d", e.CPU, cpus)
	case e.Writer != writer:
		return fmt.Errorf("written by CPU %d: must be %d, whose part this is", e.Writer, writer)
	case e.Kind == Pick && (e.How < Dispatch || e.How > Come):
		return fmt.Errorf("pick of kind %d: must be %d..%d", e.How, Dispatch, Come)
	}
	return nil
}

// Write writes what Read reads. It refuses what Read would refuse.
func Write(w io.Writer, rec *Record) error {
	if len(rec.Parts) < 1 || len(rec.Parts) > maxCPUs {
		return fmt.Errorf("write record: %d CPUs: must be 1..%d", len(rec.Parts), maxCPUs)
	}
	out := bufio.NewWriter(w)
	le := binary.LittleEndian
	head := le.AppendUint32([]byte(magic), uint32(len(rec.Parts)))
	out.Write(le.AppendUint32(head, rec.Capacity)) // a fault stays until Flush
	room := maxEvents
	for cpu, part := range rec.Parts {
		if room -= len(part); room < 0 || uint64(len(part)) > uint64(rec.Capacity) {
			return fmt.Errorf("write record: CPU %d: %d events: at most %d fit", cpu, len(part), rec.Capacity)
		}
		out.Write(le.AppendUint64(nil, uint64(len(part))))
		var data [eventBytes]byte
		for i := range part {
			if err := part[i].check(uint16(len(rec.Parts)), uint16(cpu)); err != nil {
				return fmt.Errorf("write record: CPU %d: event %d: %w", cpu, i, err)
			}
			part[i].encode(&data)
			out.Write(data[:])
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}
