package oracle

import "testing"

// A request by what a task uses, twice the mean of what it used between sleeps, and its
// deadline: that far after V where it is owed time.
func TestBriefRequests(t *testing.T) {
	const v, now = 1000*ms - 2 + 2*ms, 1024*ms - 1
	const owed = now - (v - 1)
	charge := at(Charge, 0, 2, v, 1000*ms-2+24*ms)
	charge.Span = ms / 8
	// Task 1 has had so much that 2 is owed something when it sleeps: it leaves no ghost.
	other := at(Charge, 0, 1, 1000*ms+48*ms, 1000*ms+96*ms)
	other.Span = 3 * ms
	ran := []Event{{Kind: Pick, How: Dispatch, TID: 2}, {Kind: Run, TID: 2}, charge, other}
	sleeps := at(Leave, LeaveSleep, 2, v, 0)
	again := at(Leave, LeaveSleep, 2, v-1, 0)
	// Task 1 has had twice as much: what 2 is owed is almost a slice.
	more := at(Charge, 0, 1, 1000*ms+96*ms, 1000*ms+144*ms)
	more.Span = 3 * ms
	back := func(how uint16, span, deadline uint64) Event {
		e := at(Join, how, 2, v-1, v-1+deadline)
		e.Span, e.NowV = span, now
		return e
	}
	late := func(how uint16, span, deadline uint64) Event {
		e := back(how, span, deadline)
		e.NowV += 24 * ms
		return e
	}
	for _, test := range []struct {
		name string
		then []Event
		want Fault
	}{
		{"twice of what it used", []Event{sleeps, back(JoinBrief, ms/4, owed+4*ms)}, ""},
		{"once", []Event{sleeps, back(JoinBrief, ms/8, owed+2*ms)}, BadPlacement},
		{"from where it is", []Event{sleeps, back(JoinBrief, ms/4, 4*ms)}, BadPlacement},
		{"a whole one", []Event{sleeps, back(JoinBrief, ms/4, 48*ms)}, BadPlacement},
		{"not said", []Event{sleeps, back(0, ms/4, owed+4*ms)}, BadPlacement},
		{"a mean", []Event{sleeps, back(JoinBrief, ms/4, owed+4*ms), again, back(JoinBrief, ms*3/16, owed+3*ms)}, ""},
		{"forgotten", []Event{sleeps, back(JoinBrief, ms/4, owed+4*ms), again, back(0, 0, 48*ms)}, BadPlacement},
		{"owed a slice", []Event{more, sleeps, late(0, 0, 48*ms)}, ""},
		{"owed a slice and asked for", []Event{more, sleeps, late(JoinBrief, ms/4, owed+28*ms)}, BadPlacement},
	} {
		t.Run(test.name, func(t *testing.T) {
			report := Check(three(append(append([]Event(nil), ran...), test.then...)...))
			if test.want == "" && report.Wrong() > 0 || test.want != "" && (report.Wrong() != 1 || report.Faults[test.want] != 1) {
				t.Errorf("want %q:\n%s", test.want, report)
			}
		})
	}
}

// Who uses 1 ms of a slice of 3 between two sleeps makes no brief request.
func TestBriefPart(t *testing.T) {
	const v, now = 1000*ms - 2 + 16*ms, 1024*ms - 1
	charge := at(Charge, 0, 2, v, 1000*ms-2+24*ms)
	charge.Span = ms
	other := at(Charge, 0, 1, 1000*ms+48*ms, 1000*ms+96*ms)
	other.Span = 3 * ms
	asks := at(Join, JoinBrief, 2, v-1, now+32*ms)
	asks.Span, asks.NowV = 2*ms, now
	report := Check(three(Event{Kind: Pick, How: Dispatch, TID: 2}, Event{Kind: Run, TID: 2}, charge, other,
		at(Leave, LeaveSleep, 2, v, 0), asks))
	if report.Wrong() != 1 || report.Faults[BadPlacement] != 1 {
		t.Error(report)
	}
}

