package hosttest

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// 1 ns at nice 0 is 2^4 units of virtual time.
const (
	shift = 4
	nice0 = 1024
)

// virtual is how far ns of real time move a task of weight w, by definition.
func virtual(ns, w uint64) *big.Rat {
	units := new(big.Rat).SetUint64(ns)
	units.Mul(units, big.NewRat(1<<shift, 1))
	return units.Mul(units, new(big.Rat).Quo(big.NewRat(nice0, 1), weight(w)))
}

func TestVirtualTime(t *testing.T) {
	d := build(t)
	random := rand.New(rand.NewPCG(1, 2))
	times := []uint64{0, 1, 999, 100_000, 3_000_000, 100_000_000, 3_600_000_000_000, 1<<50 - 1}
	for range 200 {
		times = append(times, random.Uint64N(1<<(1+random.Uint64N(50))))
	}
	var commands []command
	for _, ns := range times {
		for _, w := range []uint64{1, 3, 15, 1023, 1024, 1025, 88761, 1 << 23, math.MaxUint32} {
			commands = append(commands, command{"vt", ns, w})
		}
	}
	for i, got := range d.run(t, commands) {
		ns, w := commands[i].a, commands[i].b
		if want := floor(virtual(ns, w)); want.Cmp(new(big.Int).SetUint64(got.result)) != 0 {
			t.Errorf("%d ns at weight %d: %d, want %s", ns, w, got.result, want)
		}
	}
}

// The time in which a queue advances by so much is that of a task of its weight, rounded down.
func TestRealTime(t *testing.T) {
	d := build(t)
	random := rand.New(rand.NewPCG(7, 8))
	var commands []command
	for range 500 {
		w := 1 + random.Uint64N(1<<random.Uint64N(24))
		commands = append(commands, command{"ns", random.Uint64N(math.MaxUint64 / w), w}) // less than 2^50 ns
	}
	commands = append(commands, command{"ns", 0, 1}, command{"ns", 1<<(shift+10) - 1, 1}, command{"ns", 1 << (shift + 10), 1})
	for i, got := range d.run(t, commands) {
		vt, w := commands[i].a, commands[i].b
		want := new(big.Rat).Quo(new(big.Rat).SetUint64(vt), virtual(1, w))
		if floor(want).Cmp(new(big.Int).SetUint64(got.result)) != 0 {
			t.Errorf("%d units at weight %d: %d ns, want %s", vt, w, got.result, floor(want))
		}
	}
}

func TestDivision(t *testing.T) {
	d := build(t)
	random := rand.New(rand.NewPCG(3, 4))
	numbers := []int64{0, 1, -1, 2, -2, 7, -7, math.MaxInt64, -math.MaxInt64}
	divisors := []uint64{1, 2, 3, 1024, math.MaxInt64}
	for range 100 {
		numbers = append(numbers, int64(random.Uint64())>>random.Uint64N(63))
		divisors = append(divisors, 1+random.Uint64()>>(1+random.Uint64N(60)))
	}
	var commands []command
	for i, a := range numbers {
		for j := range 10 {
			commands = append(commands, command{"div", uint64(a), divisors[(i+j)%len(divisors)]})
		}
	}
	for i, got := range d.run(t, commands) {
		a, b := int64(commands[i].a), commands[i].b
		want := new(big.Int).Quo(big.NewInt(a), new(big.Int).SetUint64(b)) // towards zero
		if want.Cmp(big.NewInt(int64(got.result))) != 0 {
			t.Errorf("%d / %d: %d, want %s", a, b, int64(got.result), want)
		}
	}
}

func TestClamp(t *testing.T) {
	d := build(t)
	for _, test := range []struct{ lag, limit, want int64 }{
		{0, 10, 0},
		{9, 10, 9},
		{10, 10, 10},
		{11, 10, 10},
		{-9, 10, -9},
		{-10, 10, -10},
		{-11, 10, -10},
		{5, 0, 0},
		{-5, 0, 0},
		{math.MaxInt64, 1 << 40, 1 << 40},
		{math.MinInt64, 1 << 40, -1 << 40},
	} {
		if got := int64(d.run(t, []command{{"clamp", uint64(test.lag), uint64(test.limit)}})[0].result); got != test.want {
			t.Errorf("%d within %d: %d, want %d", test.lag, test.limit, got, test.want)
		}
	}
}

func TestBefore(t *testing.T) {
	d := build(t)
	for _, test := range []struct {
		a, b uint64
		want uint64
	}{
		{0, 0, 0},
		{0, 1, 1},
		{1, 0, 0},
		{math.MaxUint64, 0, 1}, // the clock has wrapped
		{0, math.MaxUint64, 0},
		{math.MaxUint64 - 5, math.MaxUint64, 1},
		{0, 1<<63 - 1, 1},
		{1<<63 - 1, 0, 0},
	} {
		if got := d.run(t, []command{{"before", test.a, test.b}})[0].result; got != test.want {
			t.Errorf("%d before %d: %d, want %d", test.a, test.b, got, test.want)
		}
	}
}

// TestRequest: who weighs less than half the mean asks for so much less, and for no less than 0.2 ms.
func TestRequest(t *testing.T) {
	d := build(t)
	const slice, least = 2_100_000, 200_000
	for _, c := range []struct {
		name              string
		weight, n, all    uint64
		slice, want, near uint64 // ns
	}{
		{"alone", 1024, 1, 1024, slice, slice, 0},
		{"of equals", 1024, 40, 40 * 1024, slice, slice, 0},
		{"as much as makes no difference", 900, 2, 900 + 1024, slice, slice, 0},
		{"the heavier one", 3121, 2, 3121 + 1024, slice, slice, 0},
		{"half the mean", 512, 4, 2048 + 2048, slice, slice, 0},
		{"a quarter of it", 256, 4, 2048 + 2048, slice, slice / 2, 1},
		{"nice 0 beside nice -5", 1024, 2, 1024 + 3121, slice, slice, 0},
		{"nice 0 beside nice -10", 1024, 2, 1024 + 9548, slice, slice * 4096 / 10572, 1},
		{"nice 19 beside nice -20", 15, 2, 15 + 88761, slice, least, 0},
		{"a short slice stays", 15, 2, 15 + 88761, 100_000, 100_000, 0},
		{"the longest, of the most", 1 << 23, 512, 511<<26 + 1<<23, 100_000_000, 100_000_000 / 4, 100_000},
	} {
		got := d.run(t, []command{{"among", c.n, c.all}, {"ask", c.slice, c.weight}})[1].result
		if got > c.want+c.near || got+c.near < c.want {
			t.Errorf("%s: asks for %d ns, want %d", c.name, got, c.want)
		}
	}
}

// FuzzRequest: between the least and the slice, and who weighs more asks for no less.
func FuzzRequest(f *testing.F) {
	d := build(f)
	f.Add(uint64(2_100_000), uint64(15), uint64(7), uint64(88761))
	f.Fuzz(func(t *testing.T, slice, w, n, others uint64) {
		slice, w, n, others = 100_000+slice%100_000_000, 1+w%(1<<23), 1+n%8192, others%(1<<36)
		got := d.run(t, []command{{"among", n, w + others}, {"ask", slice, w}, {"ask", slice, w + w/2}})
		least := min(slice, 200_000)
		if a, b := got[1].result, got[2].result; a < least || a > slice || b < a {
			t.Errorf("slice %d, weight %d of %d, %d of them: %d ns, with half as much again %d", slice, w, w+others, n, a, b)
		}
	})
}
