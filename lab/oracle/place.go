package oracle

import "math"

func (r *replay) join(q *queue, e *Event) {
	t := r.task(e.TID)
	if e.Weight == 0 {
		r.fault(BadPlacement, e, false, "weight 0")
		whole := *e
		whole.Weight = 1
		e = &whole
	}
	if t.in != nil {
		r.joinTwice(t, e)
	}
	ghost, with := r.ghost(t, q, e), q.now()
	r.emptyBit(q, e)
	lag := r.lagOf(t, q, e, ghost, with)
	switch {
	case e.How&JoinEmpty != 0 && len(q.clients) == 0:
		q.disperse()
	case ghost != nil:
		q.banish(ghost)
	}
	switch {
	case e.How&JoinGhost != 0:
		r.takeBack(t, e, ghost, with)
	case q.weight == 0 || e.How&JoinEmpty != 0:
		// V stands still while nobody is there: any v will do.
	default:
		now := r.checkV(q, e, with)
		if ghost != nil {
			now = q.now() // the recorded one may be with the ghost
		}
		if r.mayLeave(t, q, e, ghost, with) {
			r.checkPlace(q, e, now, lag)
		}
	}
	c := &client{tid: e.TID, weight: e.Weight, request: e.Request, v: e.V, deadline: e.Deadline}
	if e.How&JoinGhost == 0 {
		r.checkDeadline(q, t, c, e)
	}
	q.join(c)
	c.bounds = bounds{down: q.jumps.down, both: q.jumps.up + q.jumps.down, brought: q.lag(c, q.paid())}
	q.follow()
	*t = task{in: q, pickedOn: t.pickedOn, used: t.used, uses: t.uses}
	if left := q.left[r.events[r.at]]; left != nil {
		delete(q.left, r.events[r.at])
		r.fault(Unknown, left, true, "it leaves before it joins")
		r.leave(q, left)
	}
}

// joinTwice takes a task out of the queue where it still is: its departure comes
// late, or is missing.
func (r *replay) joinTwice(t *task, e *Event) {
	from := t.in
	c := from.members[e.TID]
	late := r.soon(e, func(o *Event) bool { return o.Kind == Leave && o.is(e.TID, from) && o.Writer != e.Writer })
	if late != nil {
		from.early[late] = true
	}
	r.fault(Unknown, e, late != nil, "it joins, but did not leave the queue of CPU %d, tier %d", from.cpu, from.tier)
	r.depart(t, from, c, e, 0, from.now(), c.v)
	t.low, t.high = math.MinInt64, math.MaxInt64 // not known
	from.leave(c)
}

// emptyBit holds whether somebody was there, ghosts left out, against what the record
// says.
func (r *replay) emptyBit(q *queue, e *Event) {
	empty := len(q.clients) == 0
	if e.How&JoinEmpty != 0 && empty && len(q.gone) > 0 {
		raced := r.recent(q, e)
		r.fault(BadSettle, e, raced, "the queue is empty, and %d who left it were never settled", len(q.gone))
		if !raced {
			q.clear()
		}
	}
	if said := e.How&JoinEmpty != 0; said != empty && (said || len(q.gone) == 0) {
		r.fault(BadPlacement, e, r.foreign(e, q), "the queue was empty: %t; the model has %d tasks and %d ghosts", said, len(q.clients), len(q.ghosts))
	}
}

// checkPlace holds v against V - lag*(W+w)/W - 1.
func (r *replay) checkPlace(q *queue, e *Event, now uint64, l lag) {
	right := placed(now, l.exact, q.weight, e.Weight)
	round := uint64(0) // without lag there is nothing to round
	if now != e.NowV {
		round = roundV
	}
	if l.exact != 0 {
		round += 1 + uint64(scale(int64(l.round), q.weight+uint64(e.Weight), q.weight))
	}
	if far(right, e.V) <= round {
		return
	}
	first, last := placed(now, l.high, q.weight, e.Weight), placed(now, l.low, q.weight, e.Weight)
	raced := l.low == math.MinInt64 || apart(e.V, first) >= -int64(round) && apart(last, e.V) >= -int64(round) && l.low != l.high ||
		l.lapses && far(placed(now, l.other, q.weight, e.Weight), e.V) <= round
	r.fault(BadPlacement, e, raced, "v %d, must be %d (%+d): V %d, lag %d, weight %d among %d", e.V, right,
		apart(right, e.V), now, l.exact, e.Weight, q.weight)
}

