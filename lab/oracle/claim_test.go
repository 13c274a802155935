package oracle

import "testing"

// A claim ends when the queue that owes it is emptied, though others are there again,
// and wherever the task wakes; where another CPU empties it in that moment, either is right.
func TestClaimLapses(t *testing.T) {
	const (
		v     = 1000 * ms
		now   = v + 32*ms // of CPU 0, where the other task ran for 2 ms
		claim = 32 * ms
	)
	goes := at(Leave, LeaveSleep|LeaveLast, 1, now, 0)
	comes := at(Join, JoinEmpty, 1, now, now+whole)
	leaves := at(Leave, LeaveSleep, 1, now, 0) // it was not the last one, who goes unseen
	for _, test := range []struct {
		name    string
		between []Event // that CPU 0 writes
		wakesOn uint16  // CPU
		writer  uint16
		before  uint64 // how long ago they were, ns
		owed    bool
		either  bool
	}{
		{"stays", nil, 0, 0, ms, true, false},
		{"emptied", []Event{goes, comes}, 0, 0, ms, false, false},
		{"emptied, and woken by another CPU at once", []Event{goes, comes}, 0, 1, Late / 2, false, false},
		{"stays, wakes elsewhere", nil, 1, 1, ms, true, false},
		{"emptied, wakes elsewhere", []Event{goes, comes}, 1, 1, ms, false, false},
		{"left by all, wakes elsewhere", []Event{goes}, 1, 1, ms, false, false},
		{"nobody was left, wakes elsewhere", []Event{leaves, comes}, 1, 1, ms, false, false},
		{"emptied, wakes elsewhere at once", []Event{goes, comes}, 1, 1, Late / 2, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			record := func(lag int64) *Record {
				other := at(Join, JoinEmpty, 3, v, v+whole)
				other.CPU = 1
				ran := at(Charge, 0, 1, now, v+whole)
				ran.Span = 2 * ms
				events := append([]Event{at(Join, JoinEmpty, 1, v, v+whole), at(Join, 0, 2, v-1, v-1+whole), other, ran,
					at(Leave, LeaveSleep, 2, v-1, 0)}, test.between...)
				there := uint64(now)
				if test.wakesOn == 1 {
					there = v
				}
				back := at(Join, 0, 2, there-uint64(lag)-1, there-uint64(lag)-1+whole)
				back.NowV, back.Tier, back.CPU, back.Writer = there, 1, test.wakesOn, test.writer
				rec := story(events...)
				rec.Parts = append(rec.Parts, nil)
				back.Time = rec.Parts[0][len(events)-1].Time + test.before
				rec.Parts[test.writer] = append(rec.Parts[test.writer], back)
				return rec
			}
			right, wrong := int64(0), int64(claim)
			if test.owed {
				right, wrong = wrong, right
			}
			if report := Check(record(right)); report.Faults[BadPlacement] != 0 || report.Raced() != 0 {
				t.Error(report)
			}
			for _, lag := range []int64{right - 100, claim / 2} {
				if report := Check(record(lag)); report.Faults[BadPlacement] != 1 {
					t.Errorf("lag %d:\n%s", lag, report)
				}
			}
			report := Check(record(wrong))
			if (report.Faults[BadPlacement] == 0) != test.either || (report.Raced() == 1) != test.either {
				t.Errorf("lag %d:\n%s", wrong, report)
			}
		})
	}
}
