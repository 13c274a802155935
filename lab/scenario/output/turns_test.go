package output

import (
	"encoding/binary"
	"math"
	"testing"
)

// turnsBoard is a board on which hogs have counted: turns, ns of CPU time and
// lag of each, and one turn in the given bucket. The last turn goes on for 900 us.
func turnsBoard(hogs [][3]uint64, bucket int) []byte {
	data := make([]byte, boardSlots*slotSize)
	for i, hog := range hogs {
		at := data[i*TurnsSlots*slotSize:]
		for n, word := range []int{0, 1, 2} {
			binary.NativeEndian.PutUint64(at[8*word:], hog[n])
		}
		binary.NativeEndian.PutUint64(at[40:], hog[1]-900_000)
		binary.NativeEndian.PutUint64(at[slotSize+8*bucket:], 1)
	}
	return data
}

func TestReadTurns(t *testing.T) {
	list, err := ReadTurns(turnsBoard([][3]uint64{{10, 1_000_000, 5}, {2, 3_000_000, 7}}, 31), 2)
	if err != nil {
		t.Fatal(err)
	}
	if list[0].MeanUs() != 10 || list[1].MeanUs() != 1050 {
		t.Errorf("means are %v and %v us, want 10 and 1050", list[0].MeanUs(), list[1].MeanUs())
	}
	if sum := JoinTurns(list); sum.Count != 12 || sum.LagNs != 7 || sum.Buckets[31].Count != 2 || sum.Buckets[30].Count != 0 {
		t.Errorf("together they are %+v", sum)
	}
	if got := ShareErrorPct(list); math.Abs(got-50) > 1e-9 {
		t.Errorf("share error is %v %%, want 50", got)
	}
	for name, c := range map[string]struct {
		data []byte
		hogs int
	}{
		"short":    {make([]byte, 10), 1},
		"no hogs":  {turnsBoard(nil, 0), 0},
		"too many": {turnsBoard(nil, 0), 13},
		"no turn":  {turnsBoard([][3]uint64{{1, 900_000, 1}}, 0), 2},
	} {
		if _, err := ReadTurns(c.data, c.hogs); err == nil {
			t.Errorf("%s: was accepted", name)
		}
	}
}

func TestTurnLimits(t *testing.T) {
	last := 0.0
	for n := range turnBuckets {
		low, high := turnLimits(n)
		if low != last || high <= low {
			t.Errorf("bucket %d is %v..%v after %v", n, low, high, last)
		}
		last = high
	}
	if low, high := turnLimits(1); low != 12288 || high != 16384 {
		t.Errorf("bucket 1 is %v..%v", low, high)
	}
	if last < 300e6 {
		t.Errorf("the last bucket ends at %v ns", last)
	}
}
