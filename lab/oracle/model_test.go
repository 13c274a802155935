package oracle

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

const (
	quantum = 1_000_000               // ns
	unit    = quantum * unitsPerNs    // of the paper's virtual time: a quantum over weight 1
	origin  = math.MaxUint64 - 5*unit // so that the clock wraps in every test
)

// place is a client without lag.
func place(q *queue, tid, weight, request uint32) *client {
	c := &client{tid: tid, weight: weight, request: request, v: q.now(), state: waiting}
	c.deadline = c.v + c.requestVT()
	q.join(c)
	return c
}

func emptyQueue() *queue {
	q := newQueue(0, 1)
	q.still = origin
	return q
}

// inQuarters is a virtual time in quarters of the paper's unit.
func inQuarters(v uint64) int64 { return apart(v, origin) * 4 / unit }

// The example of the paper: weights 2 and 2, requests of 2 and 1 quanta; the
// first client comes at 0, the second at 1. Ties go to the second.
func TestWorkedExample(t *testing.T) {
	type row struct {
		now, ve1, vd1, ve2, vd2 int64 // in quarters
		runs                    uint32
	}
	rows := []row{
		{0, 0, 4, 0, 0, 1}, {2, 0, 4, 2, 4, 2}, {3, 0, 4, 4, 6, 1}, {4, 4, 8, 4, 6, 2},
		{5, 4, 8, 6, 8, 1}, {6, 4, 8, 6, 8, 2}, {7, 4, 8, 8, 10, 1}, {8, 8, 12, 8, 10, 2},
	}
	q := emptyQueue()
	one := place(q, 1, 2, 2*quantum)
	var two *client
	used := map[uint32]int64{} // quanta of the request that were got
	for at, row := range rows {
		if at == 1 {
			two = place(q, 2, 2, quantum)
		}
		if got := inQuarters(q.now()); got != row.now {
			t.Errorf("at %d: V is %d quarters, want %d", at, got, row.now)
		}
		// The paper's ve is where the request began; v has moved on by what was used.
		if ve, vd := inQuarters(one.v)-2*used[1], inQuarters(one.deadline); ve != row.ve1 || vd != row.vd1 {
			t.Errorf("at %d: client 1 at (%d, %d), want (%d, %d)", at, ve, vd, row.ve1, row.vd1)
		}
		if two != nil && (inQuarters(two.v) != row.ve2 || inQuarters(two.deadline) != row.vd2) {
			t.Errorf("at %d: client 2 at (%d, %d), want (%d, %d)", at, inQuarters(two.v), inQuarters(two.deadline), row.ve2, row.vd2)
		}
		best := q.best(q.now(), 0, nil)
		if two != nil && two.eligible(q.now(), 0) && two.deadline == best.deadline {
			best = two
		}
		if best.tid != row.runs {
			t.Errorf("at %d: client %d runs, want %d", at, best.tid, row.runs)
		}
		q.charge(best, quantum)
		used[best.tid] = (used[best.tid] + 1) % map[uint32]int64{1: 2, 2: 1}[best.tid]
	}
}

func TestWorkedExampleOtherTies(t *testing.T) {
	q := emptyQueue()
	one := place(q, 1, 2, 2*quantum)
	var runs []uint32
	for at := range 8 {
		if at == 1 {
			place(q, 2, 2, quantum)
		}
		best := q.best(q.now(), 0, nil)
		if one.eligible(q.now(), 0) && one.deadline == best.deadline {
			best = one
		}
		runs = append(runs, best.tid)
		q.charge(best, quantum)
	}
	if want := []uint32{1, 1, 2, 2, 1, 1, 2, 2}; !slices.Equal(runs, want) {
		t.Errorf("runs %v, want %v", runs, want)
	}
}

// meanOf is V by definition, in exact fractions.
func meanOf(q *queue) *big.Rat {
	sum, weight := new(big.Int), new(big.Int)
	for _, list := range [][]*client{q.clients, q.gone} {
		for _, c := range list {
			w := big.NewInt(int64(c.weight))
			sum.Add(sum, new(big.Int).Mul(big.NewInt(apart(c.at(), origin)), w))
			weight.Add(weight, w)
		}
	}
	return new(big.Rat).SetFrac(sum, weight)
}

func someQueue(random *rand.Rand, n int) *queue {
	q := emptyQueue()
	for i := range n {
		weight := uint32(1) + random.Uint32N(1<<(1+random.Uint32N(17)))
		place(q, uint32(i+1), weight, 100_000+random.Uint32N(20_000_000))
	}
	return q
}

