package oracle

// pastEvents is how many changes of a queue are remembered to explain a V.
const pastEvents = 16

// past is what a queue's V was, to see whether an event came late.
type past struct {
	n    int
	ring [pastEvents]change
	// sum and weight of the queue after the last event
	sum    wide
	weight uint64
}

type change struct {
	time   uint64
	now    uint64 // V after it
	writer uint16
	sum    wide // what it did to the sums
	weight uint64
}

func (p *past) remember(e *Event, q *queue) {
	whole := q.sum.plus(q.fix)
	p.ring[p.n%pastEvents] = change{e.Time, q.now(), e.Writer, whole.plus(p.sum.minus()), q.weight - p.weight}
	p.n++
	p.sum, p.weight = whole, q.weight
}

// last calls visit for the changes that are at most Late old, the latest first,
// until it returns true, and says whether it did.
func (p *past) last(e *Event, visit func(c *change) bool) bool {
	for i := 1; i <= min(p.n, pastEvents); i++ {
		c := &p.ring[(p.n-i)%pastEvents]
		if e.Time > c.time && e.Time-c.time > Late {
			return false
		}
		if visit(c) {
			return true
		}
	}
	return false
}

// maxNear bounds how many events around one are looked at.
const maxNear = 512

// near says whether an event that another CPU wrote lies within Late of e and
// fits.
func (r *replay) near(e *Event, fits func(o *Event) bool) bool { return r.within(Late, e, fits) }

// within is near for another distance, in ns.
func (r *replay) within(distance uint64, e *Event, fits func(o *Event) bool) bool {
	for _, step := range []int{-1, 1} {
		for i, n := r.at+step, 0; i >= 0 && i < len(r.events) && n < maxNear; i, n = i+step, n+1 {
			o := r.events[i]
			if o.Time > e.Time && o.Time-e.Time > distance || e.Time > o.Time && e.Time-o.Time > distance {
				break
			}
			if o.Writer != e.Writer && fits(o) {
				return true
			}
		}
	}
	return false
}

// soon is the first of the events that follow e within Late that fits, of
// whichever CPU; nil if there is none.
func (r *replay) soon(e *Event, fits func(o *Event) bool) *Event {
	for i, n := r.at+1, 0; i < len(r.events) && n < maxNear; i, n = i+1, n+1 {
		o := r.events[i]
		if o.Time > e.Time && o.Time-e.Time > Late {
			return nil
		}
		if fits(o) {
			return o
		}
	}
	return nil
}

// foreign says whether another CPU than e's wrote about this queue around e.
func (r *replay) foreign(e *Event, q *queue) bool {
	return r.near(e, func(o *Event) bool { return o.CPU == q.cpu && o.Tier == q.tier })
}

// touched says whether another CPU than e's wrote about this task around e what
// changes whether, where and with which right it competes.
func (r *replay) touched(e *Event, tid uint32) bool {
	return r.near(e, func(o *Event) bool { return o.TID == tid && o.Kind != Pick && o.Kind != Settle && o.Kind != Release })
}

// checkV holds the V that the scheduler computed against the model's, or one of
// others that would be right as well, and returns the V to judge by: the one
// that was recorded. Where that is wrong, nothing explains it, and the next one
// is wrong in the same way, the queue takes it over.
func (r *replay) checkV(q *queue, e *Event, others ...uint64) uint64 {
	now := q.now()
	if e.NowV == 0 || q.weight == 0 {
		return now
	}
	r.report.VChecks++
	round := uint64(r.roundOf(q))
	for _, right := range append(others, now) {
		if far(right, e.NowV) <= round {
			q.suspect = wide{}
			return e.NowV
		}
	}
	if q.suspect != (wide{}) && far(q.suspected(), e.NowV) <= 2*round {
		q.believe() // the same fault as before
		return e.NowV
	}
	if r.unsettled(q, e, round) {
		return e.NowV
	}
	// From afar V is read without the lock, its two sums a moment apart.
	afar := e.Kind == Leave && e.How&LeaveAfar != 0
	raced := afar || r.explained(q, e, round)
	r.fault(WrongV, e, raced, "V %d, the model has %d (%+d)%s", e.NowV, now, apart(now, e.NowV), r.hint(raced, e, q))
	if !raced {
		q.suspectV(e.NowV)
	}
	return e.NowV
}

