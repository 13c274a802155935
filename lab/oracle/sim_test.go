package oracle

import (
	"math/rand/v2"
)

// sim is a scheduler small enough to be right by looking at it: it decides by
// the rules in the plainest way and writes the record of it. It shares with
// the model only the constants.
type sim struct {
	random *rand.Rand
	time   uint64
	queues []*simQueue
	tasks  []*simTask
	rec    *Record
	cheat  string // what it does wrong, once, when cheatAt picks are done
	after  int
}

type simQueue struct {
	cpu     int
	all     []*simTask // in the sums, with ghosts
	gone    []simTask  // left from afar
	running *simTask
	emptied int
}

type simTask struct {
	tid, w, slice uint32
	v, d          uint64
	ahead         uint64
	q             *simQueue // where it competes
	ghost         *simQueue
	waits         bool
	seen, slept   bool
	from          *simQueue
	emptied       int // of that queue, then
	lag, rest     int64
	oldW          uint32
	sleepUntil    uint64
}

func newSim(seed uint64, cpus, tasks int) *sim {
	s := &sim{random: rand.New(rand.NewPCG(seed, 1)), time: 1_000_000, rec: &Record{Capacity: 1 << 24, Parts: make([][]Event, cpus)}}
	for cpu := range cpus {
		s.queues = append(s.queues, &simQueue{cpu: cpu})
	}
	weights := []uint32{15, 335, 1024, 1024, 3121, 88761}
	for i := range tasks {
		s.tasks = append(s.tasks, &simTask{tid: uint32(100 + i), w: weights[s.random.IntN(len(weights))],
			slice: []uint32{3_000_000, 3_000_000, 700_000, 20_000_000}[s.random.IntN(4)]})
	}
	return s
}

func simVirtual(ns uint64, w uint32) uint64 { return ns * 16384 / uint64(w) }

// sums of distances to the first one's v.
func (q *simQueue) now() (v, weight uint64) {
	base := uint64(0)
	sum := 0.0
	add := func(t *simTask) {
		if weight == 0 {
			base = t.v
		}
		weight += uint64(t.w)
		sum += float64(int64(t.v+t.ahead-base)) * float64(t.w)
	}
	for _, t := range q.all {
		add(t)
	}
	for i := range q.gone {
		add(&q.gone[i])
	}
	if weight == 0 {
		return 0, 0
	}
	mean := sum / float64(weight)
	n := int64(mean)
	if float64(n) > mean {
		n--
	}
	return base + uint64(n), weight
}

func (s *sim) write(writer int, q *simQueue, t *simTask, e Event) {
	s.time += 100 + s.random.Uint64N(200)
	if t != nil {
		e.TID, e.Weight, e.Request, e.V, e.Deadline, e.Slice = t.tid, t.w, t.slice, t.v, t.d, t.slice
	}
	e.Time, e.CPU, e.Tier, e.Writer = s.time, uint16(q.cpu), 1, uint16(writer)
	s.rec.Parts[writer] = append(s.rec.Parts[writer], e)
}

func (q *simQueue) remove(t *simTask) {
	for i, o := range q.all {
		if o == t {
			q.all = append(q.all[:i:i], q.all[i+1:]...)
		}
	}
}

func (s *sim) does(what string) bool {
	if s.cheat != what || s.after > 0 {
		return false
	}
	s.cheat = ""
	return true
}

func (s *sim) settle(writer int, q *simQueue) {
	if len(q.gone) > 0 {
		var e Event
		for _, t := range q.gone {
			e.Span += uint64(t.w)
			e.V += uint64(t.w) * t.v
		}
		q.gone = nil
		e.Kind = Settle
		if !s.does("settle") {
			s.write(writer, q, nil, e)
		}
	}
}

