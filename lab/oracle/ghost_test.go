package oracle

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ghostly is a record of one queue after three(), and what is wrong with it, "" for
// nothing.
type ghostly struct {
	name string
	then []Event
	want Fault
}

func (g ghostly) check(t *testing.T, before ...Event) {
	t.Run(g.name, func(t *testing.T) {
		report := Check(three(append(before[:len(before):len(before)], g.then...)...))
		if g.want == "" && report.Wrong() > 0 || g.want != "" && (report.Wrong() != 1 || report.Faults[g.want] != 1) {
			t.Errorf("want %q:\n%s", g.want, report)
		}
	})
}

// Task 2 runs past the others' V and sleeps as a ghost.
func TestGhosts(t *testing.T) {
	const v, request = 1000 * ms, 48 * ms
	const its, deadline = v - 2 + 16*ms, v - 2 + request/2
	charge := at(Charge, 0, 2, its, deadline)
	charge.Span = ms
	owes := []Event{{Kind: Pick, How: Dispatch, TID: 2}, {Kind: Run, TID: 2}, charge}
	ghost := at(Leave, LeaveSleep|LeaveGhost, 2, its, deadline)
	back := func(how uint16, deadline, span uint64) Event {
		e := at(Join, how, 2, its, deadline)
		e.Span = span
		return e
	}
	release := func(change func(e *Event)) Event {
		e := at(Release, 0, 2, its, deadline)
		change(&e)
		return e
	}
	// Task 1 runs: V passes the ghost.
	ran := at(Charge, 0, 1, v+request, v+2*request)
	ran.Span = 3 * ms
	waits := at(Wait, 0, 1, ran.V, ran.Deadline)
	pick := Event{Kind: Pick, How: Dispatch, TID: 3}
	keep := Event{Kind: Pick, How: Keep, TID: 3}
	runs := Event{Kind: Run, TID: 3}
	anew := func(v uint64) Event { return at(Join, 0, 2, v, v+request) }
	heavier := at(Join, 0, 2, v+10666664, v+10666664+request/2) // twice as far, beside as much
	heavier.Weight = 2048
	for _, test := range []ghostly{
		{"back", []Event{ghost, back(JoinGhost, deadline, 0)}, ""},
		{"back elsewhere", []Event{ghost, at(Join, JoinGhost, 2, v, v+request)}, BadPlacement},
		{"back with a new deadline", []Event{ghost, back(JoinGhost, its+request, 0)}, BadPlacement},
		{"back with a request", []Event{ghost, back(JoinGhost, deadline, 2*ms)}, BadPlacement},
		{"back by what it uses", []Event{ghost, back(JoinGhost|JoinBrief, deadline, 0)}, BadPlacement},
		{"anew and not passed", []Event{ghost, anew(its - 1)}, BadPlacement},
		{"anew and heavier", []Event{ghost, heavier}, ""},
		{"anew and passed", []Event{ghost, ran, anew(v + 24*ms - 2)}, ""},
		{"back and passed", []Event{ghost, ran, back(JoinGhost, deadline, 0)}, BadPlacement},
		{"no ghost", []Event{at(Leave, LeaveSleep, 2, its, 0)}, BadLeave},
		{"ghost too far", []Event{at(Leave, LeaveSleep|LeaveGhost, 2, v+17*ms, 0)}, BadLeave},
		{"not there", []Event{at(Join, JoinGhost, 4, v, v+request)}, BadPlacement},
		{"released", []Event{ghost, ran, release(func(*Event) {})}, ""},
		{"released too early", []Event{ghost, release(func(*Event) {})}, BadRelease},
		{"released twice", []Event{ghost, ran, release(func(*Event) {}), release(func(*Event) {})}, BadRelease},
		{"another's", []Event{ghost, ran, release(func(e *Event) { e.TID = 3 })}, BadRelease},
		{"released with another v", []Event{ghost, ran, release(func(e *Event) { e.V-- })}, BadRelease},
		{"released with another weight", []Event{ghost, ran, release(func(e *Event) { e.Weight++ })}, BadRelease},
		{"released with another deadline", []Event{ghost, ran, release(func(e *Event) { e.Deadline++ })}, BadRelease},
		{"released with another V", []Event{ghost, ran, release(func(e *Event) { e.NowV = v + 30*ms })}, WrongV},
		{"no debt after it", []Event{ghost, ran, release(func(*Event) {}), anew(v + 24*ms - 2)}, ""},
		{"debt after it", []Event{ghost, ran, release(func(*Event) {}), anew(v + 56*ms)}, BadPlacement},
		{"first by deadline", []Event{ghost, ran, waits, release(func(*Event) {}), pick}, ""},
		{"left there though first", []Event{ghost, ran, waits, pick}, BadRelease},
		{"left there twice, counted once", []Event{ghost, ran, waits, pick, pick}, BadRelease},
		{"left there though who is kept comes after it", []Event{ghost, pick, runs, ran, waits, keep}, BadRelease},
		{"gone before who is kept", []Event{ghost, pick, runs, ran, waits, release(func(*Event) {}), keep}, ""},
		{"left there and nobody else waits", []Event{ghost, ran, {Kind: Pull, TID: 1}, pick}, ""},
		{"left there and not passed", []Event{ghost, at(Wait, 0, 1, v, v+request), pick}, ""},
	} {
		test.check(t, owes...)
	}
}

