package oracle

// limit is how much lag a task may take along, virtual: its request and a Tick.
func limit(weight, request uint32) int64 {
	return int64(virtual(uint64(request)+Tick, weight))
}

// scale is a*num/den, cut to 63 bits; den must not be 0.
func scale(a int64, num, den uint64) int64 {
	return product(a, num).over(den)
}

// lag is what a task may claim when it joins: between low and high, of which
// exact is by the model's V; round is how far rounding can move it. Where a claim
// may lapse in that moment or a moment later, other is what it is then.
type lag struct {
	exact, low, high int64
	round            uint64
	lapses           bool
	other            int64
}

// lagOf is the lag that a task brings to a queue. ghost is the one it left
// there, or nil; now is V with that ghost.
func (r *replay) lagOf(t *task, q *queue, e *Event, ghost *client, now uint64) lag {
	if !t.seen || e.How&JoinNew != 0 || t.from.tier != q.tier {
		return lag{}
	}
	l := lag{exact: t.lag, low: t.low, high: t.high, round: 1}
	if t.slept {
		r.lapse(&l, t, q, e)
	}
	if t.slept && t.from == q {
		switch {
		case ghost != nil && r.grew(t, e, ghost, now) > 0:
			// The debt that it fell asleep with; by a V that is off by rounding its debt
			// may not have grown, and then the one of now is as good.
			l.round += uint64(r.roundOf(q))
		case ghost != nil:
			owes := min(apart(now, ghost.v), 0)
			l = lag{exact: owes, low: owes, high: owes, round: 1}
		default:
			l.exact, l.low, l.high = max(l.exact, 0), max(l.low, 0), max(l.high, 0)
		}
	}
	if t.weight != e.Weight {
		old, now := uint64(t.weight), uint64(e.Weight)
		l.exact, l.low, l.high = scale(l.exact, old, now), scale(l.low, old, now), scale(l.high, old, now)
		l.other, l.round = scale(l.other, old, now), 2+old/now
	}
	return l
}

// empties says whether the queue of an event has nobody any more, or had nobody: what
// sleepers owe there is forgiven then, and what they are owed ends with it.
func (e *Event) empties() bool {
	return e.Kind == Join && e.How&JoinEmpty != 0 || e.Kind == Leave && e.How&LeaveLast != 0
}

// emptiedSoon says whether another CPU than e's empties the queue around e.
func (r *replay) emptiedSoon(q *queue, e *Event) bool {
	return r.near(e, func(o *Event) bool { return o.empties() && o.CPU == q.cpu && o.Tier == q.tier })
}

// lapse ends the claim of a task that slept if the queue that owes it has been emptied
// since. Another CPU may empty it while this one looks, unless the task joins that queue,
// for which there is a lock.
func (r *replay) lapse(l *lag, t *task, q *queue, e *Event) {
	l.lapses = t.from != q && r.emptiedSoon(t.from, e)
	l.other = min(l.exact, 0)
	if t.from.emptied != t.emptied {
		l.other = l.exact
		l.exact, l.low, l.high = min(l.exact, 0), min(l.low, 0), min(l.high, 0)
	}
}

// placed is where a lag places a task among weight: joining moves V by lag/W, so
// that the lag is made larger first.
func placed(now uint64, lag int64, weight uint64, own uint32) uint64 {
	return now - uint64(scale(lag, weight+uint64(own), weight)) - 1
}
