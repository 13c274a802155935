package oracle

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestCorrectRecord(t *testing.T) {
	checked := 0
	for seed := range uint64(60) {
		rec, _ := simulate(seed, 1+int(seed%3), 2+int(seed%9), 300, "")
		report := Check(rec)
		// The bound of the lag is one of a queue that nobody leaves or joins.
		if report.Wrong() != report.Faults[LagBound] || report.Raced() != 0 || report.Faults[LagBound] > 2 {
			t.Fatalf("seed %d:\n%s", seed, report)
		}
		checked += report.Checked
	}
	if checked < 10000 {
		t.Errorf("%d picks were checked", checked)
	}
}

// Each thing that the simulation does wrong once must be found, as what it is.
func TestWrongRecord(t *testing.T) {
	for cheat, want := range map[string]Fault{
		"pick": WrongPick, "V": WrongV, "charge": BadCharge, "placement": BadPlacement,
		"weight": BadCharge, "claim": BadPlacement, "settle": BadSettle, "early": BadRelease, "late": BadRelease,
	} {
		t.Run(cheat, func(t *testing.T) {
			all, named := 0, 0
			for seed := range uint64(30) {
				rec, done := simulate(seed, 2, 8, 300, cheat)
				if !done {
					continue
				}
				all++
				report := Check(rec)
				if report.Wrong() == 0 && report.Raced() == 0 {
					t.Errorf("seed %d: not found", seed)
				}
				if report.Faults[want] > 0 {
					named++
				} else {
					t.Logf("seed %d: %v races %v", seed, report.Faults, report.Races)
				}
				if report.Wrong() > 8 {
					t.Errorf("seed %d: one fault became many:\n%s", seed, report)
				}
			}
			if all < 20 || named < all*8/10 {
				t.Errorf("called by its name %d times of %d", named, all)
			}
		})
	}
}

func TestReport(t *testing.T) {
	report := Check(first(simulate(4, 2, 8, 300, "pick")))
	var b bytes.Buffer
	b.WriteString(report.String())
	for _, want := range []string{"events ", "picks checked", "wrong pick", "fault: 0.", "around the first fault:\n"} {
		if !bytes.Contains(b.Bytes(), []byte(want)) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// The events around the first fault are those of its queue, of its task and of another
// that it names, with the one that is wrong among them; where nothing is wrong there are
// none. What is wrong in this simulation is a fault of one queue that another one comes after.
func TestTrail(t *testing.T) {
	if report := Check(first(simulate(4, 2, 8, 300, ""))); report.Wrong() > 0 || report.Trail != nil {
		t.Errorf("%d faults, a trail of %d", report.Wrong(), len(report.Trail))
	}
	report := Check(first(simulate(4, 2, 8, 300, "pick")))
	if n := len(report.Trail); n == 0 || n > trailBefore+trailAfter+1 {
		t.Fatalf("%d events", n)
	}
	// "0.000000123 CPU 1 fair task 5: wrong pick: ..." and "... by CPU 1: pick how 1 task 5 ..."
	where, _, _ := strings.Cut(report.Words[0], ":")
	fields := strings.Fields(where)
	when, cpu, task := fields[0], fields[2], " task "+fields[len(fields)-1]+" "
	_, named, _ := strings.Cut(report.Words[0], "but task ")
	other := " task " + strings.Fields(named)[0] + " "
	found, elsewhere := false, false
	for _, line := range report.Trail {
		found = found || strings.HasPrefix(line, when) && strings.Contains(line, task)
		if strings.Contains(line, " CPU "+cpu+" tier") {
			continue
		}
		if !strings.Contains(line, task) && !strings.Contains(line, other) {
			t.Errorf("of another queue and task: %s", line)
		}
		elsewhere = elsewhere || strings.Contains(line, other)
	}
	if !elsewhere {
		t.Errorf("nothing about%sin other queues", other)
	}
	if !found {
		t.Errorf("%s is not in\n%s", where, strings.Join(report.Trail, "\n"))
	}
}

func first(rec *Record, _ bool) *Record { return rec }

// jitter moves the times of what CPUs write about each other's queues, as it
// happens when they do not wait for each other.
func jitter(rec *Record, seed uint64, most int64) {
	random := rand.New(rand.NewPCG(seed, 9))
	for cpu, part := range rec.Parts {
		for i := range part {
			if e := &part[i]; int(e.CPU) != cpu {
				e.Time = uint64(int64(e.Time) + random.Int64N(2*most) - most)
			}
			if i > 0 {
				part[i].Time = max(part[i].Time, part[i-1].Time)
			}
		}
	}
}

// Events of other CPUs that come late are races. The simulation writes every
// 200 ns, so that 1 us puts many events of one task out of order: some of that
// is past explaining.
func TestLateEvents(t *testing.T) {
	raced, wrong, events := 0, 0, 0
	for seed := range uint64(60) {
		rec, _ := simulate(seed, 3, 9, 300, "")
		jitter(rec, seed, 1000)
		report := Check(rec)
		raced += report.Raced()
		wrong += report.Wrong() - report.Faults[LagBound]
		events += report.Events
		if report.Wrong() > 12 {
			t.Errorf("seed %d:\n%s", seed, report)
		}
	}
	t.Logf("%d races and %d faults in %d events", raced, wrong, events)
	if raced < 100 || wrong*10 > raced {
		t.Error("must be races")
	}
}

func BenchmarkCheck(b *testing.B) {
	rec := first(simulate(1, 4, 60, 3000, ""))
	n := 0
	for b.Loop() {
		n = Check(rec).Events
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/event")
}