func (s *sim) join(writer int, q *simQueue, t *simTask) {
	s.settle(writer, q)
	e := Event{Kind: Join}
	with, _ := q.now()
	lag := t.lag
	if t.slept && t.from == q {
		lag = max(lag, 0)
	}
	if t.slept && t.from.emptied != t.emptied && (lag <= 0 || !q.anyone() || !s.does("claim")) {
		lag = min(lag, 0)
	}
	back := false
	switch {
	case t.ghost != nil && t.ghost != q:
		panic("a ghost elsewhere")
	case !q.anyone():
		if len(q.all) > 0 {
			t.v = with
		}
		q.disperse()
		q.emptied++
	case t.ghost == q:
		lag = min(int64(with-t.v), 0)
		if t.oldW == t.w && int64(with-t.v) <= 0 {
			back, e.How, e.NowV = true, JoinGhost, with
		}
		q.remove(t)
	}
	t.ghost = nil
	v, weight := q.now()
	if t.seen && t.oldW != t.w {
		lag = lag * int64(t.oldW) / int64(t.w)
	}
	switch {
	case back:
	case weight == 0:
		e.How |= JoinEmpty
	default:
		t.v = v - uint64(lag*int64(weight+uint64(t.w))/int64(weight)) - 1
		e.NowV = v
		if s.does("placement") {
			t.v += 50_000_000
		}
	}
	whole := simVirtual(uint64(t.slice), t.w)
	if !back {
		t.d = t.v + whole
	}
	if !t.seen && s.random.IntN(2) == 0 {
		e.How |= JoinNew
		t.d = t.v + whole/2
	} else if t.seen && !t.slept {
		if rest := t.rest * int64(t.oldW) / int64(t.w); rest >= 1 && rest <= int64(whole) {
			t.d = t.v + uint64(rest)
		}
	}
	t.q, t.waits, t.seen = q, true, true
	q.all = append(q.all, t)
	s.write(writer, q, t, e)
	if s.does("weight") {
		part := s.rec.Parts[writer]
		part[len(part)-1].Weight *= 2
	}
}

func (s *sim) leave(writer int, q *simQueue, t *simTask, sleeps bool) {
	v, _ := q.now()
	most := int64(simVirtual(uint64(t.slice)+4_000_000, t.w))
	t.lag = max(-most, min(most, int64(v-t.v)))
	t.rest, t.oldW, t.from, t.slept, t.q, t.waits = int64(t.d-t.v), t.w, q, sleeps, nil, false
	t.emptied = q.emptied
	e, debt := Event{Kind: Leave}, uint64(0)
	if sleeps {
		e.How |= LeaveSleep
	}
	switch {
	case writer != q.cpu:
		e.How |= LeaveAfar
		q.gone = append(q.gone, *t)
		q.remove(t)
	case q.only(t):
		e.How |= LeaveLast
		t.lag = 0
		q.disperse()
		q.emptied++
	case sleeps && int64(t.v-v) > 0:
		e.How, e.NowV = e.How|LeaveGhost, v
		s.makeRoom(q)
		t.ghost = q
		debt = t.v - v - uint64(-t.lag)
		t.v -= debt
	default:
		q.remove(t)
	}
	s.write(writer, q, t, e)
	t.d -= debt // of the ghost; the task had its own until it slept
}

// turn is one turn of a CPU.
func (s *sim) turn(q *simQueue) {
	s.time += 100_000
	if t := q.running; t != nil {
		s.execute(q, t)
	}
	s.wake(q)
	s.settle(q.cpu, q)
	if len(q.all) == 0 || !q.anyone() {
		s.pull(q)
		s.settle(q.cpu, q)
	}
	s.choose(q)
	if s.random.IntN(8) == 0 {
		s.pull(s.queues[s.random.IntN(len(s.queues))])
	}
}

func (q *simQueue) anyone() bool {
	for _, t := range q.all {
		if t.ghost == nil {
			return true
		}
	}
	return false
}

