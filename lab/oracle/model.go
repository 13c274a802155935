package oracle

import (
	"math"
	"math/bits"
)

// unitsPerNs is how many units of virtual time 1 ns of weight 1 is: 1 ns at
// nice 0 is 16 units.
const unitsPerNs = 16384

// virtual is how far ns of CPU time move a task of this weight, rounded down as
// the scheduler's rules have it; cut to 2^63-1.
func virtual(ns uint64, weight uint32) uint64 {
	hi, lo := bits.Mul64(ns, unitsPerNs)
	if hi >= uint64(max(weight, 1)) {
		return math.MaxInt64
	}
	units, _ := bits.Div64(hi, lo, uint64(max(weight, 1)))
	return min(units, math.MaxInt64)
}

// apart is a - b of two virtual times, of which the clock may have wrapped.
func apart(a, b uint64) int64 { return int64(a - b) }

// before says whether virtual time a lies before b.
func before(a, b uint64) bool { return apart(a, b) < 0 }

// far is how far apart two virtual times are.
func far(a, b uint64) uint64 { return magnitude(apart(a, b)) }

type state uint8

const (
	idle    state = iota // it competes; whether it waits was not said
	waiting              // it could be picked
	running
	interrupted // by a higher scheduling class, and others ran since
	taken       // by another CPU, or about to be: it counts here until it runs there
)

// client is a task that competes in a queue: ve and vd of the paper are v and
// deadline.
type client struct {
	tid         uint32
	weight      uint32
	request     uint32 // what it asks for at a time, ns
	v, deadline uint64
	ahead       uint64 // charged in advance, in the sums only
	aheadNs     uint64
	aheads      int // how often
	state       state
	slot        int // where queue.clients has it
	bounds      bounds
	pulledBy    uint16 // the CPU by which it is taken
	left        uint64 // when it left from afar, ns
	overdue     bool   // a ghost that should have been let go, and that was counted
	until       uint64 // v to which its turn lasts at most
	over        uint64 // since when it should have left the CPU, ns; 0: it need not
	overFirst   uint64 // since when, but for the row of wake-ups that is not over
	overBy      uint16 // whose row that is
	rescued     bool   // it was picked because it had waited too long
}

// at is the client's virtual time as V sees it.
func (c *client) at() uint64 { return c.v + c.ahead }

// requestVT is the length of the client's request in virtual time.
func (c *client) requestVT() uint64 { return virtual(uint64(c.request), c.weight) }

// queue is the ideal queue: V is the mean of the virtual times of all that
// compete, weighted, and nothing else is kept of it. Sums are exact, of
// distances to a base that follows V.
type queue struct {
	cpu     uint16
	tier    uint8
	members map[uint32]*client // those of clients
	clients []*client
	ghosts  []*client // sleepers that owed when they slept, by v
	gone    []*client // left from afar, not yet taken out of the sums
	base    uint64
	sum     wide // of weight * (v - base)
	weight  uint64
	fix     wide   // what sum lacks since a fault
	suspect wide   // what it would lack if the last V recorded were right
	still   uint64 // V of the queue while it is empty
	room    uint64 // V before ghosts made room for the next event's, 0: they did not
	looks   int    // ghosts that were let go for the next event
	longest uint32 // request of any task since the queue was empty, ns
	emptied int    // how often nobody was left, or there
	past    past
	jumps   jumps
	early   map[*Event]bool   // departures that were settled before they were written
	left    map[*Event]*Event // arrivals whose departure was written before them
}

func newQueue(cpu uint16, tier uint8) *queue {
	return &queue{cpu: cpu, tier: tier, members: map[uint32]*client{}, early: map[*Event]bool{}, left: map[*Event]*Event{}}
}

// now is V, rounded down. An empty queue's V stands still.
func (q *queue) now() uint64 {
	if q.weight == 0 {
		return q.still
	}
	return q.base + uint64(q.sum.plus(q.fix).over(q.weight))
}

// without is V as it would be after a change of the sums; false if nobody
// would be left.
func (q *queue) without(sum wide, weight uint64) (uint64, bool) {
	if weight >= q.weight {
		return 0, false
	}
	rest := q.sum.plus(q.fix).plus(sum.minus())
	return q.base + uint64(rest.over(q.weight-weight)), true
}

// paid is V without those who are in the sums but will not be there for long: who has
// left from afar, and each ghost that V has passed. V only goes on by the end of such
// a ghost, and may pass the next one by that; behind one that is not passed none is.
func (q *queue) paid() uint64 {
	now := q.now()
	var weight uint64
	var sum wide
	for _, c := range q.gone {
		weight += uint64(c.weight)
		sum = sum.plus(q.share(c.at(), c.weight))
	}
	if without, some := q.without(sum, weight); some {
		now = without
	}
	for _, g := range q.ghosts {
		weight += uint64(g.weight)
		sum = sum.plus(q.share(g.v, g.weight))
		without, some := q.without(sum, weight)
		if before(now, g.v) || !some {
			break
		}
		now = without
	}
	return now
}

