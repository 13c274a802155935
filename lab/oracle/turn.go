package oracle

import "math"

// Linger is how long a turn may go on, in ns, once it is over and somebody has come
// who waits: until the CPU has been told so, and has chosen.
const Linger = 1_000_000

// inRow is how long after one wake-up, in ns, a CPU that makes the next one is still in the
// kernel on behalf of the same task, as where all are woken who meet at a barrier or wait for
// one pipe. It may not leave the kernel before all are. Nor is another CPU told anything
// before that where it takes no interrupts meanwhile: a kick is sent by one.
const inRow = 150_000

// longestRow is how long that may last, in ns: what takes longer is not one row.
const longestRow = 5_000_000

// nobody is no CPU.
const nobody = math.MaxUint16

// begins notes until when a client keeps the CPU at most: a whole slice, and what it
// has left of its request if that is longer. Out of turn it is given time by other rules.
func (c *client) begins(how uint16) {
	c.over, c.rescued = 0, how == Rescue || how == 0 && c.rescued
	c.until = c.v + c.requestVT()
	if before(c.until, c.deadline) {
		c.until = c.deadline
	}
}

// calls notes that somebody waits from now on: whose turn is over is to leave the CPU,
// though the next tick may be far.
func (r *replay) calls(q *queue, c *client, e *Event) {
	wakes := e.Time-r.woke[e.Writer] < inRow
	r.woke[e.Writer] = e.Time
	ran := r.runs[q.cpu]
	if ran == nil || ran == c || q.members[ran.tid] != ran || ran.state != running {
		return
	}
	if ran.rescued || before(ran.at(), ran.until) {
		return
	}
	switch {
	case ran.over == 0:
		ran.over, ran.overFirst, ran.overBy = e.Time, e.Time, e.Writer
	case wakes && (e.Writer == q.cpu || e.Writer == ran.overBy) && e.Time-ran.overFirst < longestRow:
		ran.over = e.Time
	case e.Writer != q.cpu:
		ran.overBy = nobody // it has been told by now
	}
}

// settles ends the row of a CPU that runs another task, or has chosen.
func (r *replay) settles(e *Event) {
	if e.Kind == Run || e.Kind == Pick && e.CPU == e.Writer && (e.How == Dispatch || e.How == Keep) {
		r.woke[e.Writer] = 0
	}
}

// ends holds the end of a turn, or the choice that lets it go on, to that.
func (r *replay) ends(c *client, e *Event) {
	if c.over != 0 && e.Time-c.over > Linger {
		r.fault(LateTurn, e, false, "its turn was over when somebody came to wait, and went on for %d us", (e.Time-c.over)/1000)
	}
	c.over = 0
}