// checkDeadline holds the deadline of a task that joins: a request after its v,
// half of one for a new task, what was left for one that moved.
func (r *replay) checkDeadline(q *queue, t *task, c *client, e *Event) {
	whole := c.requestVT()
	rest, round := t.restAt(q, c.weight)
	// At the limits rounding decides, and either is right.
	if near := magnitude(rest - int64(whole)); near <= round && round > 0 {
		round += near
	}
	var right uint64
	switch {
	case e.How&JoinNew != 0:
		right, round = whole/2, 1
	case rest >= 1 && rest <= int64(whole):
		right = uint64(rest)
	default:
		right = r.waking(t, c, e)
	}
	if got := e.Deadline - e.V; far(got, right) > round {
		r.fault(BadPlacement, e, false, "deadline %d after v, must be %d: a request is %d", int64(got), right, whole)
	}
}

// restAt is what was left of the request of a task that moved, at its weight now,
// and how far rounding can move it; 0 for one that slept or is new here.
func (t *task) restAt(q *queue, weight uint32) (rest int64, round uint64) {
	if !t.seen || t.slept || t.from.tier != q.tier {
		return 0, 0
	}
	if t.weight == weight {
		return t.rest, 0
	}
	return scale(t.rest, uint64(t.weight), uint64(weight)), 2 + uint64(t.weight/weight)
}

// waking is how far the deadline of a task that wakes is ahead: a whole request, or
// where the switch is on what it is owed and a brief one, if that is less.
func (r *replay) waking(t *task, c *client, e *Event) uint64 {
	brief, owed := r.asks(t, e.Request, e.Slice), uint64(0)
	if e.How&JoinEmpty == 0 {
		owed = uint64(max(0, apart(e.NowV, e.V)))
	}
	if owed+virtual(brief, c.weight) >= c.requestVT() {
		brief = 0
	}
	if !saysBrief(e, brief) {
		r.fault(BadPlacement, e, false, "it asks for %d ns, must be %d (0: a slice): it uses %d between two sleeps", e.Span, brief, t.uses)
		brief = e.Span
	}
	if brief == 0 {
		return c.requestVT()
	}
	return owed + virtual(brief, c.weight)
}

// following is how long the request is, virtual, that follows one that was used up: as for one
// that wakes while all that the task has used since it slept is no more than BriefPart of its
// slice, else a whole one.
func (r *replay) following(q *queue, c *client, e *Event) uint64 {
	t := r.task(c.tid)
	brief := r.asks(t, c.request, e.Slice)
	if brief == 0 || t.used > uint64(e.Slice)/BriefPart {
		return c.requestVT()
	}
	owed := uint64(max(0, apart(r.checkV(q, e), c.v)))
	return min(owed+virtual(brief, c.weight), c.requestVT())
}

// asks is the brief request of a task, in ns: twice what it lately used between two
// sleeps, at least Brief; 0 where that is more than BriefPart of its slice, no less than
// what it asks for else, or the switch is off.
func (r *replay) asks(t *task, request, slice uint32) uint64 {
	brief := max(2*t.uses, Brief)
	if !r.brief || t.uses == 0 || brief > uint64(slice)/BriefPart || brief >= uint64(request) {
		return 0
	}
	return brief
}

// saysBrief says whether the event tells of this brief request, 0: of none.
func saysBrief(e *Event, brief uint64) bool {
	return e.Span == brief && (e.How&JoinBrief != 0) == (brief != 0)
}

