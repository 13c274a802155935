package latency

import (
	"fmt"
	"time"
)

// Answers of a verdict.
const (
	pass    = "PASS"
	fail    = "FAIL"
	unknown = "UNKNOWN"
)

// Verdict is an answer with its reason.
type Verdict struct {
	Verdict string `json:"verdict"`
	Why     string `json:"why"`
}

// Verdicts are three answers to "did the server run at the caller's level?": by
// its real-time attributes (the original's question), by its nice value, and by
// what it got.
type Verdicts struct {
	RT        Verdict   `json:"rt"`
	Nice      Verdict   `json:"nice"`
	Effective Effective `json:"effective"`
}

// Effective also says where the answer is from.
type Effective struct {
	Verdict
	Source string  `json:"source"`
	Calls  *Boosts `json:"calls,omitempty"` // what rota counted
}

// Sources of an effective verdict.
const (
	fromRota = "rota" // it counts the calls whose server it ran at the caller's level
	fromWait = "wait" // the time until the server had the call
)

// Boosts is a scheduler's own count of calls, by SCHED_FIFO and by ordinary threads.
type Boosts struct {
	Given   uint64 `json:"given"`   // of callers in a class that gives its level
	Boosted uint64 `json:"boosted"` // of these, those that the server answered at that level
}

func (r *Result) verdicts(fifo Series) Verdicts {
	return Verdicts{RT: r.rtVerdict(), Nice: r.niceVerdict(), Effective: r.effectiveVerdict(fifo)}
}

func (r *Result) rtVerdict() Verdict {
	calls, without := 0, 0
	for _, s := range r.Pairs {
		calls += len(s.Fifo.Spans)
		without += s.notInherited()
	}
	if without == 0 {
		return Verdict{pass, fmt.Sprintf("in all of %d calls by SCHED_FIFO threads the server's thread had their priority", calls)}
	}
	return Verdict{fail, fmt.Sprintf("in %d of %d calls by SCHED_FIFO threads the server's thread did not have their priority; "+
		"mainline kernels pass nice on and no real-time attributes, Android's pass both on", without, calls)}
}

func (r *Result) niceVerdict() Verdict {
	var sum NiceProbe
	for _, s := range r.Pairs {
		sum.Calls += s.Nice.Calls
		sum.Followed += s.Nice.Followed
		if s.Nice.Fault != "" {
			sum.Fault = s.Nice.Fault
		}
	}
	switch {
	case sum.Fault != "" || sum.Calls == 0:
		return Verdict{unknown, "no calls at other nice values: " + sum.Fault}
	case sum.Followed == sum.Calls:
		return Verdict{pass, fmt.Sprintf("in all of %d calls at nice %d and %d the server's thread had the caller's nice value", sum.Calls, niceProbes[0], niceProbes[1])}
	}
	return Verdict{fail, fmt.Sprintf("in %d of %d calls at nice %d and %d the server's thread had another nice value",
		sum.Calls-sum.Followed, sum.Calls, niceProbes[0], niceProbes[1])}
}

// How the effective level is found by waiting. A server at the caller's level
// waits for a CPU as long as a SCHED_FIFO thread does, whose round trips over
// pipes are the measure; one at an ordinary level waits for the turns of others.
const (
	// waitsLonger is how many times the measure a wait must be to count, and
	// leastWait the least: below it lie the costs of any wake-up.
	waitsLonger = 4
	leastWait   = 200 * time.Microsecond
	// mostLate is the share of late deliveries that is still a PASS.
	mostLate = 0.01
)

// effectiveVerdict is rota's where its count has all calls by SCHED_FIFO threads, or
// one that was not boosted; else it looks at the waits, and says why.
func (r *Result) effectiveVerdict(fifo Series) Effective {
	waits := Effective{Verdict: r.waitVerdict(fifo), Source: fromWait}
	b, of := r.Boosts, fmt.Sprintf("calls by threads of a class that gives it (calls in all: %d)", r.calls())
	switch {
	case r.Options.Boosts == nil:
		return waits
	case r.BoostsFault != nil:
		waits.Why += "; rota does not say: " + r.BoostsFault.Error()
		return waits
	case b.Boosted < b.Given:
		return Effective{Verdict{fail, fmt.Sprintf("rota did not run the server's thread at the caller's level in %d of %d %s", b.Given-b.Boosted, b.Given, of)}, fromRota, &b}
	case b.Given < max(1, uint64(len(fifo.Spans))):
		waits.Why += fmt.Sprintf("; rota knows of %d %s", b.Given, of)
		return waits
	}
	return Effective{Verdict{pass, fmt.Sprintf("rota ran the server's thread at the caller's level in all of %d %s", b.Given, of)}, fromRota, &b}
}

// calls is how many calls all clients made.
func (r *Result) calls() (n int) {
	for _, s := range r.Pairs {
		n += s.calls() + s.Nice.Calls
	}
	return n
}

// waitVerdict looks how long calls by SCHED_FIFO threads waited until the server had
// them.
func (r *Result) waitVerdict(fifo Series) Verdict {
	if len(r.PipeFifo) == 0 || len(r.PipeOther) == 0 || len(fifo.Deliveries) == 0 {
		return Verdict{unknown, "nothing was measured to compare with"}
	}
	scale := spread(nanoseconds(r.PipeFifo)).P99
	limit := max(time.Duration(scale*waitsLonger*1e3), leastWait)
	late := misses(fifo.Deliveries, limit)
	share := float64(late) / float64(len(fifo.Deliveries))
	waited := fmt.Sprintf("of %d calls by SCHED_FIFO threads %d (%.2g %%) waited longer than %v for the server's thread to run",
		len(fifo.Deliveries), late, 100*share, limit.Round(time.Microsecond))
	if share > mostLate {
		return Verdict{fail, waited + ": it waited for others at an ordinary level"}
	}
	if !r.loaded(limit) {
		return Verdict{unknown, waited + ", but ordinary threads did not have to wait either: measure under load"}
	}
	return Verdict{pass, waited + ", while ordinary threads had to wait"}
}

// loaded tells whether ordinary threads had to wait for a CPU.
func (r *Result) loaded(limit time.Duration) bool {
	late := misses(nanoseconds(r.PipeOther), limit)
	return float64(late) > mostLate*float64(len(r.PipeOther))
}

func nanoseconds(list []time.Duration) []int64 {
	ns := make([]int64, len(list))
	for i, d := range list {
		ns[i] = d.Nanoseconds()
	}
	return ns
}
