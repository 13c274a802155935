package oracle

import "testing"

// A turn that is over ends within Linger once somebody has come to wait. Who was picked
// out of turn may go on, and so may who wakes one after the other. A choice that lets it
// go on ends it, too.
func TestLateTurn(t *testing.T) {
	const (
		rescued  = 100 + iota // picked by Dispatch, after a turn by Rescue
		twice                 // with two slices to go
		switches              // whose wakers run in turns
		chooses               // whose wakers go on in turns
		told                  // whom another CPU than the one that wakes then has told
	)
	for _, test := range []struct {
		name  string
		how   uint16 // task 1 was picked
		ran   uint64 // for so long, ns
		by    uint16 // the CPU that then wakes the others
		wakes uint32
		every uint64 // so long after each other, ns
		then  Kind   // what ends the turn
		after uint64 // the last of them, ns
		late  bool
	}{
		{"out of turn before", rescued, 3 * ms, 1, 1, 0, Charge, Linger + 1, true},
		{"a request of two slices", twice, 3 * ms, 1, 1, 0, Charge, Linger + 1, false},
		{"two slices, over", twice, 6 * ms, 1, 1, 0, Charge, Linger + 1, true},
		{"in time", Dispatch, 3 * ms, 1, 1, 0, Charge, Linger, false},
		{"late", Dispatch, 3 * ms, 1, 1, 0, Charge, Linger + 1, true},
		{"late, by itself", Dispatch, 3 * ms, 0, 1, 0, Charge, Linger + 1, true},
		{"a choice in time", Dispatch, 3 * ms, 1, 1, 0, Pick, Linger, false},
		{"a late choice", Dispatch, 3 * ms, 1, 1, 0, Pick, Linger + 1, true},
		{"not over yet", Dispatch, 3*ms - 1000, 1, 1, 0, Charge, Linger + 1, false},
		{"out of turn", Rescue, 3 * ms, 1, 1, 0, Charge, Linger + 1, false},
		{"many", Dispatch, 3 * ms, 0, 20, inRow - 1, Charge, Linger, false},
		{"many, and late", Dispatch, 3 * ms, 0, 20, inRow - 1, Charge, Linger + 1, true},
		{"many, by another CPU", Dispatch, 3 * ms, 1, 20, inRow - 1, Charge, Linger, false},
		{"many, by another CPU, and late", Dispatch, 3 * ms, 1, 20, inRow - 1, Charge, Linger + 1, true},
		{"many, by another CPU that switches", switches, 3 * ms, 1, 20, inRow - 1, Charge, Linger, true},
		{"many, by another CPU that chooses", chooses, 3 * ms, 1, 20, inRow - 1, Charge, Linger, true},
		{"many, when another CPU had told it", told, 3 * ms, 1, 20, inRow - 1, Charge, Linger, true},
		{"very many, by another CPU", Dispatch, 3 * ms, 1, 2 * longestRow / inRow, inRow - 1, Charge, Linger, true},
		{"many, one by one, by another CPU", Dispatch, 3 * ms, 1, 20, inRow, Charge, Linger, true},
		{"many, one by one", Dispatch, 3 * ms, 0, 20, inRow, Charge, Linger, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			const v, request = 1000 * ms, 48 * ms
			rec := &Record{Capacity: 1 << 10, Parts: make([][]Event, 3)}
			time := uint64(ms)
			write := func(by uint16, e Event) {
				e.Time, e.Tier, e.Writer = time, 1, by
				rec.Parts[by] = append(rec.Parts[by], e)
			}
			deadline, how := uint64(v+request), test.how
			if how == twice {
				deadline, how = v+2*request, Dispatch
			}
			write(0, at(Join, JoinEmpty, 1, v, deadline))
			write(0, at(Wait, 0, 1, v, deadline))
			if how == rescued {
				write(0, Event{Kind: Pick, How: Rescue, TID: 1, NowV: v})
				write(0, Event{Kind: Run, TID: 1})
				write(0, at(Wait, 0, 1, v, deadline))
				how = Dispatch
			}
			if how >= switches {
				how = Dispatch
			}
			write(0, Event{Kind: Pick, How: how, TID: 1, NowV: v})
			write(0, Event{Kind: Run, TID: 1})
			for i, span := uint32(0), test.ran; i < test.wakes; i, span = i+1, test.every {
				time += span
				by := test.by
				if test.how == told && i == 0 {
					by = 2
				}
				write(by, Event{Kind: Ahead, TID: 1, Weight: 1024, Span: span})
				write(by, at(Join, 0, 2+i, v, v+request))
				write(by, at(Wait, 0, 2+i, v, v+request))
				there := Event{Time: time, CPU: by, Tier: 1, Writer: by, TID: 99}
				switch test.how {
				case switches:
					there.Kind = Run
				case chooses:
					there.Kind, there.How = Pick, Keep
				default:
					continue
				}
				rec.Parts[by] = append(rec.Parts[by], there)
			}
			time += test.after
			end := at(test.then, 0, 1, v, v+request)
			if test.then == Pick {
				end.How = Keep
			}
			end.Span = time - ms
			write(0, end)
			if report := Check(rec); (report.Faults[LateTurn] > 0) != test.late {
				t.Errorf("late %t:\n%s", test.late, report)
			}
		})
	}
}