// sleeps notes what a task has used since it slept last.
func (t *task) sleeps() {
	if t.uses == 0 {
		t.uses = t.used
	} else {
		t.uses = (3*t.uses + t.used) / 4
	}
	t.used = 0
}

// depart notes what a task takes along.
func (r *replay) depart(t *task, q *queue, c *client, e *Event, how uint16, now, v uint64) {
	most := limit(c.weight, c.request)
	if how&LeaveLast != 0 {
		now = v // alone: there is nobody to owe or to be owed
	}
	clamp := func(now uint64) int64 { return max(-most, min(most, apart(now, v))) }
	*t = task{seen: true, from: q, slept: how&LeaveSleep != 0, weight: c.weight, lag: clamp(now), rest: apart(c.deadline, v),
		emptied: q.emptied, used: t.used, uses: t.uses}
	if t.slept {
		t.sleeps()
	}
	t.low, t.high = t.lag, t.lag
	if how&LeaveAfar == 0 {
		return
	}
	// Another CPU may have read V as it was a moment ago, or what it read was
	// not yet written.
	widen := func(now uint64) bool {
		t.low, t.high = min(t.low, clamp(now)), max(t.high, clamp(now))
		return false
	}
	q.past.last(e, func(change *change) bool { return widen(change.now) })
	r.ahead(q, e, widen)
}

func (r *replay) leave(q *queue, e *Event) {
	c := q.members[e.TID]
	if c == nil && q.early[e] {
		delete(q.early, e)
		return
	}
	if c == nil {
		// That it came is written later than that it went.
		if came := r.soon(e, func(o *Event) bool { return o.Kind == Join && o.is(e.TID, q) && o.Writer != e.Writer }); came != nil {
			q.left[came] = e
			return
		}
	}
	if g := r.task(e.TID).ghostIn(q); c == nil && g != nil {
		r.fault(BadLeave, e, false, "it is a ghost, which only RELEASE or JOIN ends")
		q.banish(g)
		return
	}
	if c = r.member(q, e); c == nil {
		return
	}
	r.reweigh(q, c, e)
	now := r.checkV(q, e, q.roomFor(e)...)
	if e.How&LeaveGhost == 0 && c.v != e.V {
		soon := r.near(e, func(o *Event) bool { return o.is(e.TID, q) && o.V == e.V })
		r.fault(BadCharge, e, soon, "it leaves at v %d; the model has %d (%+d)", e.V, c.v, apart(c.v, e.V))
		if r.correct(q, c, e.V); soon {
			q.move(c, e.V) // what was charged in advance is in the charge that comes late
		}
		now = q.now()
	}
	r.checkGhost(q, c, e, now)
	r.depart(r.task(e.TID), q, c, e, e.How, now, e.V)
	switch {
	case e.How&LeaveGhost != 0:
		q.haunt(c, e.V)
		r.task(e.TID).ghost = c
	case e.How&LeaveAfar != 0 && q.early[e]:
		delete(q.early, e)
		q.leave(c)
	case e.How&LeaveAfar != 0:
		c.left = e.Time
		q.part(c)
		q.gone = append(q.gone, c)
	default:
		q.leave(c)
	}
	r.lastBit(q, e)
}

// lastBit holds whether the queue is empty now against what the record says.
func (r *replay) lastBit(q *queue, e *Event) {
	if e.How&LeaveLast == 0 {
		if q.empty() && len(q.gone) == 0 {
			r.fault(BadLeave, e, r.foreign(e, q), "it was the last one, which is not said")
		}
		return
	}
	if len(q.clients) == 0 {
		q.disperse()
	}
	if !q.empty() {
		r.fault(BadLeave, e, r.foreign(e, q), "the queue is said to be empty; the model has %d tasks and %d ghosts", len(q.clients), len(q.ghosts))
		return
	}
	if e.How&LeaveAfar == 0 && len(q.gone) > 0 {
		raced := r.recent(q, e)
		r.fault(BadSettle, e, raced, "the queue is empty, and %d who left it were never settled", len(q.gone))
		if !raced {
			q.clear()
		}
	}
}
