package scenario

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"rota/lab/guest"
	"rota/lab/oracle"
)

// The classes of this scenario put tasks beside each other that differ in all
// that the fair tier looks at.
const oracleConfig = `classes:
  - name: heavy
    weight: 300
  - name: brisk
    slice: 500us
  - name: later
    tier: background
rules:
  - match: {comm: "heavy-*"}
    class: heavy
  - match: {comm: "brisk-*"}
    class: brisk
  - match: {comm: "later-*"}
    class: later
`

// oracleSlow has shares of progress, on a machine that changes its frequency.
var oracleSlow = "scheduler: {frequencyFairness: on}\n" +
	strings.NewReplacer("weight: 300", "weight: 300\n    memoryBound: 0.6", "slice: 500us", "slice: 500us\n    memoryBound: 0.15").Replace(oracleConfig)

const (
	// oracleEvents is the room of the record for each CPU.
	oracleEvents = 900000
	// oracleCrowd is how long all loads run at once, oracleRush how long tasks
	// do that switch all the time.
	oracleCrowd = 700 * time.Millisecond
	oracleRush  = 800 * time.Millisecond
	// oracleIdle is longer than any turn, in ns.
	oracleIdle = 100e6
	// chargedFull is what is charged at least where time counts as it is, and
	// chargedSlow at most where CPUs run below their top frequency, in percent.
	chargedFull = 85
	chargedSlow = 80
	// chargedLeast is what is charged where somebody runs all the time, at the lowest
	// frequencies.
	chargedLeast = 40
	// wanderTime is how long the machine stays at a frequency.
	wanderTime = 60 * time.Millisecond
)

// conformance records what the fair tier decides under loads of many kinds and has
// it judged.
func conformance() Scenario {
	return Scenario{
		Name:     "oracle",
		Title:    "Conformance",
		Question: "Does every decision of the fair tier follow from EEVDF's definition, when an independent model replays it?",
		Rows:     oracleRows(),
		Metrics:  oracleMetrics(),
		Tools:    []string{"hackbench", "cyclictest"},
		Loads:    []string{"hog", "storm", "affinity", "barrier"},
		MemoryMB: 3072,
		Limit:    240 * time.Second,
		Run:      runOracle,
	}
}

func oracleRows() []Row {
	config := func(name, text string) Row {
		return Row{Name: name, Scheduler: "rota", Config: text, Record: oracleEvents}
	}
	slow := config(rowFrequency, oracleSlow)
	slow.About = "with classes that wait for memory, on a machine that changes its frequency all the time"
	return []Row{
		config(rowRota, ""),
		config(rowRotaLatency, latencyPreset),
		config(rowRotaThroughput, throughputPreset),
		config(rowClasses, oracleConfig),
		slow,
	}
}

// oracleFault is a kind of fault and what a reader calls it.
type oracleFault struct {
	fault       oracle.Fault
	name, label string
}

func oracleFaults() []oracleFault {
	return []oracleFault{
		{oracle.WrongPick, "wrong_picks", "wrong picks"},
		{oracle.WrongV, "wrong_v", "virtual time of a queue off"},
		{oracle.BadPlacement, "bad_placements", "placed wrongly"},
		{oracle.BadCharge, "bad_charges", "charged wrongly"},
		{oracle.BadSettle, "bad_settlements", "departures settled wrongly"},
		{oracle.BadRelease, "bad_releases", "ghosts let go wrongly"},
		{oracle.BadLeave, "bad_leaves", "left wrongly"},
		{oracle.BadRun, "bad_runs", "ran without a pick"},
		{oracle.LateTurn, "late_turns", "turns that went on too long"},
		{oracle.LagBound, "lag_violations", "lag out of its bounds"},
		{oracle.Unknown, "unknown_tasks", "about a task that is not there"},
	}
}

func oracleMetrics() []Metric {
	each := func(b Bound) (bounds []Bound) {
		for _, row := range oracleRows() {
			b.Row = row.Name
			bounds = append(bounds, b)
		}
		return bounds
	}
	metrics := []Metric{
		{Name: "events", Group: "recorded", Label: "events", Better: 0},
		{Name: "picks", Group: "recorded", Label: "picks that were judged", Better: 0, Bounds: each(Bound{AtLeast: 100000})},
		{Name: "most_owed_ms", Group: "lag", Label: "most that a task was owed", Better: 0},
		{Name: "most_ahead_ms", Group: "lag", Label: "most that a task was ahead", Better: 0},
		{Name: "races", Group: "recorded", Label: "in an order that two CPUs saw differently", Better: 0, Bounds: each(Bound{AtMost: 200})},
		{Name: "fullest_part_pct", Group: "recorded", Label: "of the room of the fullest CPU", Better: 0, Bounds: each(Bound{AtMost: 99})},
	}
	metrics = append(metrics, Metric{Name: "charged_pct", Group: "recorded", Label: "charged, of the time of the CPUs", Better: 0,
		Bounds: []Bound{{Row: rowClasses, AtLeast: chargedFull}, {Row: rowFrequency, AtLeast: chargedLeast, AtMost: chargedSlow}}})
	for _, f := range oracleFaults() {
		metrics = append(metrics, Metric{Name: f.name, Group: "faults", Label: f.label, Better: -1, Bounds: each(Bound{AtMost: noFault})})
	}
	return metrics
}

