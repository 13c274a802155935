package hosttest

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

const (
	tickNs = 4_000_000 // TASK_TICK_NS: a turn may be longer than its slice by this
	rebase = 1 << 26   // EEVDF_REBASE_VT
)

// replay is one queue twice: the answers that C gave, and the model that is
// held against them.
type replay struct {
	model
	answers []answer
	at      answer // the last one that was looked at
}

func (p *replay) next() uint64 {
	p.at, p.answers = p.answers[0], p.answers[1:]
	return p.at.result
}

// seen is V as the C side has it, without the wrapping.
func (p *replay) seen() *big.Rat { return whole(unwrap(p.at.now, p.now())) }

// check holds everything that can be seen of the queue against the model.
func (p *replay) check(t testing.TB) {
	t.Helper()
	seen := p.seen()
	near(t, "V", seen, p.now(), 1)
	if seen.Cmp(p.now()) > 0 {
		t.Errorf("V %s is rounded up to %s: a task that is ahead would be eligible", p.now().FloatString(3), seen.RatString())
	}
	near(t, "sum of weights", weight(p.at.sumW), p.weight(), 1)
	zero := unwrap(p.at.zero, p.now())
	near(t, "sum of w * (v - zero)", whole(big.NewInt(p.at.sumV)), whole(p.product(zero)), 1)
	sum := new(big.Rat)
	for _, task := range p.tasks {
		lag := new(big.Rat).Sub(seen, whole(task.v))
		sum.Add(sum, lag.Mul(lag, weight(task.w)))
	}
	near(t, "sum of lags", sum, new(big.Rat), max(1, int64(p.at.sumW)))
}

// arrive lets a task join that is owed lag: it has that lag afterwards.
func (p *replay) arrive(t testing.TB, lag int64, w uint64) {
	t.Helper()
	before, seen := p.now(), p.seen()
	if now := p.next(); now != wrap(seen.Num()) {
		t.Fatalf("moving zero moved V from %s to %d", seen.RatString(), now)
	}
	near(t, "zero", whole(unwrap(p.at.zero, before)), before, rebase+2)
	p.check(t)
	task := &member{v: unwrap(p.next(), before), w: w}
	jump := new(big.Rat).Mul(p.lag(task), weight(w))
	jump.Quo(jump, new(big.Rat).Add(p.weight(), weight(w)))
	p.next()
	p.tasks = append(p.tasks, task)
	near(t, "lag after joining", p.lag(task), big.NewRat(lag, 1), 2)
	near(t, "V after joining", p.seen(), new(big.Rat).Sub(before, jump), 1)
	p.check(t)
}

// depart lets a task leave: the others get what it is still owed.
func (p *replay) depart(t testing.TB, i uint64) {
	t.Helper()
	task, before := p.tasks[i], p.now()
	lag := new(big.Rat).Mul(p.lag(task), weight(task.w))
	p.next()
	p.tasks = append(p.tasks[:i:i], p.tasks[i+1:]...)
	p.empty = before
	if len(p.tasks) > 0 {
		before = new(big.Rat).Add(before, lag.Quo(lag, p.weight()))
	}
	near(t, "V after leaving", p.seen(), before, 1)
	p.check(t)
}

// run lets a task have the CPU: all others are owed more.
func (p *replay) run(t testing.TB, i, ns uint64) {
	t.Helper()
	task, before := p.tasks[i], p.now()
	task.v = new(big.Int).Add(task.v, floor(virtual(ns, task.w)))
	if got := p.next(); got != task.wrapped() {
		t.Fatalf("%d ns at weight %d: v %d, want %d", ns, task.w, got, task.wrapped())
	}
	if p.now().Cmp(before) < 0 {
		t.Fatalf("V went back from %s to %s", before.FloatString(3), p.now().FloatString(3))
	}
	p.check(t)
}

// history is what happens to one queue, and for how many tasks it leaves it.
type history struct {
	commands []command
	tasks    uint64
}