// Sum of lags 0, a lag of at least 0 is eligible, and somebody always is.
func TestLags(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		q := someQueue(random, 1+random.IntN(20))
		for range 200 {
			best := q.best(q.now(), 0, nil)
			if best == nil {
				t.Fatal("nobody is eligible")
			}
			q.charge(best, 1+random.Uint64N(uint64(best.request)))
			if random.IntN(4) == 0 {
				q.advance(q.clients[random.IntN(len(q.clients))], random.Uint64N(1_000_000))
			}
			mean := meanOf(q)
			floor := new(big.Int).Div(mean.Num(), mean.Denom())
			if floor.Int64() != apart(q.now(), origin) {
				t.Fatalf("V is %d, want %s", apart(q.now(), origin), floor)
			}
			lags := new(big.Rat)
			for _, c := range q.clients {
				lag := new(big.Rat).Sub(mean, new(big.Rat).SetInt64(apart(c.at(), origin)))
				if c.eligible(q.now(), 0) != (lag.Sign() >= 0) {
					t.Fatalf("lag %s, eligible %t", lag, c.eligible(q.now(), 0))
				}
				lags.Add(lags, lag.Mul(lag, new(big.Rat).SetInt64(int64(c.weight))))
			}
			if lags.Sign() != 0 {
				t.Fatalf("the lags' sum is %s", lags)
			}
		}
	}
}

// V jumps by lag/W when a client leaves and by -lag/W when it comes back with
// its lag; W is the weight of the others.
func TestJumps(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	for range 500 {
		q := someQueue(random, 2+random.IntN(10))
		for range 50 {
			q.charge(q.best(q.now(), 0, nil), 1+random.Uint64N(5_000_000))
		}
		c := q.clients[random.IntN(len(q.clients))]
		before, v := q.now(), c.v
		claim := apart(before, v)
		q.leave(c)
		jump := scale(claim, uint64(c.weight), q.weight)
		if got := apart(q.now(), before); magnitude(got-jump) > 2+uint64(c.weight)/q.weight {
			t.Fatalf("V jumps by %d, want %d", got, jump)
		}
		// Where it comes back it has its lag again, and V goes back.
		c.v = placed(q.now(), claim, q.weight, c.weight)
		q.join(c)
		round := 4 + 2*(q.weight/(q.weight-uint64(c.weight)))
		if far(c.v, v) > round || far(q.now(), before) > round {
			t.Fatalf("back at %+d, V at %+d", apart(c.v, v), apart(q.now(), before))
		}
	}
}

// Nobody joins or leaves: every request is fulfilled by its deadline and a
// quantum, and no lag is beyond the paper's bound.
func TestDeadlines(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	const most = 1_000_000 // ns of a quantum
	for range 100 {
		q := someQueue(random, 1+random.IntN(15))
		longest := 0.0
		for _, c := range q.clients {
			longest = max(longest, float64(c.request))
		}
		for range 2000 {
			c := q.best(q.now(), 0, nil)
			promised := c.deadline
			left := uint64(apart(promised, c.v))*uint64(c.weight)/unitsPerNs + 1 // ns, rounded up
			q.charge(c, min(most, left))
			if c.deadline == promised {
				continue
			}
			// A quantum is so much of V.
			if late := apart(q.now(), promised); late > int64(most*unitsPerNs/q.weight)+16 {
				t.Fatalf("fulfilled %d units after its deadline", late)
			}
			for _, o := range q.clients {
				// Rounding is up to some units, of which one is weight/16384 ns.
				round := 16 + 16*float64(o.weight)/unitsPerNs
				if lag := q.lag(o, q.now()); lag < -float64(o.request)-round || lag > max(longest, most)+round {
					t.Fatalf("lag %.0f ns, request %d ns", lag, o.request)
				}
			}
		}
	}
}

func TestWide(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	numbers := []int64{0, 1, -1, math.MaxInt64, math.MinInt64, 7, -7}
	for range 50 {
		numbers = append(numbers, int64(random.Uint64())>>random.Uint64N(64))
	}
	for _, a := range numbers {
		for _, b := range numbers {
			w, d := magnitude(b), magnitude(b)|1
			exact := new(big.Int).Mul(big.NewInt(a), new(big.Int).SetUint64(w))
			exact.Add(exact, exact).Sub(exact, big.NewInt(b))
			p := product(a, w)
			p = p.plus(p).plus(product(b, 1).minus())
			quotient := new(big.Int).Div(exact, new(big.Int).SetUint64(d)) // d > 0: rounded down
			want := limits(quotient.Sign() < 0)
			if quotient.IsInt64() {
				want = quotient.Int64()
			}
			if got := p.over(d); got != want && !(want == math.MinInt64 && got <= math.MinInt64+1) {
				t.Fatalf("(2*%d*%d-%d)/%d: %d, want %d", a, w, b, d, got, want)
			}
		}
	}
}

func TestVirtual(t *testing.T) {
	for _, test := range []struct {
		ns     uint64
		weight uint32
		want   uint64
	}{
		{1, 1024, 16}, {1, 1, 16384}, {999, 3, 999 * 16384 / 3}, {1, 1 << 15, 0}, {3, 1 << 15, 1},
		{math.MaxUint64, 1, math.MaxInt64}, {1, 0, 16384},
	} {
		if got := virtual(test.ns, test.weight); got != test.want {
			t.Errorf("%d ns at weight %d: %d, want %d", test.ns, test.weight, got, test.want)
		}
	}
}
