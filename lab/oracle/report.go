package oracle

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is what a scheduler can do wrong.
type Fault string

// The faults that Check tells apart.
const (
	WrongPick    Fault = "wrong pick"       // not the eligible task of least deadline
	WrongV       Fault = "wrong V"          // V is not the weighted mean
	BadPlacement Fault = "wrong placement"  // v or deadline of a task that joins
	BadCharge    Fault = "wrong charge"     // v or deadline of a task that ran
	BadSettle    Fault = "wrong settlement" // not the sum of those who left from afar
	BadRelease   Fault = "wrong release"    // a ghost let go too early or too late
	BadLeave     Fault = "wrong departure"  // a ghost, or the last one, that is none
	BadRun       Fault = "run unpicked"     // nobody decided that it runs
	LateTurn     Fault = "turn too long"    // it went on though it was over and others waited
	LagBound     Fault = "lag out of bounds"
	Unknown      Fault = "unknown task" // it never joined the queue
)

// Faults lists all of them in the order of a report.
func Faults() []Fault { return slices.Clone(faults) }

var faults = []Fault{WrongPick, WrongV, BadPlacement, BadCharge, BadSettle, BadRelease, BadLeave, BadRun, LateTurn, LagBound, Unknown}

var kindNames = []string{Join: "join", Leave: "leave", Settle: "settle", Release: "release", Wait: "wait", Pick: "pick", Run: "run", Charge: "charge", Ahead: "ahead", Yield: "yield", Pull: "pull"}

var pickNames = []string{Dispatch: "dispatch", Keep: "keep", Preempt: "preempt", Direct: "direct", Rescue: "rescue", Last: "last", Come: "come"}

// maxWords is how many faults of a kind, and how many races, a Report has in words.
const maxWords = 8

// Report is what Check found.
type Report struct {
	Events  int
	Ignored int // later than the end of the first full part
	// Picks counts the decisions by kind: dispatch, keep, preempt, direct,
	// rescue and last. Checked were held against the model; the others are
	// exempt, or of tasks that were not known.
	Picks   map[string]int
	Checked int
	VChecks int // how often V was held against the model
	// Faults counts what is wrong. Races counts what would be, but for an event
	// of another CPU within Late that explains it.
	Faults map[Fault]int
	Races  map[Fault]int
	// MostOwed and MostAhead are the greatest and the least lag seen, in ns.
	MostOwed, MostAhead float64
	// Words has the first faults of each kind, RaceWords the first races, one
	// line each.
	Words, RaceWords []string
	// Trail has the events around the first fault, one line each.
	Trail []string
}

// Wrong is the number of all faults, races left out.
func (r Report) Wrong() int { return sum(r.Faults) }

// Raced is the number of all races.
func (r Report) Raced() int { return sum(r.Races) }

func sum(counts map[Fault]int) int {
	n := 0
	for _, count := range counts {
		n += count
	}
	return n
}

// String is the report for people: counts, then the first faults and races.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "events        %d", r.Events)
	if r.Ignored > 0 {
		fmt.Fprintf(&b, " (and %d after the end of a full part)", r.Ignored)
	}
	picks := 0
	var kinds []string
	for _, name := range pickNames[1:] {
		picks += r.Picks[name]
		kinds = append(kinds, fmt.Sprintf("%s %d", name, r.Picks[name]))
	}
	fmt.Fprintf(&b, "\npicks         %d: %s\n", picks, strings.Join(kinds, ", "))
	fmt.Fprintf(&b, "picks checked %d\nV checked     %d\n", r.Checked, r.VChecks)
	fmt.Fprintf(&b, "lag           %.3f ms to %.3f ms\n", r.MostAhead/1e6, r.MostOwed/1e6)
	fmt.Fprintf(&b, "faults        %d\n", r.Wrong())
	for _, f := range faults {
		if r.Faults[f] > 0 || r.Races[f] > 0 {
			fmt.Fprintf(&b, "  %-17s %d (and %d races)\n", f, r.Faults[f], r.Races[f])
		}
	}
	for _, words := range r.Words {
		fmt.Fprintf(&b, "fault: %s\n", words)
	}
	for _, words := range r.RaceWords {
		fmt.Fprintf(&b, "race: %s\n", words)
	}
	if len(r.Trail) > 0 {
		fmt.Fprintf(&b, "around the first fault:\n  %s\n", strings.Join(r.Trail, "\n  "))
	}
	return b.String()
}

// fault counts a fault, or a race if an event of another CPU explains it, and
// says so in words that name time, queue and task.
func (r *replay) fault(f Fault, e *Event, raced bool, format string, args ...any) {
	r.faultBeside(f, e, 0, raced, format, args...)
}

// faultBeside is the same where another task, 0: none, has to do with it.
func (r *replay) faultBeside(f Fault, e *Event, other uint32, raced bool, format string, args ...any) {
	counts, words := r.report.Faults, &r.report.Words
	if raced {
		counts, words = r.report.Races, &r.report.RaceWords
	}
	if !raced && r.report.Trail == nil {
		r.report.Trail = r.trail(e, other)
	}
	counts[f]++
	if counts[f] <= maxWords {
		tier := []string{1: "fair", 2: "background"}[e.Tier]
		where := fmt.Sprintf("%d.%09d CPU %d %s task %d: %s: ", e.Time/1e9, e.Time%1e9, e.CPU, tier, e.TID, f)
		*words = append(*words, where+fmt.Sprintf(format, args...))
	}
}
