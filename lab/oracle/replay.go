package oracle

import (
	"cmp"
	"math"
	"slices"
)

const (
	// Tick is how far a turn may go beyond its slice, in ns: the kernel ends a
	// slice at a tick, 250 of them a second.
	Tick = 4_000_000
	// Brief is the shortest request that a task is given by what it uses, in ns.
	Brief = 100_000
	// BriefPart is the part of a slice that such a request may be at most: an eighth.
	BriefPart = 8
	// Late is how late an event of another CPU may be, in ns.
	Late = 50_000
	// transit is how long a task may be on its way to another CPU, in ns: there
	// it waits until a task of a higher class, or one that woke, has run.
	transit = 1_000_000
	// roundV is by how many units a V that was computed from the same sums may
	// be apart: it may be rounded up or down, and so may the charge in advance.
	roundV = 2
	// preemptV is what a task that wakes may lack to be eligible, and what the
	// one that runs must be before V to keep the CPU: 1 us at nice 0.
	preemptV = 16000
)

// task is what is known of a task beyond the queue that it is in.
type task struct {
	in       *queue // nil: it sleeps or moves
	seen     bool   // it has left a queue, which the rest is about
	from     *queue
	slept    bool
	weight   uint32
	lag      int64 // virtual, at that weight
	low      int64 // what its lag may have been, if it left from afar
	high     int64
	emptied  int     // how often the queue had been emptied when it left
	rest     int64   // deadline - v
	pickedOn int     // CPU + 1 that it was picked for, 0: none
	used     uint64  // ns since it slept last
	uses     uint64  // ns between two sleeps, a moving mean; 0: not known
	ghost    *client // what it left behind at its last departure, if it did
}

// replay holds the state of a Check.
type replay struct {
	events []*Event // of all CPUs by time
	at     int      // the one that is looked at
	queues []*queue // by CPU and tier
	tasks  map[uint32]*task
	blind  []*blind // by queue: a pick that named no task
	brief  bool     // requests are by what a task uses
	runs   []*client
	woke   []uint64 // by CPU: when it last put somebody among those who wait, since it switched, ns
	report Report
}

// Check replays a record and holds each decision against the model. After a
// fault it takes over what was recorded, so that one fault counts once. It
// takes seconds for a million events.
func Check(rec *Record) Report {
	r := &replay{
		queues: make([]*queue, 2*len(rec.Parts)), blind: make([]*blind, 2*len(rec.Parts)),
		runs: make([]*client, len(rec.Parts)), woke: make([]uint64, len(rec.Parts)), tasks: map[uint32]*task{},
		report: Report{Picks: map[string]int{}, Faults: map[Fault]int{}, Races: map[Fault]int{}},
	}
	for i := range r.queues {
		r.queues[i] = newQueue(uint16(i/2), uint8(1+i%2))
	}
	r.merge(rec)
	r.report.Events = len(r.events)
	r.brief = slices.ContainsFunc(r.events, func(e *Event) bool { return e.Kind == Join && e.How&JoinBrief != 0 })
	for r.at = range r.events {
		e := r.events[r.at]
		if int(e.CPU) >= len(rec.Parts) || e.Tier < 1 || e.Tier > 2 {
			continue // Read would have refused it
		}
		r.settles(e)
		q := r.queueOf(e)
		r.step(q, e)
		q.past.remember(e, q)
	}
	return r.report
}

func (r *replay) queueOf(e *Event) *queue { return r.queues[2*int(e.CPU)+int(e.Tier)-1] }

// is says whether an event is about this task in this queue.
func (e *Event) is(tid uint32, q *queue) bool {
	return e.TID == tid && e.CPU == q.cpu && e.Tier == q.tier
}

// merge puts the parts together by time and cuts off what is later than the
// end of the first full part. Each part stays in its own order.
func (r *replay) merge(rec *Record) {
	type stamped struct {
		time uint64
		e    *Event
	}
	var all []stamped
	end := uint64(math.MaxUint64)
	for _, part := range rec.Parts {
		latest := uint64(0)
		for i := range part {
			latest = max(latest, part[i].Time)
			all = append(all, stamped{latest, &part[i]})
		}
		if len(part) > 0 && uint64(len(part)) >= uint64(rec.Capacity) {
			end = min(end, latest)
		}
	}
	slices.SortStableFunc(all, func(a, b stamped) int { return cmp.Compare(a.time, b.time) })
	for _, s := range all {
		if s.time <= end {
			r.events = append(r.events, s.e)
		}
	}
	r.report.Ignored = len(all) - len(r.events)
}

func (r *replay) task(tid uint32) *task {
	t := r.tasks[tid]
	if t == nil {
		t = &task{}
		r.tasks[tid] = t
	}
	return t
}

