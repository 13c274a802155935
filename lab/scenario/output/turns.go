package output

import (
	"encoding/binary"
	"fmt"
	"math"
)

// TurnsSlots is how many slots of a board one hog of the load turns has: its
// counters and its histogram (see turns.c).
const TurnsSlots = 5

const (
	turnBuckets   = 32
	turnLowestBit = 13 // the first bucket begins at 2^13 ns
	turnEndedAt   = 40 // where a slot has the time of the turns that ended
)

// Turns is what a hog of the load turns has counted.
type Turns struct {
	Count   uint64
	EndedNs float64 // time of these turns
	CPUNs   float64 // time that it had, the turn that goes on included
	LagNs   float64 // greatest distance from the fair share that it saw, of anybody
	Buckets []TurnBucket
}

// TurnBucket counts the turns of LowNs to HighNs.
type TurnBucket struct {
	LowNs, HighNs float64
	Count         int64
}

// ReadTurns reads the hogs of the load turns from its board.
func ReadTurns(data []byte, hogs int) ([]Turns, error) {
	slots, err := Board(data)
	if err != nil {
		return nil, err
	}
	if hogs < 1 || hogs*TurnsSlots > len(slots) {
		return nil, fmt.Errorf("turns: %d hogs: a board has room for %d", hogs, len(slots)/TurnsSlots)
	}
	list := make([]Turns, hogs)
	for i := range list {
		slot := slots[i*TurnsSlots]
		if slot.Loops == 0 {
			return nil, fmt.Errorf("turns: hog %d has not ended one turn", i)
		}
		ended := binary.NativeEndian.Uint64(data[i*TurnsSlots*slotSize+turnEndedAt:])
		list[i] = Turns{Count: slot.Loops, EndedNs: float64(ended), CPUNs: float64(slot.CPUNs), LagNs: float64(slot.GapNs)}
		counts := data[(i*TurnsSlots+1)*slotSize:]
		for n := range turnBuckets {
			low, high := turnLimits(n)
			count := binary.NativeEndian.Uint64(counts[8*n:])
			list[i].Buckets = append(list[i].Buckets, TurnBucket{LowNs: low, HighNs: high, Count: int64(count)})
		}
	}
	return list, nil
}

// turnLimits are the limits of a bucket: two per power of two, and the first
// and last take the rest.
func turnLimits(n int) (low, high float64) {
	limit := func(n int) float64 { return math.Ldexp(1+float64(n%2)/2, turnLowestBit+n/2) }
	if low = limit(n); n == 0 {
		low = 0
	}
	return low, limit(n + 1)
}

// MeanUs is the mean length of the turns that have ended, in us.
func (t Turns) MeanUs() float64 {
	if t.Count == 0 {
		return 0
	}
	return t.EndedNs / float64(t.Count) / 1000
}

// JoinTurns adds up the turns of several hogs; the lag is the greatest.
func JoinTurns(list []Turns) Turns {
	var sum Turns
	for _, t := range list {
		sum.Count += t.Count
		sum.EndedNs += t.EndedNs
		sum.CPUNs += t.CPUNs
		sum.LagNs = max(sum.LagNs, t.LagNs)
		for n, b := range t.Buckets {
			if len(sum.Buckets) <= n {
				sum.Buckets = append(sum.Buckets, TurnBucket{LowNs: b.LowNs, HighNs: b.HighNs})
			}
			sum.Buckets[n].Count += b.Count
		}
	}
	return sum
}

// ShareErrorPct is how far the hog that is farthest from an equal share of the
// time that all had is from it, in percent of the share.
func ShareErrorPct(list []Turns) float64 {
	fair := JoinTurns(list).CPUNs / float64(len(list))
	worst := 0.0
	for _, t := range list {
		worst = max(worst, 100*math.Abs(t.CPUNs/fair-1))
	}
	return worst
}
