package oracle

import "testing"

// A claim ends when the queue that owes it is emptied, though others are there again,
// and wherever the task wakes; where another CPU empties it in that moment, either is right.
func TestClaimLapses(t *testing.T) {
	const v = 1000 * ms
	for _, test := range []struct {
		name    string
		empties bool   // the other task leaves CPU 0, and comes back
		wakesOn uint16 // CPU
		before  uint64 // when it does, before the task wakes there, ns
		v       int64  // where it must be, after V
		races   bool   // and may be owed what it was
	}{
		{"stays", false, 0, ms, -32*ms - 1, false},
		{"emptied", true, 0, ms, -1, false},
		{"stays, wakes elsewhere", false, 1, ms, -32*ms - 1, false},
		{"emptied, wakes elsewhere", true, 1, ms, -1, false},
		{"emptied, wakes elsewhere at once", true, 1, Late / 2, -1, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			record := func(off int64) *Record {
				stays, goes := at(Join, JoinEmpty, 1, v, v+whole), at(Join, 0, 2, v-1, v-1+whole)
				other := at(Join, JoinEmpty, 3, v, v+whole)
				other.CPU = 1
				ran := at(Charge, 0, 1, v+32*ms, v+whole)
				ran.Span = 2 * ms
				events := []Event{stays, goes, other, ran, at(Leave, LeaveSleep, 2, v-1, 0)}
				now := uint64(v + 32*ms)
				if test.empties {
					events = append(events, at(Leave, LeaveSleep|LeaveLast, 1, now, 0), at(Join, JoinEmpty, 1, now, now+whole))
				}
				if test.wakesOn == 1 {
					now = v
				}
				back := at(Join, 0, 2, now+uint64(test.v+off), now+uint64(test.v+off)+whole)
				back.NowV, back.Tier, back.CPU, back.Writer = now, 1, test.wakesOn, test.wakesOn
				rec := story(events...)
				rec.Parts = append(rec.Parts, nil)
				back.Time = rec.Parts[0][len(events)-1].Time + test.before
				rec.Parts[test.wakesOn] = append(rec.Parts[test.wakesOn], back)
				return rec
			}
			if report := Check(record(0)); report.Wrong() != 0 || report.Raced() != 0 {
				t.Error(report)
			}
			if report := Check(record(100)); report.Faults[BadPlacement] != 1 {
				t.Errorf("off by 100:\n%s", report)
			}
			if test.v == -1 {
				report := Check(record(-32 * ms))
				if wrong := report.Faults[BadPlacement] == 1; wrong == test.races || report.Raced() != 0 != test.races {
					t.Errorf("with the claim:\n%s", report)
				}
			}
		})
	}
}
