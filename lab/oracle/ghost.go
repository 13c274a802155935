package oracle

import (
	"math"
	"slices"
)

const (
	// maxGhosts is how many ghosts a queue has at most: for one more all go that
	// V has passed, or else the first that it has not, whose debt is forgotten.
	maxGhosts = 63
	// maxLooks is how often a choice is made anew because ghosts went: the last
	// leaves them alone.
	maxLooks = 8
)

// haunt makes a client a ghost at v. A debt that was cut brings its deadline as
// much nearer.
func (q *queue) haunt(c *client, v uint64) {
	c.deadline -= c.v - v
	q.move(c, v)
	q.part(c)
	at := slices.IndexFunc(q.ghosts, func(g *client) bool { return before(v, g.v) })
	if at < 0 {
		at = len(q.ghosts)
	}
	q.ghosts = slices.Insert(q.ghosts, at, c)
}

// banish takes a ghost out of the sums.
func (q *queue) banish(g *client) {
	at := slices.Index(q.ghosts, g)
	q.ghosts = slices.Delete(q.ghosts, at, at+1)
	q.discount(g)
}

// disperse takes all ghosts out: nobody is left who would have to wait for what
// they have had.
func (q *queue) disperse() {
	for len(q.ghosts) > 0 {
		q.banish(q.ghosts[0])
	}
}

// ghostIn is the ghost that this queue still has of a task; nil if there is none. Who
// has competed elsewhere since has left it for good: that one waits for V as all do.
func (t *task) ghostIn(q *queue) *client {
	if !slices.Contains(q.ghosts, t.ghost) {
		return nil
	}
	return t.ghost
}

// ghostLike is the ghost that a RELEASE is about; where none is as recorded, one of
// that task, or nil. Who has competed elsewhere since may have left several behind.
func (q *queue) ghostLike(e *Event) (ghost *client, alike bool) {
	for _, g := range q.ghosts {
		if g.tid != e.TID {
			continue
		}
		if ghost = g; g.v == e.V && g.weight == e.Weight && g.deadline == e.Deadline {
			return g, true
		}
	}
	return ghost, false
}

// release holds the end of a ghost: V has passed it, or it is the first and makes
// room for another.
func (r *replay) release(q *queue, e *Event) {
	now := r.checkV(q, e)
	g, alike := q.ghostLike(e)
	if g == nil {
		r.fault(BadRelease, e, r.foreign(e, q), "the model has no ghost of it, and %d of others", len(q.ghosts))
		return
	}
	full := len(q.ghosts) >= maxGhosts
	if full {
		q.room = now
	}
	switch first := q.ghosts[0]; {
	case !alike:
		r.fault(BadRelease, e, false, "v %d, deadline %d, weight %d; its ghost has v %d, deadline %d, weight %d",
			e.V, e.Deadline, e.Weight, g.v, g.deadline, g.weight)
	case apart(g.v, now) > r.roundOf(q) && !full:
		r.fault(BadRelease, e, r.foreign(e, q), "its ghost at v %d is %d units after V %d", g.v, apart(g.v, now), now)
	case apart(g.v, now) > r.roundOf(q) && g.v != first.v:
		r.fault(BadRelease, e, r.foreign(e, q), "its ghost makes room, %d units after V %d, and that of task %d comes %d before",
			apart(g.v, now), now, first.tid, apart(g.v, first.v))
	}
	q.banish(g)
}

// roomFor is V before other ghosts made room for the one of this departure: the
// scheduler computes it once for all.
func (q *queue) roomFor(e *Event) (others []uint64) {
	if e.How&LeaveGhost != 0 && q.room != 0 {
		others = []uint64{q.room}
		q.room = 0
	}
	return others
}

// judgeGhosts holds a choice to the ghosts that come before who was chosen. Where
// nobody else could have been, they are let go but once, and V that goes on by that
// may pass more of them.
func (r *replay) judgeGhosts(q *queue, c *client, e *Event, now uint64) {
	if len(q.ghosts) == 0 || q.looks >= maxLooks-1 || !r.choice(q, c) {
		return
	}
	for _, g := range q.ghosts {
		if apart(now, g.v) < int64(margin(e)) {
			return
		}
		if g.overdue || !before(g.deadline, c.deadline) {
			continue
		}
		g.overdue = true
		r.fault(BadRelease, e, r.foreign(e, q), "the ghost of task %d should have been let go: %d units before V, deadline %d earlier",
			g.tid, apart(now, g.v), apart(c.deadline, g.deadline))
	}
}

// choice says whether anybody else than c could have been chosen.
func (r *replay) choice(q *queue, c *client) bool {
	ran := r.runs[q.cpu]
	for _, o := range q.clients {
		if o != c && (o.state == waiting || o == ran && o.state == running && r.goesOn(q, o)) {
			return true
		}
	}
	return false
}

