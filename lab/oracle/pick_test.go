package oracle

import (
	"slices"
	"strings"
	"testing"
)

const ms = 1_000_000

// story makes a record of one queue from its events, in order, 1 ms apart:
// nothing is a race.
func story(events ...Event) *Record {
	for i := range events {
		events[i].Time, events[i].Tier = uint64(i+1)*ms, 1
	}
	return &Record{Capacity: 1 << 10, Parts: [][]Event{events}}
}

// at is an event about a task of weight 1024 that asks for 3 ms.
func at(kind Kind, how uint16, tid uint32, v, deadline uint64) Event {
	return Event{Kind: kind, How: how, TID: tid, V: v, Deadline: deadline, Weight: 1024, Request: 3 * ms, Slice: 3 * ms}
}

// Three tasks of 16 units per ns: 1 waits at 1000, 2 at 2000 with the earliest
// deadline but after V, 3 at 1000 with a later deadline than 1.
func three(then ...Event) *Record {
	const request = 48 * ms
	in := func(tid uint32, how uint16, v, nowV, deadline uint64) []Event {
		join := at(Join, how, tid, v, deadline)
		join.NowV = nowV
		return []Event{join, at(Wait, 0, tid, v, deadline)}
	}
	events := in(1, JoinEmpty, 1000*ms, 0, 1000*ms+request)
	events = append(events, in(3, 0, 1000*ms-1, 1000*ms, 1000*ms-1+request)...)
	events = append(events, in(2, JoinNew, 1000*ms-2, 1000*ms-1, 1000*ms-2+request/2)...)
	return story(append(events, then...)...)
}

func TestPicks(t *testing.T) {
	const v, request = 1000 * ms, 48 * ms
	run := func(tid uint32) Event { return Event{Kind: Run, TID: tid} }
	pick := func(how uint16, tid uint32) Event { return Event{Kind: Pick, How: how, TID: tid, NowV: v - 1} }
	keep := pick(Keep, 2)
	keep.NowV = 0
	preempt := pick(Preempt, 3)
	preempt.Span = 2
	after := preempt
	after.NowV = 0
	charge := at(Charge, 0, 2, v-2+16*ms, v-2+request/2)
	charge.Span = ms
	// Task 3 has run: V is after the others.
	spent := at(Charge, 0, 3, v-1+16*ms, v-1+request)
	spent.Span = ms
	moved := []Event{pick(Rescue, 3), run(3), spent, at(Wait, 0, 3, spent.V, spent.Deadline)}
	for i := range moved {
		moved[i].NowV = 0
	}
	blind := Event{Kind: Pick, How: Dispatch}
	better := after
	better.TID = 1
	for _, test := range []struct {
		name string
		then []Event
		want Fault // "" for none
		said string
	}{
		{"earliest deadline", []Event{pick(Dispatch, 2), run(2)}, "", ""},
		{"later deadline", []Event{pick(Dispatch, 3), run(3)}, WrongPick, "task 2 is eligible"},
		{"unnamed", []Event{pick(Dispatch, 0), run(2)}, "", ""},
		{"unnamed and wrong", []Event{pick(Dispatch, 0), run(3)}, WrongPick, "task 2 was eligible"},
		{"rescue", []Event{pick(Rescue, 3), run(3)}, "", ""},
		{"direct past others", []Event{pick(Direct, 3)}, WrongPick, "nobody waits"},
		{"direct behind who was picked", []Event{pick(Rescue, 1), pick(Rescue, 2), pick(Direct, 3)}, "", ""},
		{"direct behind one and past another", []Event{pick(Rescue, 2), pick(Direct, 3)}, WrongPick, "but task 1 does"},
		{"last while some are eligible", []Event{pick(Last, 3)}, WrongPick, "nobody is eligible, but task 2 is"},
		{"no pick", []Event{run(2)}, BadRun, "no pick"},
		{"picked, but waits again", []Event{pick(Dispatch, 2), at(Wait, 0, 2, v-2, v-2+request/2), run(2)}, BadRun, "no pick"},
		{"not here", []Event{pick(Dispatch, 9)}, Unknown, "not in this queue"},
		{"keep who is not eligible", []Event{pick(Dispatch, 2), run(2), charge, keep}, WrongPick, "not eligible"},
		{"keep before a charge", []Event{pick(Dispatch, 2), run(2), pick(Keep, 2)}, "", ""},
		{"preempt who is not eligible", []Event{pick(Dispatch, 2), run(2), charge, after}, "", ""},
		{"preempt within rounding", []Event{pick(Dispatch, 2), run(2), preempt}, "", ""},
		{"preempt who is better", append(moved, blind, run(2), better), WrongPick, "task 2 is eligible and has"},
	} {
		t.Run(test.name, func(t *testing.T) {
			report := Check(three(test.then...))
			switch {
			case test.want == "" && report.Wrong() > 0:
				t.Error(report)
			case test.want != "" && (report.Wrong() != 1 || report.Faults[test.want] != 1 || !strings.Contains(report.Words[0], test.said)):
				t.Errorf("want %q, %q:\n%s", test.want, test.said, report)
			}
		})
	}
}