// A task that takes its ghost back asks for twice what it uses between two sleeps, 0.125 ms,
// where that is due before the deadline that its ghost has.
func TestGhostBrief(t *testing.T) {
	const its, deadline = 1000*ms - 2 + 2*ms, 1000*ms - 2 + 24*ms
	const soon, next = its + 4*ms, its + 2*ms
	runs := func(v, deadline uint64) []Event {
		charge := at(Charge, 0, 2, v, deadline)
		charge.Span = ms / 8
		return []Event{{Kind: Pick, How: Rescue, TID: 2}, {Kind: Run, TID: 2}, charge, at(Leave, LeaveSleep|LeaveGhost, 2, v, deadline)}
	}
	back := func(how uint16, v, deadline, span uint64) Event {
		e := at(Join, JoinGhost|how, 2, v, deadline)
		e.Span = span
		return e
	}
	asks := back(JoinBrief, its, soon, ms/4)
	// It uses the request up: the next one is brief, too, until it has had more than 3 ms / 8.
	uses := func(v, next uint64) []Event {
		charge := at(Charge, 0, 2, v, v+next)
		charge.Span = ms / 4
		return []Event{charge}
	}
	up := []Event{asks, at(Wait, 0, 2, its, soon), {Kind: Pick, How: Rescue, TID: 2}, {Kind: Run, TID: 2}}
	once := append(up, uses(soon, 4*ms)...)
	again := append([]Event{asks, at(Wait, 0, 2, its, soon)}, runs(next, soon)...)
	for _, test := range []ghostly{
		{"due before", []Event{asks}, ""},
		{"with its old deadline", []Event{back(JoinBrief, its, deadline, ms/4)}, BadPlacement},
		{"for what it used", []Event{back(JoinBrief, its, its+2*ms, ms/8)}, BadPlacement},
		{"not said", []Event{asks, at(Leave, LeaveSleep|LeaveGhost, 2, its, soon), back(0, its, its+3*ms, ms*3/16)}, BadPlacement},
		{"forgotten", []Event{asks, at(Leave, LeaveSleep|LeaveGhost, 2, its, soon), back(0, its, soon, 0)}, BadPlacement},
		{"due after", append(again, back(0, next, soon, 0)), ""},
		{"used up", once, ""},
		{"used up, then whole", append(up[:4:4], uses(soon, whole)...), BadCharge},
		{"used up twice", append(once[:5:5], uses(soon+4*ms, whole)...), ""},
		{"used up twice, still brief", append(once[:5:5], uses(soon+4*ms, 4*ms)...), BadCharge},
		{"due after and asked for", append(again, back(JoinBrief, next, next+4*ms, ms/4)), BadPlacement},
	} {
		test.check(t, runs(its, deadline)...)
	}
}

// V goes back while task 2 sleeps: where requests are brief it owes what it owed when it
// fell asleep, beside task 1, which is all that is left.
func TestGhostDebtGrew(t *testing.T) {
	const v, its, owed = 1000 * ms, 1000*ms - 2 + 2*ms, 2 * ms / 3
	const anew, grown = v + 2*owed - 1, v + 2*ms - 1
	charge := func(tid uint32, v, deadline uint64) Event {
		e := at(Charge, 0, tid, v, deadline)
		e.Span = ms / 8
		return e
	}
	back := func(how uint16, v uint64) []Event {
		e := at(Join, how, 2, v, v+4*ms)
		e.Span = ms / 4
		return []Event{e}
	}
	for _, test := range []ghostly{
		{"what it owed then", back(JoinBrief, anew), ""},
		{"what it would owe now", back(JoinBrief, grown), BadPlacement},
		{"nothing", back(JoinBrief, v-1), BadPlacement},
		{"its ghost back", back(JoinBrief|JoinGhost, its), BadPlacement},
	} {
		test.check(t, charge(3, v-1+2*ms, v-1+whole), charge(2, its, v-2+24*ms),
			at(Leave, LeaveSleep|LeaveGhost, 2, its, v-2+24*ms), at(Leave, 0, 3, v-1+2*ms, v-1+whole))
	}
}

// TestAsks: a brief request is measured by the slice, also where the task asks for less than that.
func TestAsks(t *testing.T) {
	for _, c := range []struct{ uses, request, slice, want uint64 }{
		{50_000, 3 * ms, 3 * ms, Brief},
		{150_000, 3 * ms, 3 * ms, 300_000},
		{200_000, 3 * ms, 3 * ms, 0},
		{50_000, Brief * 3 / 2, 3 * ms, Brief},
		{50_000, Brief, 3 * ms, 0},
		{50_000, 7 * Brief, 7 * Brief, 0},
		{0, 3 * ms, 3 * ms, 0},
	} {
		r := &replay{brief: true}
		if got := r.asks(&task{uses: c.uses}, uint32(c.request), uint32(c.slice)); got != c.want {
			t.Errorf("uses %d ns, asks for %d of %d: %d ns, want %d", c.uses, c.request, c.slice, got, c.want)
		}
	}
}

// TestFollowing: who has used up a request asks for a brief one while all that it has used since
// it slept is at most an eighth of its slice; where it is owed something for that, too.
func TestFollowing(t *testing.T) {
	for _, c := range []struct{ uses, used, request, owed, want uint64 }{
		{50_000, Brief, 3 * ms, 0, Brief},
		{50_000, Brief, 3 * ms, 70_000, Brief + 70_000},
		{150_000, 300_000, 3 * ms, 0, 300_000},
		{150_000, 300_000, 3 * ms, 2_900_000, 3 * ms},
		{150_000, 3 * ms / 8, 3 * ms, 0, 300_000},
		{150_000, 3*ms/8 + 1, 3 * ms, 0, 3 * ms},
		{150_000, 300_000, 200_000, 0, 200_000},
		{200_000, 200_000, 3 * ms, 0, 3 * ms},
		{0, 0, 3 * ms, 0, 3 * ms},
	} {
		r, q := &replay{brief: true, tasks: map[uint32]*task{1: {uses: c.uses, used: c.used}}}, newQueue(0, 1)
		asks := &client{tid: 1, weight: 512, request: uint32(c.request), v: 1 << 40}
		q.join(asks)
		q.join(&client{tid: 2, weight: 512, request: 3 * ms, v: 1<<40 + virtual(2*c.owed, 512)})
		got := r.following(q, asks, &Event{TID: 1, Slice: 3 * ms, NowV: q.now()})
		if want := virtual(c.want, 512); got != want {
			t.Errorf("uses %d ns, used %d, asks for %d: then %d, want %d", c.uses, c.used, c.request, got, want)
		}
	}
}