// ghost is the ghost that a task which joins has in this queue; nil if there is none.
func (r *replay) ghost(t *task, q *queue, e *Event) *client {
	ghost := t.ghostIn(q)
	if ghost != nil || e.How&JoinGhost == 0 {
		return ghost
	}
	for _, g := range q.ghosts {
		if g.tid == e.TID {
			ghost = g
		}
	}
	if ghost != nil {
		r.fault(BadPlacement, e, r.touched(e, e.TID), "it takes back a ghost, and has competed elsewhere since")
	}
	return ghost
}

// takeBack holds the one who gets its ghost back to the ghost: it goes on with the
// request that it had, or with a brief one that ends earlier.
func (r *replay) takeBack(t *task, e *Event, ghost *client, now uint64) {
	q := r.queueOf(e)
	if ghost == nil {
		r.fault(BadPlacement, e, r.foreign(e, q), "it takes back a ghost that is not there")
		return
	}
	deadline, asked := ghost.deadline, r.asks(t, e.Request, e.Slice)
	if soon := ghost.v + virtual(asked, e.Weight); asked > 0 && before(soon, deadline) {
		deadline = soon
	} else {
		asked = 0
	}
	switch {
	case ghost.v != e.V || ghost.weight != e.Weight:
		r.fault(BadPlacement, e, false, "v %d, weight %d; its ghost has v %d, weight %d", e.V, e.Weight, ghost.v, ghost.weight)
	case deadline != e.Deadline:
		r.fault(BadPlacement, e, false, "deadline %d, must be %d (%+d): its ghost has %d, and it uses %d ns between two sleeps",
			e.Deadline, deadline, apart(deadline, e.Deadline), ghost.deadline, t.uses)
	case !saysBrief(e, asked):
		r.fault(BadPlacement, e, false, "it takes back a ghost and asks for %d ns, must be %d (0: what the ghost has)", e.Span, asked)
	case apart(now, ghost.v) > roundV:
		r.fault(BadPlacement, e, r.foreign(e, q), "V %d has passed its ghost at %d", now, ghost.v)
	case r.grew(t, e, ghost, now) > r.roundOf(q):
		r.fault(BadPlacement, e, r.foreign(e, q), "it takes back a ghost whose debt has grown by %d while it slept", r.grew(t, e, ghost, now))
	}
}

// grew is by how much a debt has grown while its owner slept, which he is let off where
// requests are brief; far below 0 where that is not so.
func (r *replay) grew(t *task, e *Event, ghost *client, now uint64) int64 {
	if !r.brief || ghost.weight != e.Weight {
		return math.MinInt64
	}
	return t.lag - apart(now, ghost.v)
}

// mayLeave says whether who joins may be placed anew, and leave its ghost: V has
// passed it, its weight is another, or its debt has grown.
func (r *replay) mayLeave(t *task, q *queue, e *Event, ghost *client, now uint64) bool {
	if ghost == nil || e.How&JoinNew != 0 || ghost.weight != e.Weight || apart(ghost.v, now) <= r.roundOf(q) ||
		r.grew(t, e, ghost, now) > -r.roundOf(q) {
		return true
	}
	r.fault(BadPlacement, e, r.foreign(e, q), "it is placed anew, and its ghost is %d units after V %d", apart(ghost.v, now), now)
	return false
}

// checkGhost holds who sleeps and owes to its ghost, and whoever has one to that.
func (r *replay) checkGhost(q *queue, c *client, e *Event, now uint64) {
	owes := apart(c.v, now)
	if e.How&LeaveGhost == 0 {
		if e.How&(LeaveSleep|LeaveAfar|LeaveLast) == LeaveSleep && owes > roundV+int64(c.aheads) {
			r.fault(BadLeave, e, r.foreign(e, q), "it sleeps %d units after V and leaves no ghost", owes)
		}
		return
	}
	if e.How&LeaveSleep == 0 || owes < -roundV-int64(c.aheads) {
		r.fault(BadLeave, e, r.foreign(e, q), "it leaves a ghost: sleeps %t, v - V %d", e.How&LeaveSleep != 0, owes)
	}
	right := now + uint64(min(owes, limit(c.weight, c.request)))
	if far(right, e.V) > roundV+uint64(c.aheads) {
		r.fault(BadLeave, e, r.foreign(e, q), "ghost at v %d, must be %d: v %d, V %d", e.V, right, c.v, now)
	}
	if len(q.ghosts) >= maxGhosts {
		r.fault(BadLeave, e, r.foreign(e, q), "it leaves a ghost to a queue that has %d", len(q.ghosts))
	}
}