// A task that another CPU takes in the same moment explains the wrong pick.
func TestPulled(t *testing.T) {
	rec := three(Event{Kind: Pick, How: Dispatch, TID: 3, NowV: 1000*ms - 1}, Event{Kind: Run, TID: 3})
	rec.Parts = append(rec.Parts, []Event{at(Leave, LeaveAfar, 2, 1000*ms-2, 1024*ms-2)})
	pull := &rec.Parts[1][0]
	pull.Tier, pull.Writer, pull.Time = 1, 1, rec.Parts[0][6].Time+Late-1
	report := Check(rec)
	if report.Wrong() != 0 || report.Races[WrongPick] != 1 {
		t.Error(report)
	}
	pull.Time += 2
	if report := Check(rec); report.Faults[WrongPick] != 1 || report.Races[WrongPick] != 0 {
		t.Error(report)
	}
}

// ahead has 3 run beyond V and be picked at that time, though it is not eligible while 1 and 2 count.
func ahead() (rec *Record, picked uint64) {
	const v, request = 1000 * ms, 48 * ms
	spent := at(Charge, 0, 3, v-1+16*ms, v-1+request)
	spent.Span = ms
	rec = three(Event{Kind: Pick, How: Rescue, TID: 3}, Event{Kind: Run, TID: 3}, spent,
		at(Wait, 0, 3, spent.V, spent.Deadline), Event{Kind: Pick, How: Dispatch, TID: 3})
	return rec, rec.Parts[0][len(rec.Parts[0])-1].Time
}

// Whose pick is wrong by a V in which those count who have just left from afar is a race where
// nobody else waits, and only for as long as a task is on its way.
func TestLeftFromAfar(t *testing.T) {
	const v, request = 1000 * ms, 48 * ms
	rec, picked := ahead()
	rec.Parts = append(rec.Parts, []Event{at(Leave, LeaveAfar, 1, v, v+request), at(Leave, LeaveAfar, 2, v-2, v-2+request/2)})
	for before, fault := range map[uint64]int{Late + 5000: 0, transit + 5000: 1} {
		for i := range rec.Parts[1] {
			rec.Parts[1][i].Tier, rec.Parts[1][i].Writer, rec.Parts[1][i].Time = 1, 1, picked-before+uint64(i)
		}
		if report := Check(rec); int(report.Faults[WrongPick]) != fault || int(report.Races[WrongPick]) != 1-fault {
			t.Errorf("%d ns after they left: %v", before, report)
		}
	}
}

// So it is while those who count in V were taken by a CPU where they have not run yet, for however long.
func TestHeldBack(t *testing.T) {
	rec, picked := ahead()
	for inVain, fault := range map[bool]int{false: 0, true: 1} {
		pulls := []Event{{Kind: Pull, TID: 1}, {Kind: Pull, TID: 2}}
		if inVain {
			pulls = append(pulls, Event{Kind: Pull, How: InVain, TID: 1}, Event{Kind: Pull, How: InVain, TID: 2})
		}
		for i := range pulls {
			pulls[i].Tier, pulls[i].Writer, pulls[i].Time = 1, 1, picked-transit-5000+uint64(i)
		}
		one := *rec
		one.Parts = append(slices.Clip(rec.Parts), pulls)
		if report := Check(&one); int(report.Faults[WrongPick]) != fault || int(report.Races[WrongPick]) != 1-fault {
			t.Errorf("in vain %v: %v", inVain, report)
		}
	}
}
