package oracle

// jumps is what joining and leaving did to V, in units, since a queue was empty.
type jumps struct{ up, down float64 }

// jumped notes that V jumped.
func (q *queue) jumped(by int64) {
	if by < 0 {
		q.jumps.down -= float64(by)
	} else {
		q.jumps.up += float64(by)
	}
}

// bounds is since when a client's lag has been on one side of 0, and what it
// may be beyond the bound of a steady queue.
type bounds struct {
	down, both float64 // jumps of V when it was last owed, and last ahead
	extra      float64 // ns that it ran, or may run, out of its turn
	brought    float64 // ns of lag that it came with
	out        bool    // it is out of bounds, and that was counted
}

// outOfTurn notes that a task runs although it may not be eligible.
func (q *queue) outOfTurn(c *client) {
	turn := float64(c.request) + Tick
	c.bounds.extra += turn
	q.jumps.up += turn * unitsPerNs / float64(max(q.weight, 1))
}

// lags counts who is owed, or owes, more than the definition allows.
//
// Who is picked is eligible, so a turn of length t leaves it no further behind
// than t: its request, which ends at a tick. After that its lag falls only where
// V jumps back: when somebody joins who is owed time, or goes with a debt. The
// jumps since it was last eligible are therefore allowed for, by its weight.
// In the same way who is eligible is served before it is owed more than the
// longest request and the longest turn (Stoica and Abdel-Wahab 1995, theorem 1),
// but for the jumps since it was last ahead, in both directions: whoever is owed
// time from elsewhere may come first. What a task brought is its own.
//
// V is the one without the ghosts that it has passed, though these are let go only
// when they would be picked: then their end is no jump. Each excursion counts once.
func (r *replay) lags(q *queue, e *Event) {
	now := q.paid()
	turn := float64(q.longest) + Tick
	for _, c := range q.clients {
		if c.state == idle || c.state == taken {
			continue
		}
		lag, b := q.lag(c, now), &c.bounds
		r.report.MostOwed = max(r.report.MostOwed, lag)
		r.report.MostAhead = min(r.report.MostAhead, lag)
		if lag >= 0 {
			b.down, b.extra, b.brought = q.jumps.down, 0, max(b.brought, 0)
		}
		if lag <= 0 {
			b.both, b.brought = q.jumps.up+q.jumps.down, min(b.brought, 0)
		}
		weight := float64(c.weight) / unitsPerNs
		low := -(float64(c.request) + turn) - b.extra - weight*(q.jumps.down-b.down) + min(b.brought, 0)
		high := float64(q.longest) + turn + weight*(q.jumps.up+q.jumps.down-b.both) + max(b.brought, 0)
		out := lag < low || lag > high
		if out && !b.out {
			r.fault(LagBound, e, false, "task %d: lag %.0f ns, must be %.0f..%.0f", c.tid, lag, low, high)
		}
		b.out = out
	}
}