// share is what a client is in the sum.
func (q *queue) share(v uint64, weight uint32) wide {
	return product(apart(v, q.base), uint64(weight))
}

func (q *queue) count(c *client) {
	if q.weight == 0 {
		q.base, q.sum, q.past, q.jumps = c.at(), wide{}, past{}, jumps{}
		q.forgive()
	}
	q.sum = q.sum.plus(q.share(c.at(), c.weight))
	q.weight += uint64(c.weight)
	q.longest = max(q.longest, c.request)
}

func (q *queue) discount(c *client) {
	q.still = q.now()
	q.sum = q.sum.plus(q.share(c.at(), c.weight).minus())
	if q.weight -= uint64(c.weight); q.weight == 0 {
		q.sum, q.longest = wide{}, 0
		q.forgive()
	}
}

// join lets a client compete as placed.
func (q *queue) join(c *client) {
	c.slot = len(q.clients)
	q.clients = append(q.clients, c)
	q.members[c.tid] = c
	q.count(c)
}

// leave ends it: V jumps by lag/W.
func (q *queue) leave(c *client) {
	q.part(c)
	q.discount(c)
}

// part takes a client off the list and leaves it in the sums.
func (q *queue) part(c *client) {
	last := q.clients[len(q.clients)-1]
	q.clients[c.slot], last.slot = last, c.slot
	q.clients = q.clients[:len(q.clients)-1]
	delete(q.members, c.tid)
}

// move sets a client's virtual time; what was charged in advance is contained.
func (q *queue) move(c *client, v uint64) {
	q.sum = q.sum.plus(product(apart(v, c.at()), uint64(c.weight)))
	c.v, c.ahead, c.aheadNs, c.aheads = v, 0, 0, 0
	q.follow()
}

// charge moves a client by ns of CPU time. A request that is done is followed
// by the next one.
func (q *queue) charge(c *client, ns uint64) {
	q.move(c, c.v+virtual(ns, c.weight))
	if !before(c.v, c.deadline) {
		c.deadline = c.v + c.requestVT()
	}
}

// advance charges in the sums only.
func (q *queue) advance(c *client, ns uint64) {
	units := virtual(ns, c.weight)
	q.sum = q.sum.plus(product(int64(units), uint64(c.weight)))
	c.ahead += units
	c.aheadNs += ns
	c.aheads++
}

// follow moves the base after V, so that distances stay short when the clock wraps.
func (q *queue) follow() {
	const near = 1 << 50
	step := apart(q.now(), q.base)
	if q.weight == 0 || magnitude(step) < near {
		return
	}
	q.base += uint64(step)
	q.sum = q.sum.plus(product(step, q.weight).minus())
	q.past = past{}
}

// suspected is V if what was recorded last is right and the sums are not.
func (q *queue) suspected() uint64 {
	return q.base + uint64(q.sum.plus(q.fix).plus(q.suspect).over(q.weight))
}

// suspectV notes that V was recorded otherwise.
func (q *queue) suspectV(now uint64) {
	q.suspect = product(apart(now, q.now()), q.weight)
}

// believe takes over what the last V recorded said, so that one fault is found
// once.
func (q *queue) believe() {
	q.fix, q.suspect = q.fix.plus(q.suspect), wide{}
}

// forgive forgets what V lacked: its cause is found.
func (q *queue) forgive() { q.fix, q.suspect = wide{}, wide{} }

// clear empties the queue.
func (q *queue) clear() {
	q.still = q.now()
	clear(q.members)
	q.clients, q.ghosts, q.gone = nil, nil, nil
	q.sum, q.weight, q.longest = wide{}, 0, 0
	q.forgive()
}

// empty says whether nobody competes, not even a ghost.
func (q *queue) empty() bool { return len(q.clients) == 0 && len(q.ghosts) == 0 }

// lag is what a client is owed, in ns of CPU time.
func (q *queue) lag(c *client, now uint64) float64 {
	return float64(apart(now, c.at())) * float64(c.weight) / unitsPerNs
}

// eligible says whether a client's virtual time is not after now, give or take.
func (c *client) eligible(now, tolerance uint64) bool {
	return apart(c.at(), now) <= int64(tolerance)
}

// best is the waiting client of least deadline whose virtual time is at least
// margin before now, other than one; nil if there is none.
func (q *queue) best(now, margin uint64, other *client) *client {
	var best *client
	for _, c := range q.clients {
		if c.state != waiting || c == other || apart(now, c.at()) < int64(margin) {
			continue
		}
		if best == nil || before(c.deadline, best.deadline) {
			best = c
		}
	}
	return best
}