func (s *sim) execute(q *simQueue, t *simTask) {
	ns := s.random.Uint64N(uint64(t.slice)) + 1000
	if s.random.IntN(3) == 0 {
		t.ahead = simVirtual(ns/2, t.w)
		s.time += ns / 2
		s.write(q.cpu, q, t, Event{Kind: Ahead, Span: ns / 2})
		s.wake(q)
	}
	s.time += ns
	t.ahead = 0
	t.v += simVirtual(ns, t.w)
	if int64(t.v-t.d) >= 0 {
		t.d = t.v + simVirtual(uint64(t.slice), t.w)
	}
	if !s.does("charge") {
		s.write(q.cpu, q, t, Event{Kind: Charge, Span: ns})
	}
	switch s.random.IntN(12) {
	case 0:
		t.d += simVirtual(uint64(t.slice), t.w)
		s.write(q.cpu, q, t, Event{Kind: Yield})
	case 1, 2, 3:
		s.settle(q.cpu, q)
		s.leave(q.cpu, q, t, true)
		t.sleepUntil = s.time + s.random.Uint64N(20_000_000)
		q.running = nil
	case 4:
		s.settle(q.cpu, q)
		s.leave(q.cpu, q, t, false)
		t.w = []uint32{15, 1024, 2048}[s.random.IntN(3)]
		s.join(q.cpu, q, t)
		s.write(q.cpu, q, t, Event{Kind: Wait})
		q.running = nil
	}
}

// wake wakes who has slept enough: where its ghost is, or here.
func (s *sim) wake(q *simQueue) {
	for _, t := range s.tasks {
		if t.q != nil || t.sleepUntil > s.time {
			continue
		}
		to := q
		if t.ghost != nil {
			to = t.ghost
		}
		s.join(q.cpu, to, t)
		s.write(q.cpu, to, t, Event{Kind: Wait})
	}
}

// pull takes a waiting task from another queue.
func (s *sim) pull(q *simQueue) {
	for _, t := range s.tasks {
		if t.q != nil && t.q != q && t.q.running != t {
			s.leave(q.cpu, t.q, t, false)
			s.join(q.cpu, q, t)
			s.write(q.cpu, q, t, Event{Kind: Wait})
			return
		}
	}
}

// best is who is to be chosen at V, and another one that is eligible.
func (q *simQueue) best(v uint64) (best, other *simTask) {
	for _, t := range q.all {
		if t.ghost != nil || int64(t.v+t.ahead-v) > 0 {
			continue
		}
		if best == nil || int64(t.d-best.d) < 0 {
			best, other = t, best
		} else if int64(t.d-best.d) > 0 {
			other = t
		}
	}
	return best, other
}

func (s *sim) choose(q *simQueue) {
	if !q.anyone() {
		return
	}
	late := s.release(q)
	v, _ := q.now()
	best, other := q.best(v)
	if best == nil {
		return
	}
	if s.after--; other != nil && other != q.running && s.does("pick") {
		best = other
	}
	prev := q.running
	e := Event{Kind: Pick, How: Dispatch, NowV: v}
	if best == prev {
		e.How = Keep
		s.write(q.cpu, q, best, e)
		return
	}
	if s.does("V") {
		e.NowV += 12345
	}
	s.write(q.cpu, q, best, e)
	if s.random.IntN(4) == 0 && !late { // names no task
		part := s.rec.Parts[q.cpu]
		part[len(part)-1].TID = 0
	}
	if prev != nil {
		prev.waits = true
		s.write(q.cpu, q, prev, Event{Kind: Wait})
	}
	best.waits = false
	q.running = best
	s.write(q.cpu, q, best, Event{Kind: Run})
}

// simulate is the record of some turns; with a cheat, what it does wrong once
// after so many picks, if there is a chance.
func simulate(seed uint64, cpus, tasks, turns int, cheat string) (rec *Record, cheated bool) {
	s := newSim(seed, cpus, tasks)
	s.cheat, s.after = cheat, turns/2
	for range turns {
		for _, q := range s.queues {
			s.turn(q)
		}
	}
	return s.rec, s.cheat != cheat
}
