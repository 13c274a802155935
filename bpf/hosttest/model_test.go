package hosttest

import (
	"math/big"
	"testing"
)

// member is a task that competes: v does not wrap here.
type member struct {
	v *big.Int
	w uint64
}

func (m *member) wrapped() uint64 { return wrap(m.v) }

// wrap is what 64 bits hold of v.
func wrap(v *big.Int) uint64 {
	return new(big.Int).And(v, new(big.Int).SetUint64(^uint64(0))).Uint64()
}

// unwrap is the number nearest to near that 64 bits hold as got.
func unwrap(got uint64, near *big.Rat) *big.Int {
	base := floor(near)
	return base.Add(base, big.NewInt(int64(got-wrap(base))))
}

func floor(r *big.Rat) *big.Int { return new(big.Int).Div(r.Num(), r.Denom()) }

func whole(v *big.Int) *big.Rat { return new(big.Rat).SetInt(v) }

func weight(w uint64) *big.Rat { return new(big.Rat).SetUint64(w) }

// model is a queue by its definition: nothing but its tasks, or, without any,
// the V that it had last.
type model struct {
	tasks []*member
	empty *big.Rat
}

func (m *model) weight() *big.Rat {
	sum := new(big.Rat)
	for _, task := range m.tasks {
		sum.Add(sum, weight(task.w))
	}
	return sum
}

// now is V, the weighted mean.
func (m *model) now() *big.Rat {
	if len(m.tasks) == 0 {
		return m.empty
	}
	sum := new(big.Rat)
	for _, task := range m.tasks {
		sum.Add(sum, new(big.Rat).Mul(weight(task.w), whole(task.v)))
	}
	return sum.Quo(sum, m.weight())
}

// lag is V - v of a task, in virtual time.
func (m *model) lag(task *member) *big.Rat { return new(big.Rat).Sub(m.now(), whole(task.v)) }

// product is w * (v - zero), summed up over all tasks.
func (m *model) product(zero *big.Int) *big.Int {
	sum := new(big.Int)
	for _, task := range m.tasks {
		distance := new(big.Int).Sub(task.v, zero)
		sum.Add(sum, distance.Mul(distance, new(big.Int).SetUint64(task.w)))
	}
	return sum
}

// near fails the test unless got is less than limit away from want.
func near(t testing.TB, what string, got, want *big.Rat, limit int64) {
	t.Helper()
	distance := new(big.Rat).Sub(got, want)
	if distance.Abs(distance).Cmp(big.NewRat(limit, 1)) >= 0 {
		t.Fatalf("%s: %s, want %s: off by %s, at most %d", what, got.FloatString(3), want.FloatString(3), distance.FloatString(3), limit)
	}
}
