package sched

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/cilium/ebpf/ringbuf"
)

// closing tells the reader whether an exit was our own doing.
type closing struct{ flag atomic.Bool }

// The kinds of exit that the kernel knows (enum scx_exit_kind), and the bit
// of its code that asks to load again (SCX_ECODE_ACT_RESTART).
const (
	exitUnreg     = 64
	exitUnregBPF  = 65
	ecodeRestart  = 1 << 48
	exitErrorKind = 1024
)

// Events delivers what happens to tasks; closed by Close and by the end of
// the scheduler.
func (s *Scheduler) Events() <-chan Event { return s.events }

// Exit delivers one value when the kernel has ended the scheduler.
func (s *Scheduler) Exit() <-chan ExitInfo { return s.exit }

// read passes records of the ring buffer on until it is closed or the
// scheduler has ended. A slow receiver loses events, never time of the
// kernel: the ring then overflows, which is reported as EventLost.
func (s *Scheduler) read() {
	defer close(s.done)
	defer close(s.events)
	var record ringbuf.Record
	var lost uint64
	for {
		err := s.reader.ReadInto(&record)
		if errors.Is(err, ringbuf.ErrClosed) {
			return
		}
		if err != nil {
			s.log.Warn("read events", "error", err)
			return
		}
		event, err := parseEvent(record.RawSample)
		if err != nil {
			s.log.Warn("read events", "error", err)
			continue
		}
		if event.Kind == eventExit {
			s.exit <- s.readExit()
			return
		}
		s.events <- event
		var now uint64
		if err := s.coll.Variables["events_lost"].Get(&now); err == nil && now != lost {
			lost = now
			// What was lost may have been the word that it has ended.
			if exit := s.readExit(); exit.Kind != 0 {
				s.exit <- exit
				return
			}
			s.events <- Event{Kind: EventLost}
		}
	}
}

// parseEvent decodes one record of the ring buffer.
func parseEvent(raw []byte) (Event, error) {
	var record rotaEvent
	if len(raw) < binary.Size(record) {
		return Event{}, fmt.Errorf("event of %d bytes: want %d", len(raw), binary.Size(record))
	}
	if _, err := binary.Decode(raw, binary.NativeEndian, &record); err != nil {
		return Event{}, fmt.Errorf("event: %w", err)
	}
	return Event{
		Kind: EventKind(record.Kind),
		Task: TaskID{TID: record.Tid, Start: record.StartNs},
		TGID: record.Tgid, Asked: record.Asked,
	}, nil
}

// readExit puts the kernel's exit record into words.
func (s *Scheduler) readExit() ExitInfo {
	var record rotaExit
	if err := s.coll.Variables["exit_record"].Get(&record); err != nil {
		return ExitInfo{Reason: "unknown: " + err.Error()}
	}
	return exitInfo(&record, s.asked.flag.Load())
}

// exitInfo decodes the kernel's exit record; asked tells whether we have
// begun to close.
func exitInfo(record *rotaExit, asked bool) ExitInfo {
	return ExitInfo{
		Kind:    record.Kind,
		Code:    record.Code,
		Reason:  cString(record.Reason[:]),
		Msg:     cString(record.Msg[:]),
		Dump:    cString(record.Dump[:]),
		Asked:   asked && (record.Kind == exitUnreg || record.Kind == exitUnregBPF),
		Restart: record.Code&ecodeRestart != 0 && record.Kind < exitErrorKind,
	}
}

func cString(raw []byte) string {
	text, _, _ := bytes.Cut(raw, []byte{0})
	return string(bytes.ToValidUTF8(text, []byte("?")))
}

// Detach gives every task back to the kernel's own scheduler and leaves what was
// counted and recorded to be read.
func (s *Scheduler) Detach() {
	s.asked.flag.Store(true)
	s.unlink()
}

// Close detaches the scheduler: the kernel's own scheduler has every task
// when it returns.
func (s *Scheduler) Close() error {
	s.Detach()
	s.release()
	<-s.done
	return nil
}
