package oracle

import "testing"

// joined is a task that leaves a queue with some lag and joins another one,
// where one task of weight 1024 is.
type joined struct {
	name     string
	how      uint16 // of its departure
	lag      int64  // then, virtual
	tier     uint8  // that it joins
	weight   uint32
	v        int64 // where it must be, after V
	deadline int64 // after v
}

const whole = 48 * ms // a request of 3 ms at nice 0, virtual

// record moves the task from CPU 0 to CPU 1, and places it off by so many units.
func (j joined) record(offV, offDeadline int64) *Record {
	const v, away = 1000 * ms, 1000*ms + 7777
	stays := at(Join, JoinEmpty, 1, v, v+whole)
	other := at(Join, JoinEmpty, 9, away, away+whole)
	other.Tier, other.CPU = j.tier, 1
	goes := at(Join, 0, 2, v-1, v-1+whole)
	goes.NowV = v
	// One of the two runs by twice the lag: V is in the middle.
	ran := at(Charge, 0, 1, v+uint64(2*j.lag), v+uint64(2*j.lag)+whole)
	if 2*j.lag < whole {
		ran.Deadline = v + whole
	}
	if j.lag < 0 {
		ran = at(Charge, 0, 2, v-1+uint64(-2*j.lag), v-1+whole)
	}
	ran.Span = magnitude(2*j.lag) / 16
	left := at(Leave, j.how, 2, v-1, 0)
	if j.lag < 0 {
		left.V = ran.V
	}
	left.NowV = v + magnitude(j.lag) - 1
	back := at(Join, 0, 2, away+uint64(j.v+offV), away+uint64(j.v+offV+j.deadline+offDeadline))
	back.Weight, back.CPU, back.NowV = j.weight, 1, away
	rec := story(stays, other, goes, ran, left, back)
	rec.Parts[0][1].Tier, rec.Parts[0][5].Tier = j.tier, j.tier
	rec.Parts = append(rec.Parts, nil)
	return rec
}

func TestPlacements(t *testing.T) {
	for _, test := range []joined{
		{"moves with a claim", 0, 16 * ms, 1, 1024, -32*ms - 1, whole},
		{"moves with a debt", 0, -16 * ms, 1, 1024, 32*ms - 1, whole - 32*ms},
		{"moves with too much", 0, 500 * ms, 1, 1024, -2*(whole+64*ms) - 1, whole},
		{"moves and weighs more", 0, 16 * ms, 1, 2048, -8*ms*3 - 1, whole / 2},
		{"moves to the background", 0, 16 * ms, 2, 1024, -1, whole},
		{"moves to the background with a debt", 0, -16 * ms, 2, 1024, -1, whole},
		{"slept elsewhere with a claim", LeaveSleep, 16 * ms, 1, 1024, -32*ms - 1, whole},
	} {
		t.Run(test.name, func(t *testing.T) {
			if report := Check(test.record(0, 0)); report.Wrong() != 0 {
				t.Error(report)
			}
			for _, off := range [][2]int64{{100, 0}, {-100, 0}, {0, 10}, {0, -10}} {
				if report := Check(test.record(off[0], off[1])); report.Wrong() != 1 || report.Faults[BadPlacement] != 1 {
					t.Errorf("off by %v:\n%s", off, report)
				}
			}
		})
	}
}

// A claim that was left in this queue counts.
func TestPlacementAfterSleep(t *testing.T) {
	const v = 1000 * ms
	stays, goes := at(Join, JoinEmpty, 1, v, v+whole), at(Join, 0, 2, v-1, v-1+whole)
	ran := at(Charge, 0, 1, v+32*ms, v+whole)
	ran.Span = 2 * ms
	left := at(Leave, LeaveSleep, 2, v-1, 0)
	now := uint64(v + 32*ms) // V of the one that stays
	back := at(Join, 0, 2, now-32*ms-1, now-32*ms-1+whole)
	back.NowV = now
	if report := Check(story(stays, goes, ran, left, back)); report.Wrong() != 0 {
		t.Error(report)
	}
}