// unsettled says whether V is right without those who left from afar first, whose
// settlement was not written then, and takes them out.
func (r *replay) unsettled(q *queue, e *Event, round uint64) bool {
	var out wide
	weight := uint64(0)
	for i, c := range q.gone {
		out, weight = out.plus(q.share(c.at(), c.weight)), weight+uint64(c.weight)
		if without, some := q.without(out, weight); !some || far(without, e.NowV) > round {
			continue
		}
		raced := e.Time <= c.left || e.Time-c.left <= Late
		r.fault(BadSettle, e, raced, "V %d is without %d tasks of weight %d that left, whose settlement is missing", e.NowV, i+1, weight)
		if !raced {
			for _, c := range q.gone[:i+1] {
				q.discount(c)
			}
			q.gone = q.gone[i+1:]
		}
		return true
	}
	return false
}

// hint says that an event of another CPU is near, though it explains nothing.
func (r *replay) hint(raced bool, e *Event, q *queue) string {
	if !raced && r.foreign(e, q) {
		return "; another CPU wrote about the queue within the time, but that does not explain it"
	}
	return ""
}

// explained says whether the V of an event is what the model has just before,
// just after, or without what other CPUs wrote just now.
func (r *replay) explained(q *queue, e *Event, round uint64) bool {
	if !r.foreign(e, q) {
		return false
	}
	var sum wide
	var weight uint64
	return q.past.last(e, func(c *change) bool {
		if far(c.now, e.NowV) <= round {
			return true
		}
		if c.writer == e.Writer {
			return false
		}
		sum, weight = sum.plus(c.sum), weight+c.weight
		without, some := q.without(sum, weight)
		return some && far(without, e.NowV) <= round
	}) || r.willBe(q, e, round)
}

// willBe says whether V becomes what e has by the events that follow within
// Late.
func (r *replay) willBe(q *queue, e *Event, round uint64) bool {
	return r.ahead(q, e, func(now uint64) bool { return far(now, e.NowV) <= round })
}

// ahead calls visit with what V becomes by each of the events that follow e
// within Late, until it returns true, and says whether it did.
func (r *replay) ahead(q *queue, e *Event, visit func(now uint64) bool) bool {
	sum, weight := q.sum.plus(q.fix), q.weight
	without := func(c *client) {
		sum, weight = sum.plus(q.share(c.at(), c.weight).minus()), weight-uint64(c.weight)
	}
	return r.soon(e, func(o *Event) bool {
		if o.CPU != q.cpu || o.Tier != q.tier {
			return false
		}
		c := q.members[o.TID]
		switch {
		case o.Kind == Join && c == nil:
			sum, weight = sum.plus(q.share(o.V, o.Weight)), weight+uint64(o.Weight)
		case o.Kind == Leave && c != nil && o.How&(LeaveAfar|LeaveGhost) == 0:
			without(c)
		case o.Kind == Charge && c != nil:
			sum = sum.plus(product(apart(o.V, c.at()), uint64(c.weight)))
		case o.Kind == Ahead && c != nil:
			sum = sum.plus(product(int64(virtual(o.Span, c.weight)), uint64(c.weight)))
		case o.Kind == Settle:
			for _, c := range q.gone {
				without(c)
			}
		case o.Kind == Release:
			if g, _ := q.ghostLike(o); g != nil {
				without(g)
			}
		default:
			return false
		}
		// Taken out twice would be less than nobody.
		return int64(weight) > 0 && visit(q.base+uint64(sum.over(weight)))
	}) != nil
}
