package latency

import (
	"errors"
	"fmt"

	"rota/bench/binder"
	"rota/bench/level"
)

// What a call showed, as bits.
const (
	// otherPriority: the server ran at another real-time priority than the caller.
	otherPriority = 1 << iota
	// otherCPU: the server ran on another CPU than the caller had been on.
	otherCPU
	// atMaxPriority: the server ran at the highest real-time priority.
	atMaxPriority
	// moreIoctls: the call took more than one ioctl.
	moreIoctls
)

// Series is the calls of one kind of caller, in their order: everything that
// the figures are made of.
type Series struct {
	Spans      []int64 // ns, the whole call
	Deliveries []int64 // ns, until the server had it
	Seen       []byte  // bits of each call
}

func (s *Series) grow(n int) {
	s.Spans, s.Deliveries, s.Seen = make([]int64, 0, n), make([]int64, 0, n), make([]byte, 0, n)
}

func (s *Series) add(t *binder.Thread, a reply, l level.Level, cpu uint32) {
	var seen byte
	if a.level.Priority != l.Priority {
		seen |= otherPriority
	}
	if a.cpu != cpu {
		seen |= otherCPU
	}
	if a.level.Priority == level.MaxPriority {
		seen |= atMaxPriority
	}
	if t.Exchanges != 1 {
		seen |= moreIoctls
	}
	s.Spans = append(s.Spans, t.Span.Nanoseconds())
	s.Deliveries = append(s.Deliveries, a.received-t.Began.Nanoseconds())
	s.Seen = append(s.Seen, seen)
}

// count is how many calls show all of these bits.
func (s Series) count(bits byte) int {
	n := 0
	for _, seen := range s.Seen {
		if seen&bits == bits {
			n++
		}
	}
	return n
}

// and is both series as one.
func (s Series) and(o Series) Series {
	return Series{
		append(s.Spans[:len(s.Spans):len(s.Spans)], o.Spans...),
		append(s.Deliveries[:len(s.Deliveries):len(s.Deliveries)], o.Deliveries...),
		append(s.Seen[:len(s.Seen):len(s.Seen)], o.Seen...),
	}
}

// NiceProbe is what became of calls at other nice values.
type NiceProbe struct {
	Calls, Followed int
	Fault           string // why they could not be made
}

// Samples is what one client brings home.
type Samples struct {
	Other, Fifo Series
	Nice        NiceProbe
	Missed      bool // a deadline was missed and tracing stopped
}

// check holds a client's samples against what it was asked for.
func (s Samples) check(o Options) error {
	for name, series := range map[string]Series{"other": s.Other, "fifo": s.Fifo} {
		n := len(series.Spans)
		if n != len(series.Deliveries) || n != len(series.Seen) || n > o.Iterations || n < o.Iterations && !s.Missed {
			return fmt.Errorf("client: its %s calls: %d times, %d deliveries, %d notes; want %d of each",
				name, n, len(series.Deliveries), len(series.Seen), o.Iterations)
		}
		for _, ns := range series.Spans {
			if ns < 0 {
				return errors.New("client: a call that ended before it began")
			}
		}
	}
	return nil
}