// A debt beyond the limit is cut, and the deadline comes as much nearer.
func TestGhostCut(t *testing.T) {
	const v, far = 1000 * ms, 1000*ms - 2 + 320*ms
	const its = v + (320*ms-3)/3 + 112*ms // V, a request and a tick
	charge := at(Charge, 0, 2, far, far+whole)
	charge.Span = 20 * ms
	owes := []Event{{Kind: Pick, How: Rescue, TID: 2}, {Kind: Run, TID: 2}, charge}
	sleeps := at(Leave, LeaveSleep|LeaveGhost, 2, its, far+whole)
	for _, test := range []ghostly{
		{"deadline cut", []Event{sleeps, at(Join, JoinGhost, 2, its, its+whole)}, ""},
		{"deadline uncut", []Event{sleeps, at(Join, JoinGhost, 2, its, far+whole)}, BadPlacement},
		{"debt uncut", []Event{at(Leave, LeaveSleep|LeaveGhost, 2, far, far+whole)}, BadLeave},
	} {
		test.check(t, owes...)
	}
}

// Who wakes elsewhere leaves its ghost to the queue for good: back there, it joins
// beside it, and has two when it sleeps again.
func TestGhostOfWhoCameBack(t *testing.T) {
	const v, its = 1000 * ms, 1000*ms - 1 + 32*ms
	elsewhere := func(e Event) Event {
		e.CPU = 1
		return e
	}
	debt := at(Charge, 0, 2, its, v-1+whole)
	debt.Span = 2 * ms
	back := at(Join, 0, 2, v+16*ms-2, v+16*ms-2+whole) // V is between task 1 and the ghost
	back.NowV = v + 16*ms - 1
	later, more := at(Charge, 0, 1, v+32*ms, v+whole), at(Charge, 0, 2, v+48*ms-2, v+16*ms-2+whole)
	later.Span, more.Span = 2*ms, 2*ms
	record := func(v uint64) *Record {
		rec := story(at(Join, JoinEmpty, 1, 1000*ms, 1000*ms+whole), at(Join, 0, 2, 1000*ms-1, 1000*ms-1+whole), debt,
			at(Leave, LeaveSleep|LeaveGhost, 2, its, 0),
			elsewhere(at(Join, JoinEmpty, 2, 0, whole)), elsewhere(at(Leave, LeaveSleep|LeaveLast, 2, 0, whole)),
			back, later, more, at(Leave, LeaveSleep|LeaveGhost, 2, more.V, 0), at(Release, 0, 2, v, 1000*ms-1+whole))
		rec.Parts = append(rec.Parts, nil)
		return rec
	}
	if report := Check(record(its)); report.Wrong() != 0 {
		t.Error(report)
	}
	if report := Check(record(more.V)); report.Faults[BadRelease] != 1 {
		t.Error("V has not passed the second:\n", report)
	}
	back.How = JoinGhost
	if report := Check(record(its)); report.Faults[BadPlacement] == 0 {
		t.Error("it may not take the ghost back:\n", report)
	}
}

