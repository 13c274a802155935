package oracle

import (
	"math"
	"math/bits"
)

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

// release holds the end of all ghosts: together they owe nothing any more, and
// V does not go back without them.
func (r *replay) release(q *queue, e *Event) {
	if len(q.gone) > 0 {
		raced := r.recent(q, e)
		r.fault(BadSettle, e, raced, "ghosts are let go, and %d who left were never settled", len(q.gone))
		if !raced {
			q.settleDoubts(nil, 0)
		}
	}
	with := q.now()
	var weight uint64
	var owed wide // sum of weight * (V - v)
	for g := range q.ghosts {
		weight += uint64(g.weight)
		owed = owed.plus(product(apart(with, g.v), uint64(g.weight)))
	}
	if said := uint64(e.Weight); said != min(weight, math.MaxUint32) {
		r.fault(BadRelease, e, r.foreign(e, q), "ghosts of weight %d; the model has %d of weight %d", said, len(q.ghosts), weight)
	} else if weight > 0 && owed.over(weight) < -r.roundOf(q) {
		r.fault(BadRelease, e, r.foreign(e, q), "%d ghosts, who are %d units after V in the mean", len(q.ghosts), -owed.over(weight))
	}
	for g := range q.ghosts {
		q.banish(g)
	}
	if e.NowV == 0 {
		return
	}
	if q.weight == 0 {
		q.still = e.NowV
		return
	}
	r.checkV(q, e, with)
}

// roundOf is how far rounding can move a queue's V, in units.
func (r *replay) roundOf(q *queue) int64 {
	round := int64(roundV)
	for _, c := range q.clients {
		round += int64(c.aheads)
	}
	return round
}
