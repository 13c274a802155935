package oracle

import (
	"math"
	"math/bits"
)

// wide is a signed number of 128 bits. A sum of weight times virtual time needs
// at most 96 bits per task, so that no record can make it overflow.
type wide struct {
	hi int64
	lo uint64
}

// product is a*b.
func product(a int64, b uint64) wide {
	hi, lo := bits.Mul64(magnitude(a), b)
	p := wide{int64(hi), lo}
	if a < 0 {
		return p.minus()
	}
	return p
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

func (a wide) plus(b wide) wide {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	hi, _ := bits.Add64(uint64(a.hi), uint64(b.hi), carry)
	return wide{int64(hi), lo}
}

func (a wide) minus() wide {
	lo, carry := bits.Add64(^a.lo, 1, 0)
	return wide{int64(^uint64(a.hi) + carry), lo}
}

// over is a/b rounded down; what does not fit into 64 bits is cut to the limits.
// b must not be 0.
func (a wide) over(b uint64) int64 {
	n := a
	if a.hi < 0 {
		n = a.minus()
	}
	if uint64(n.hi) >= b {
		return limits(a.hi < 0)
	}
	q, rest := bits.Div64(uint64(n.hi), n.lo, b)
	if q > math.MaxInt64 {
		return limits(a.hi < 0)
	}
	if a.hi >= 0 {
		return int64(q)
	}
	if rest != 0 {
		return -int64(q) - 1
	}
	return -int64(q)
}

func limits(negative bool) int64 {
	if negative {
		return math.MinInt64
	}
	return math.MaxInt64
}