// Who comes to a queue where only ghosts are is alone, and they are gone. Not while
// somebody who left is in the sums still.
func TestOnlyGhosts(t *testing.T) {
	const v, its = 1000 * ms, 1000*ms - 1 + 32*ms
	debt := at(Charge, 0, 2, its, v-1+whole)
	debt.Span = 2 * ms
	pulled := at(Leave, LeaveAfar, 1, v, v+whole)
	pulled.Writer = 1
	settle := Event{Kind: Settle, Span: 1024, V: 1024 * v}
	joins := func(how uint16, tid uint32, v uint64) Event { return at(Join, how, tid, v, v+whole) }
	for _, test := range []struct {
		name string
		then []Event
		want Fault
	}{
		{"empty", []Event{settle, joins(JoinEmpty, 3, its)}, ""},
		{"empty for who has a ghost", []Event{settle, joins(JoinEmpty, 2, its)}, ""},
		{"not empty", []Event{settle, joins(0, 3, its-1)}, BadPlacement},
		{"its ghost back", []Event{settle, at(Join, JoinGhost, 2, its, v-1+whole)}, BadPlacement},
		{"released after that", []Event{settle, joins(JoinEmpty, 3, its+whole), at(Release, 0, 2, its, v-1+whole)}, BadRelease},
		{"not settled", []Event{joins(0, 3, v+16*ms-2)}, ""},
		{"empty and not settled", []Event{joins(JoinEmpty, 3, v+16*ms-2)}, BadSettle},
	} {
		t.Run(test.name, func(t *testing.T) {
			report := Check(story(append([]Event{joins(JoinEmpty, 1, v), joins(0, 2, v-1), debt,
				at(Leave, LeaveSleep|LeaveGhost, 2, its, 0), pulled}, test.then...)...))
			if test.want == "" && report.Wrong() > 0 || test.want != "" && (report.Wrong() != 1 || report.Faults[test.want] != 1) {
				t.Errorf("want %q:\n%s", test.want, report)
			}
		})
	}
}

// crowd is a record of so many who sleep as ghosts, one after the other, and of one
// who stays.
func crowd(ghosts int, cheat string, then func(s *sim, q *simQueue)) *Record {
	s := newSim(1, 1, ghosts+2)
	s.cheat = cheat
	q := s.queues[0]
	s.join(0, q, s.tasks[0])
	for _, task := range s.tasks[1 : ghosts+1] {
		s.join(0, q, task)
		task.v += simVirtual(1000, task.w)
		s.write(0, q, task, Event{Kind: Charge, Span: 1000})
		s.leave(0, q, task, true)
	}
	then(s, q)
	return s.rec
}

// A choice is made anew for each ghost that goes, eight times: the eighth leaves alone
// who comes first then. Of nine ghosts all come before task 2. Those that went before
// task 3 left are not of the choice after that.
func TestLastLook(t *testing.T) {
	for _, test := range []struct {
		looks  int
		leaves bool
		want   bool
	}{{maxLooks - 2, false, true}, {maxLooks - 1, false, false}, {maxLooks - 1, true, true}} {
		s := newSim(1, 1, 12)
		q := s.queues[0]
		for i, task := range s.tasks {
			if task.w, task.slice = 1024, ms; i < 3 {
				task.slice = []uint32{100 * ms, 20 * ms, 100 * ms}[i]
			}
			s.join(0, q, task)
			if i < 3 {
				s.write(0, q, task, Event{Kind: Wait})
				continue
			}
			task.v += simVirtual(1000, task.w)
			s.write(0, q, task, Event{Kind: Charge, Span: 1000})
			s.leave(0, q, task, true)
		}
		s.tasks[0].v += simVirtual(10*ms, 1024)
		s.write(0, q, s.tasks[0], Event{Kind: Charge, Span: 10 * ms})
		for range test.looks {
			v, _ := q.now()
			s.end(q, q.due(v, s.tasks[1]))
		}
		if test.leaves {
			s.leave(0, q, s.tasks[2], true)
		}
		s.write(0, q, s.tasks[1], Event{Kind: Pick, How: Dispatch})
		if report := Check(s.rec); (report.Faults[BadRelease] > 0) != test.want || report.Wrong() != report.Faults[BadRelease] {
			t.Errorf("%+v: is a ghost left a fault?\n%s", test, report)
		}
	}
}

