package oracle

import (
	"fmt"
	"slices"
)

// blind is a decision that named no task: the one that runs next is held
// against what was best then.
type blind struct {
	e    *Event
	now  uint64
	best *client
	at   uint64 // deadline of best then
}

// pick holds a decision against the model.
func (r *replay) pick(q *queue, e *Event) {
	r.report.Picks[pickNames[min(int(e.How), len(pickNames)-1)]]++
	now := r.checkV(q, e)
	r.lags(q, e)
	slot := 2*int(q.cpu) + int(q.tier) - 1
	if e.TID == 0 && e.How == Dispatch {
		b := &blind{e: e, now: now, best: r.best(q, nil, e, now)}
		if b.best != nil {
			b.at = b.best.deadline
		}
		r.blind[slot] = b
		return
	}
	c := r.member(q, e)
	if c == nil {
		return
	}
	r.tasks[c.tid].pickedOn = int(q.cpu) + 1
	if e.How == Keep {
		r.ends(c, e)
	}
	c.begins(e.How)
	if e.How == Rescue || e.How == Come || e.How == Direct {
		q.outOfTurn(c)
	}
	if e.How == Rescue || e.How == Come {
		return // exempt: it waited too long, or the CPU had nobody else
	}
	r.report.Checked++
	switch e.How {
	case Dispatch, Keep:
		r.judge(q, c, e, now)
		r.judgeGhosts(q, c, e, now)
	case Preempt:
		r.judgePreempt(q, c, e, now)
	case Direct:
		for _, o := range q.clients {
			// Who was picked waits no more, though somebody of a higher
			// scheduling class may keep it from the CPU for long.
			if o.state == waiting && o != c && r.tasks[o.tid].pickedOn != int(q.cpu)+1 {
				r.wrongPick(e, o, false, "it goes first because nobody waits, but task %d does", o.tid)
				return
			}
		}
	case Last:
		if best := q.best(now, margin(e), nil); best != nil {
			r.wrongPick(e, best, false, "nobody is eligible, but task %d is, %d units before V %d", best.tid, apart(now, best.at()), now)
		}
	}
}

// margin is how far before V a task must be to be eligible beyond doubt, in
// units: V is the one that the scheduler had, or the model's, rounded down.
func margin(e *Event) uint64 {
	if e.NowV != 0 {
		return 0
	}
	return 1
}

// judge holds a pick to the rule: the eligible one of least deadline.
func (r *replay) judge(q *queue, c *client, e *Event, now uint64) {
	best := r.best(q, c, e, now)
	if !c.eligible(now, roundV+uint64(c.aheads)) && (e.How == Dispatch || best != nil) {
		// Who leaves from afar after the CPU has settled departures counts in the V by which it chooses.
		// So does who was pulled and has not run there yet, because others took that CPU meanwhile.
		nobodyElse := best == nil && (r.foreign(e, q) || r.pulled(e, q) || q.isHeldBack(now))
		r.wrongPick(e, best, nobodyElse || r.outrun(e, q), "it is not eligible: v %d is %d after V %d", c.at(), apart(c.at(), now), now)
		return
	}
	if best != nil && before(best.deadline, c.deadline) {
		r.wrongPick(e, best, false, "deadline %d, but task %d is eligible (%d before V) with %d, %d earlier", c.deadline,
			best.tid, apart(now, best.at()), best.deadline, apart(c.deadline, best.deadline))
	}
}

// best is the eligible task of least deadline beside c, among those that wait
// and, when the CPU chooses, the one that ran and may go on.
func (r *replay) best(q *queue, c *client, e *Event, now uint64) *client {
	best, ran := q.best(now, margin(e), c), r.runs[q.cpu]
	if e.How != Dispatch || ran == nil || ran == c || q.members[ran.tid] != ran || ran.state != running {
		return best
	}
	if ran.eligible(now, 0) && (best == nil || before(ran.deadline, best.deadline)) && r.goesOn(q, ran) {
		return ran
	}
	return best
}

// goesOn says whether a task that ran was still able to: what is next about it
// is that it waits.
func (r *replay) goesOn(q *queue, c *client) bool {
	for i, n := r.at+1, 0; i < len(r.events) && n < maxNear; i, n = i+1, n+1 {
		if o := r.events[i]; o.TID == c.tid && o.Kind != Pick && o.Kind != Release {
			return o.Kind == Wait && o.is(c.tid, q)
		}
	}
	return false
}