func (r *replay) step(q *queue, e *Event) {
	switch e.Kind {
	case Release:
		q.looks++
	case Pull:
	case Leave: // room is for it
		q.looks = 0
	case Pick: // the looks are its
		q.room = 0
	default:
		q.room, q.looks = 0, 0
	}
	if e.empties() {
		q.emptied++
	}
	if e.Kind <= Release {
		before, some := q.paid(), len(q.clients) > 0
		defer func() {
			if some && len(q.clients) > 0 {
				q.jumped(apart(q.paid(), before))
			}
		}()
	}
	switch e.Kind {
	case Join:
		r.join(q, e)
	case Leave:
		r.leave(q, e)
	case Settle:
		r.settle(q, e)
	case Release:
		r.release(q, e)
	case Pick:
		r.pick(q, e)
		q.looks = 0
	case Pull:
		// It may have come here, and gone, a moment ago.
		c := q.members[e.TID]
		switch {
		case c != nil && e.How != InVain && c.state == waiting:
			c.state, c.pulledBy = taken, e.Writer
		case c != nil && e.How == InVain && c.state == taken && c.pulledBy == e.Writer:
			c.state = waiting
		}
	default:
		if c := r.member(q, e); c != nil {
			r.turn(q, c, e)
		}
	}
}

// turn is what a task does that competes: it waits, runs, is charged.
func (r *replay) turn(q *queue, c *client, e *Event) {
	r.reweigh(q, c, e)
	switch e.Kind {
	case Wait:
		r.compare(q, c, e, "waits")
		c.state, c.rescued = waiting, false
		r.tasks[c.tid].pickedOn = 0
		r.calls(q, c, e)
	case Run:
		r.run(q, c, e)
	case Charge:
		r.charge(q, c, e)
	case Ahead:
		q.advance(c, e.Span)
	case Yield:
		c.deadline += virtual(uint64(requestOf(q, c, e)), c.weight)
		r.compare(q, c, e, "yields")
	}
}

// requestOf is the request in force: it may change while the task competes, and
// then counts from the next request on.
func requestOf(q *queue, c *client, e *Event) uint32 {
	if e.Request != 0 {
		c.request = e.Request
		q.longest = max(q.longest, c.request)
	}
	return c.request
}

func (r *replay) charge(q *queue, c *client, e *Event) {
	if e.Span < c.aheadNs {
		r.fault(BadCharge, e, r.foreign(e, q), "%d ns, less than the %d ns in advance", e.Span, c.aheadNs)
	}
	r.ends(c, e)
	requestOf(q, c, e)
	r.task(c.tid).used += e.Span
	was := c.deadline
	q.charge(c, e.Span)
	if c.deadline != was {
		c.deadline = c.v + r.following(q, c, e)
	}
	r.compare(q, c, e, "was charged")
	r.lags(q, e)
}

// compare holds v and deadline of an event against the model's and takes them over.
func (r *replay) compare(q *queue, c *client, e *Event, what string) {
	if c.v == e.V && c.deadline == e.Deadline {
		return
	}
	r.fault(BadCharge, e, false, "it %s at v %d, deadline %d; the model has v %d (%+d), deadline %d (%+d)", what,
		e.V, e.Deadline, c.v, apart(c.v, e.V), c.deadline, apart(c.deadline, e.Deadline))
	r.correct(q, c, e.V)
	if e.Kind == Wait {
		q.move(c, e.V) // who waits was charged: what was in advance is contained
	}
	c.deadline = e.Deadline
}

// correct sets a client's v after a fault. What V lacked because of an earlier
// one is forgotten: this may be its cause.
func (r *replay) correct(q *queue, c *client, v uint64) {
	if v != c.v {
		q.forgive()
		ahead, ns, n := c.ahead, c.aheadNs, c.aheads
		q.move(c, v)
		q.sum = q.sum.plus(product(int64(ahead), uint64(c.weight)))
		c.ahead, c.aheadNs, c.aheads = ahead, ns, n
	}
}

// reweigh holds a client's weight to the one that it joined with, and takes the
// recorded one over: only who leaves and joins again may change it.
func (r *replay) reweigh(q *queue, c *client, e *Event) {
	if e.Weight == 0 || e.Weight == c.weight {
		return
	}
	r.fault(BadCharge, e, false, "weight %d, it joined with %d", e.Weight, c.weight)
	q.discount(c)
	c.weight = e.Weight
	q.count(c)
	q.forgive()
}

// member finds the client that an event is about. One that is not there is a
// fault unless it joins in a moment, and is taken in as recorded.
func (r *replay) member(q *queue, e *Event) *client {
	c := q.members[e.TID]
	if c != nil {
		return c
	}
	if r.near(e, func(o *Event) bool { return (o.Kind == Join || o.Kind == Leave) && o.is(e.TID, q) }) {
		r.fault(Unknown, e, true, "it is not in this queue, and was or will be in a moment")
		return nil
	}
	r.fault(Unknown, e, false, "it is not in this queue")
	if e.Kind < Wait || e.Kind == Pick || e.Kind == Run || e.Weight == 0 || r.task(e.TID).in != nil {
		return nil // too little is known
	}
	c = &client{tid: e.TID, weight: e.Weight, request: e.Request, v: e.V, deadline: e.Deadline}
	if g := r.task(e.TID).ghostIn(q); g != nil {
		q.banish(g)
	}
	q.join(c)
	r.task(e.TID).in = q
	if e.Kind != Wait {
		return nil // the charge is in v already
	}
	return c
}
