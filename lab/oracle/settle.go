package oracle

import "math/bits"

// maxDoubt bounds how many departures of the last moment are tried in every
// combination.
const maxDoubt = 12

// doubt is a departure that a settlement may contain or not: c has been
// written, e not yet.
type doubt struct {
	c      *client
	e      *Event
	weight uint32
	v      uint64
}

// recent says whether all who left from afar did so a moment ago.
func (r *replay) recent(q *queue, e *Event) bool {
	for _, c := range q.gone {
		if e.Time > c.left && e.Time-c.left > Late {
			return false
		}
	}
	return true
}

// settle holds the sums that are taken out against those who left. Departures
// of the last moment, before or after, may be among them or not.
func (r *replay) settle(q *queue, e *Event) {
	var weight, sum uint64
	for _, c := range q.gone {
		weight += uint64(c.weight)
		sum += uint64(c.weight) * c.v
	}
	if weight == e.Span && sum == e.V {
		for _, c := range q.gone {
			q.discount(c)
		}
		q.gone = nil
		return
	}
	doubts := r.doubts(q, e)
	for set := range 1 << len(doubts) {
		w, s := weight, sum
		for i, d := range doubts {
			in, its := set>>i&1 == 1, uint64(d.weight)
			if d.c != nil && in {
				w, s = w-its, s-its*d.v // written, not settled
			} else if d.c == nil && in {
				w, s = w+its, s+its*d.v // settled, not written
			}
		}
		if w == e.Span && s == e.V {
			r.fault(BadSettle, e, true, "%d of %d departures of the last moment were ordered otherwise", bits.OnesCount(uint(set)), len(doubts))
			q.settleDoubts(doubts, set)
			return
		}
	}
	r.fault(BadSettle, e, false, "weight %d, sum %d; the model has %d tasks of weight %d, sum %d", e.Span, e.V, len(q.gone), weight, sum)
	q.settleDoubts(nil, 0)
}

func (q *queue) settleDoubts(doubts []doubt, set int) {
	stays := map[*client]bool{}
	for i, d := range doubts {
		if set>>i&1 == 1 {
			if d.c != nil {
				stays[d.c] = true
			} else {
				q.early[d.e] = true
			}
		}
	}
	gone := q.gone
	q.gone = nil
	for _, c := range gone {
		if stays[c] {
			q.gone = append(q.gone, c)
			continue
		}
		q.discount(c)
	}
}

func (r *replay) doubts(q *queue, e *Event) (doubts []doubt) {
	for _, c := range q.gone {
		if (e.Time <= c.left || e.Time-c.left <= Late) && len(doubts) < maxDoubt {
			doubts = append(doubts, doubt{c: c, weight: c.weight, v: c.v})
		}
	}
	r.soon(e, func(o *Event) bool {
		c := q.members[o.TID]
		if o.Kind == Leave && o.How&LeaveAfar != 0 && c != nil && o.is(c.tid, q) && !q.early[o] {
			doubts = append(doubts, doubt{e: o, weight: c.weight, v: o.V})
		}
		return len(doubts) >= maxDoubt
	})
	return doubts
}

// roundOf is how far rounding can move a queue's V, in units.
func (r *replay) roundOf(q *queue) int64 {
	round := int64(roundV)
	for _, c := range q.clients {
		round += int64(c.aheads)
	}
	return round
}