func (h *history) arrive(lag int64, w uint64) {
	if h.tasks == 0 {
		lag = 0 // alone it is neither owed nor does it owe
	}
	h.commands = append(h.commands, command{"rebase", 0, 0}, command{"place", uint64(lag), w}, command{"join", w, 0})
	h.tasks++
}

func (h *history) depart(i uint64) {
	h.commands = append(h.commands, command{"leave", i, 0})
	h.tasks--
}

func (h *history) run(i, ns uint64) { h.commands = append(h.commands, command{"run", i, ns}) }

// play lets it happen, and ends with an empty queue.
func (h *history) play(t testing.TB, d driver, zero uint64) {
	t.Helper()
	for h.tasks > 0 {
		h.depart(0)
	}
	commands := append([]command{{"start", zero, 0}}, h.commands...)
	p := &replay{model: model{empty: weight(zero)}, answers: d.run(t, commands)}
	p.next()
	p.check(t)
	for i, c := range h.commands {
		switch c.name {
		case "place":
			p.arrive(t, int64(c.a), c.b)
		case "leave":
			p.depart(t, c.a)
		case "run":
			p.run(t, c.a, c.b)
		}
		if t.Failed() {
			t.Fatalf("command %d, %v", i, c)
		}
	}
	if p.at.sumW != 0 || p.at.sumV != 0 {
		t.Fatalf("an empty queue is %+v", p.at)
	}
}

// weights from SCHED_IDLE to what the scheduler allows at most.
var weights = []uint64{3, 10, 15, 1024, 1024, 1024, 820, 88761, 1024000, 1 << 23}

// written reads a history out of bytes, three for each event.
func written(script []byte) *history {
	h := &history{}
	for ; len(script) >= 3; script = script[3:] {
		what, which, much := script[0], uint64(script[1]), uint64(script[2])
		switch {
		case h.tasks == 0 || what < 64 && h.tasks < 40:
			w := weights[which%uint64(len(weights))]
			slice := uint64(100_000) << (which / uint64(len(weights)) % 10) // up to 51.2 ms
			limit := floor(virtual(slice+tickNs, w)).Int64()
			h.arrive(limit/128*(int64(much)-128), w)
		case what < 120:
			h.depart(which % h.tasks)
		default:
			h.run(which%h.tasks, (much+1)<<(what%20)) // 1 ns to 134 ms
		}
	}
	return h
}

// zeros are where virtual time begins: soon it wraps, or its sign changes.
var zeros = []uint64{0, 1 << 40, 1<<63 - 1000, 1<<64 - 1000}

func TestQueue(t *testing.T) {
	d := build(t)
	for seed := range uint64(24) {
		random := rand.New(rand.NewPCG(seed, 1))
		script := make([]byte, 3*200)
		for i := range script {
			script[i] = byte(random.Uint64())
		}
		written(script).play(t, d, zeros[seed%uint64(len(zeros))])
	}
}

func FuzzQueue(f *testing.F) {
	d := build(f)
	f.Add(uint64(0), []byte{0, 3, 128, 0, 9, 255, 255, 0, 255, 70, 0, 0})
	f.Add(uint64(1<<64-1), []byte{0, 0, 128, 0, 99, 0, 0, 99, 255, 139, 1, 200, 139, 0, 200, 70, 1, 0})
	f.Fuzz(func(t *testing.T, zero uint64, script []byte) {
		written(script[:min(len(script), 900)]).play(t, d, zero)
	})
}

// The most that may be asked of 64 bits: the heaviest task joins the lightest
// one, with all the lag that it may have taken along.
func TestQueueExtremes(t *testing.T) {
	d := build(t)
	for _, sign := range []int64{1, -1} {
		for _, pairOf := range [][2]uint64{{3, 1 << 23}, {1 << 23, 3}, {1 << 23, 1 << 23}, {3, 3}} {
			h := &history{}
			h.arrive(0, pairOf[0])
			h.run(0, 100_000_000)
			h.arrive(sign*floor(virtual(100_000_000+tickNs, pairOf[1])).Int64(), pairOf[1])
			h.run(1, 100_000_000)
			h.run(0, 100_000_000)
			h.play(t, d, 0)
		}
	}
}