// judgePreempt holds the one that takes the CPU: it is eligible, is the best of
// those that wait, and the one that runs is not eligible or has more time.
func (r *replay) judgePreempt(q *queue, c *client, e *Event, now uint64) {
	ran := q.members[uint32(e.Span)] // nil in another tier: that order is not judged here
	best := q.best(now, margin(e), c)
	switch {
	case !c.eligible(now, preemptV+roundV):
		r.wrongPick(e, ran, false, "it preempts and is not eligible: v %d is %d after V %d", c.at(), apart(c.at(), now), now)
	case best != nil && before(best.deadline, c.deadline):
		r.wrongPick(e, best, false, "it preempts with deadline %d, but task %d is eligible with %d", c.deadline, best.tid, best.deadline)
	case ran != nil && ran != c && apart(now, ran.at()) > preemptV && !before(c.deadline, ran.deadline):
		r.wrongPick(e, ran, false, "it preempts with deadline %d, but task %d is eligible and has %d", c.deadline, ran.tid, ran.deadline)
	}
}

// wrongPick counts a pick that is wrong, or a race if another CPU changed one of
// the two tasks around it.
func (r *replay) wrongPick(e *Event, better *client, raced bool, format string, args ...any) {
	raced = raced || r.touched(e, e.TID) || better != nil && (r.touched(e, better.tid) || r.inTransit(e, better.tid))
	text, other := fmt.Sprintf(format, args...), uint32(0)
	if better != nil {
		text, other = text+r.next(better.tid), better.tid
	}
	r.faultBeside(WrongPick, e, other, raced, "%s", text)
}

// inTransit says whether another CPU had the task already, though it was not
// named: who pulls writes down the first in line before it pulls, and gets the
// second when this CPU was quicker.
func (r *replay) inTransit(e *Event, tid uint32) bool {
	o := r.after(tid)
	if o == nil || o.Kind != Leave || o.How&LeaveAfar == 0 || o.Time-e.Time > transit {
		return false
	}
	return r.within(transit, e, func(pull *Event) bool {
		return pull.Kind == Pull && pull.Writer == o.Writer && pull.CPU == e.CPU && pull.Tier == e.Tier && pull.Time <= o.Time
	})
}

// after is the next event about a task, not about what it left behind; nil if there is none.
func (r *replay) after(tid uint32) *Event {
	for _, o := range r.events[min(r.at+1, len(r.events)):] {
		if o.TID == tid && o.Kind != Release {
			return o
		}
	}
	return nil
}

// next says in words what comes next about a task: where it really was, as a rule.
func (r *replay) next(tid uint32) string {
	o := r.after(tid)
	if o == nil {
		return "; nothing more about it"
	}
	return fmt.Sprintf("; next about it: %s %d by CPU %d, %d us later", kindNames[o.Kind], o.How, o.Writer, (o.Time-r.events[r.at].Time)/1000)
}

// run holds a turn to the decision before it.
func (r *replay) run(q *queue, c *client, e *Event) {
	t, slot := r.tasks[c.tid], 2*int(q.cpu)+int(q.tier)-1
	b := r.blind[slot]
	switch {
	case t.pickedOn == int(q.cpu)+1:
	case r.runs[q.cpu] == c && c.state == running, c.state == interrupted:
		// A task of a higher scheduling class took the CPU: the kernel lets it
		// go on where it was.
	case b != nil:
		r.judgeBlind(q, c, b)
	default:
		r.fault(BadRun, e, r.pulled(e, q), "no pick before it names it")
	}
	t.pickedOn, r.blind[slot] = 0, nil
	if last := r.runs[q.cpu]; last != nil && last.state == running {
		last.state = interrupted
	}
	c.state = running
	c.begins(0)
	r.runs[q.cpu] = c
}

// outrun says whether another CPU took the task that was found, at the moment
// between finding it and taking the first in line.
func (r *replay) outrun(e *Event, q *queue) bool {
	return r.near(e, func(o *Event) bool { return o.Kind == Pull && o.CPU == q.cpu && o.Tier == q.tier })
}

// pulled says whether another CPU took a task of this queue around e: then the
// CPU runs another than it picked.
func (r *replay) pulled(e *Event, q *queue) bool {
	return r.within(transit, e, func(o *Event) bool {
		gone := o.Kind == Pull || o.Kind == Leave && o.How&LeaveAfar != 0
		return gone && o.CPU == q.cpu && o.Tier == q.tier
	})
}

// isHeldBack says whether somebody counts in V, and lies before it, whom another CPU has taken.
func (q *queue) isHeldBack(now uint64) bool {
	return slices.ContainsFunc(q.clients, func(c *client) bool { return c.state == taken && before(c.at(), now) })
}

func (r *replay) judgeBlind(q *queue, c *client, b *blind) {
	r.report.Checked++
	named := *b.e
	named.TID = c.tid
	switch {
	case !c.eligible(b.now, roundV+uint64(c.aheads)):
		r.wrongPick(&named, b.best, false, "it is not eligible: v %d is %d after V %d", c.at(), apart(c.at(), b.now), b.now)
	case b.best != nil && before(b.at, c.deadline):
		r.wrongPick(&named, b.best, r.pulled(&named, q), "deadline %d, but task %d was eligible with %d", c.deadline, b.best.tid, b.at)
	}
}