// noFault is a bound of none: a bound of 0 means that there is no bound.
const noFault = 0.5

func runOracle(g *guest.Guest) (err error) {
	for _, name := range []string{"heavy", "brisk", "later"} {
		if err := os.Symlink("/bin/hog", "/bin/"+name+"-hog"); err != nil {
			return err
		}
	}
	if g.Row.Name == rowFrequency {
		machine, err := newSlowMachine(g)
		if err != nil {
			return err
		}
		stop := machine.wander(g)
		defer func() { err = errors.Join(err, stop()) }()
	}
	g.ExpectDetach() // the record is written when the scheduler ends
	for _, load := range []func(*stage) error{crowd, rush} {
		s := newStage(g, "oracle")
		err := load(s)
		s.stop()
		if err != nil {
			return err
		}
	}
	if err := g.StopScheduler(); err != nil {
		return err
	}
	file, err := os.Open(guest.RecordPath)
	if err != nil {
		return err
	}
	defer file.Close()
	record, err := oracle.Read(file)
	if err != nil {
		return err
	}
	fullest := 0
	for _, part := range record.Parts {
		fullest = max(fullest, len(part))
	}
	g.Metric("fullest_part_pct", 100*float64(fullest)/oracleEvents)
	g.Metric("charged_pct", 100*charged(record))
	emitReport(g, oracle.Check(record))
	return nil
}

// charged is how much was charged, of the time in which the CPUs of the record were busy: where
// nothing is recorded for oracleIdle nobody runs.
func charged(record *oracle.Record) float64 {
	var ns, time float64
	for _, part := range record.Parts {
		for i, e := range part {
			if e.Kind == oracle.Charge {
				ns += float64(e.Span)
			}
			if i > 0 && e.Time-part[i-1].Time < oracleIdle {
				time += float64(e.Time - part[i-1].Time)
			}
		}
	}
	if time == 0 {
		return 0
	}
	return ns / time
}

// rush lets threads of two nice values meet on each CPU: nothing but turns.
func rush(s *stage) error {
	var errs []error
	for cpu := range s.g.CPUs {
		_, err := s.start(guest.Cmd{Path: "barrier", Args: []string{"24", "100000", "5"}, CPUs: strconv.Itoa(cpu)})
		errs = append(errs, err)
	}
	s.g.Sleep(oracleRush)
	return errors.Join(errs...)
}

// crowd runs at once: tasks that sleep and wake all the time, hogs of all
// weights here and there, short lives, changing masks, a barrier.
func crowd(s *stage) error {
	for i, nice := range []int{-15, -5, 0, 0, 5, 10, 19} {
		c := guest.Cmd{Path: []string{"hog", "heavy-hog", "brisk-hog", "later-hog"}[i%4], Nice: nice}
		if i%2 == 0 {
			c.CPUs = "1"
		}
		if _, err := s.startHogs(1, c); err != nil {
			return err
		}
	}
	s.g.Sleep(500 * time.Millisecond)
	if err := s.hackbenchForever(); err != nil {
		return err
	}
	var errs []error
	for _, c := range []guest.Cmd{
		{Path: "cyclictest", Args: []string{"--policy=other", "--quiet", "--threads=4", "--interval=700", "--duration=30"}},
		{Path: "barrier", Args: []string{"64", "100000", "5"}},
	} {
		_, err := s.start(c)
		errs = append(errs, err)
	}
	_, err := s.startCounting(guest.Cmd{Path: "storm", Args: []string{"fork", "4"}}, 1)
	errs = append(errs, err)
	_, err = s.start(guest.Cmd{Path: "affinity", Args: []string{"4", "30000", "7", s.board, "20"}})
	s.g.Sleep(oracleCrowd)
	return errors.Join(append(errs, err)...)
}

func emitReport(g *guest.Guest, report oracle.Report) {
	g.Metric("events", float64(report.Events))
	g.Metric("picks", float64(report.Checked))
	g.Metric("most_owed_ms", report.MostOwed/1e6)
	g.Metric("most_ahead_ms", math.Abs(report.MostAhead)/1e6)
	g.Metric("races", float64(report.Raced()))
	for _, f := range oracleFaults() {
		g.Metric(f.name, float64(report.Faults[f.fault]))
	}
	for i, words := range report.Words {
		g.Event(fmt.Sprintf("fault_%d", i+1), strings.TrimSpace(words))
	}
	for i, words := range report.Trail {
		g.Event(fmt.Sprintf("around_%02d", i), words)
	}
	for i, words := range report.RaceWords {
		g.Event(fmt.Sprintf("race_%d", i+1), strings.TrimSpace(words))
	}
}