// For the 64th ghost those go that V has passed, or else the first. V of the
// departure for which they make room is the one before.
func TestRoomForGhosts(t *testing.T) {
	comes := func(s *sim, q *simQueue) { s.join(0, q, s.tasks[len(s.tasks)-1]) }
	ends := func(s *sim, q *simQueue) {
		v, _ := q.now()
		s.end(q, q.early(v))
	}
	other := func(s *sim, q *simQueue) {
		comes(s, q)
		s.rec.Parts[0][len(s.rec.Parts[0])-2].NowV += 1000
	}
	between := func(kind Kind, how uint16) func(*sim, *simQueue) { // the departure is about itself alone
		return func(s *sim, q *simQueue) {
			part := s.rec.Parts[0]
			e := part[0]
			e.Kind, e.How, e.Time = kind, how, part[len(part)-2].Time
			s.rec.Parts[0] = slices.Insert(part, len(part)-1, e)
		}
	}
	for _, test := range []struct {
		name   string
		ghosts int
		cheat  string
		then   func(s *sim, q *simQueue)
		want   Fault
	}{
		{"63", maxGhosts, "", comes, ""},
		{"64", maxGhosts + 1, "", comes, ""},
		{"80", maxGhosts + 16, "", comes, ""},
		{"64 and another V", maxGhosts + 1, "", other, WrongV},
		{"64 and something between", maxGhosts + 1, "", between(Wait, 0), WrongV},
		{"64 and a pick between", maxGhosts + 1, "", between(Pick, Rescue), WrongV},
		{"64 and no release", maxGhosts + 1, "room", func(*sim, *simQueue) {}, BadLeave},
		{"64 and the last for the first", maxGhosts + 1, "last", func(*sim, *simQueue) {}, BadRelease},
		{"too early, for none", maxGhosts - 1, "", ends, BadRelease},
	} {
		t.Run(test.name, func(t *testing.T) {
			report := Check(crowd(test.ghosts, test.cheat, test.then))
			if test.want == "" && report.Wrong() > 0 || test.want != "" && (report.Wrong() != 1 || report.Faults[test.want] != 1) {
				t.Errorf("want %q:\n%s", test.want, report)
			}
		})
	}
}

// A ghost whose end is written a moment later explains a V that is without it, and
// with the other one.
func TestReleaseSoon(t *testing.T) {
	const v, its = 1000 * ms, 1000*ms - 2 + 16*ms
	spent, ran := at(Charge, 0, 2, its, v-2+whole/2), at(Charge, 0, 1, v+whole, v+2*whole)
	spent.Span, ran.Span = ms, 3*ms
	pick := Event{Kind: Pick, How: Preempt, TID: 3, Writer: 1, NowV: v + whole/2 - 1}
	rec := three(spent, at(Leave, LeaveSleep|LeaveGhost, 2, its, 0), ran, at(Leave, LeaveSleep|LeaveGhost, 1, v+whole, 0),
		pick, at(Release, 0, 2, its, v-2+whole/2))
	part := rec.Parts[0]
	last := &part[len(part)-1]
	last.Time = part[len(part)-2].Time + Late - 1
	if report := Check(rec); report.Wrong() != 0 || report.Races[WrongV] != 1 {
		t.Error(report)
	}
	last.Time += 2
	if report := Check(rec); report.Faults[WrongV] != 1 {
		t.Error(report)
	}
}

// The end of a ghost is not what its task, which came back beside it, does next.
func TestReleaseOfWhoRuns(t *testing.T) {
	const v = 1000 * ms
	report := Check(three(Event{Kind: Pick, How: Dispatch, TID: 2}, Event{Kind: Run, TID: 2}, Event{Kind: Pick, How: Dispatch, TID: 3},
		at(Release, 0, 2, v, v), at(Wait, 0, 2, v-2, v-2+whole/2)))
	if report.Faults[WrongPick] != 1 || !strings.Contains(report.Words[0], "next about it: wait") {
		t.Error(report)
	}
}

// V without the ghosts that it has passed, one of them by the end of another; and
// with one that it has not passed.
func TestPaid(t *testing.T) {
	q := emptyQueue()
	stays := place(q, 1, 1024, 3*ms)
	for i, v := range []uint64{80, 10, 1000, 40} {
		q.haunt(place(q, uint32(i+2), 1024, 3*ms), origin+v*ms)
	}
	q.charge(stays, 9*ms)                    // V is (144 + 10 + 40 + 80 + 1000) / 5
	want := origin + uint64((144+1000)*ms/2) // without the three
	if got := q.paid(); got != want || q.now() == want {
		t.Errorf("%d after the origin, want %d; V is %d", apart(got, origin), apart(want, origin), apart(q.now(), origin))
	}
	q.banish(q.ghosts[3]) // V is (144 + 10 + 40 + 80) / 4 = 68.5, before the third
	if got := q.paid(); got != origin+144*ms {
		t.Errorf("%d after the origin, want %d", apart(got, origin), 144*ms)
	}
	if got := apart(q.now(), origin); got != 685*ms/10 {
		t.Errorf("V is %d", got)
	}
}

// The scheduler has room for as many.
func TestMostGhosts(t *testing.T) {
	text, err := os.ReadFile("../../bpf/cpu.bpf.h")
	if err != nil {
		t.Fatal(err)
	}
	// One place is no ghost's.
	m := regexp.MustCompile(`(?m)^#define GHOST_PLACES (\d+)`).FindSubmatch(text)
	if m == nil || string(m[1]) != strconv.Itoa(maxGhosts+1) {
		t.Errorf("cpu.bpf.h: GHOST_PLACES is %q, and here are %d ghosts", m, maxGhosts)
	}
}
