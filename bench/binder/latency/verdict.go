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
	RT        Verdict `json:"rt"`
	Nice      Verdict `json:"nice"`
	Effective Verdict `json:"effective"`
}

// Boosts is a scheduler's own count of calls by SCHED_FIFO threads, and of those
// whose server it ran at the caller's level.
type Boosts struct{ Calls, Boosted uint64 }

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

// effectiveVerdict asks the scheduler, or else looks how long calls by
// SCHED_FIFO threads waited until the server had them.
func (r *Result) effectiveVerdict(fifo Series) Verdict {
	if r.Options.Boosts != nil {
		return askScheduler(r.Options.Boosts)
	}
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

func askScheduler(boosts func() (Boosts, error)) Verdict {
	b, err := boosts()
	switch {
	case err != nil:
		return Verdict{unknown, "the scheduler does not say: " + err.Error()}
	case b.Calls == 0:
		return Verdict{unknown, "the scheduler saw no call by a SCHED_FIFO thread"}
	case b.Boosted < b.Calls:
		return Verdict{fail, fmt.Sprintf("the scheduler ran the server at the caller's level in %d of %d calls", b.Boosted, b.Calls)}
	}
	return Verdict{pass, fmt.Sprintf("the scheduler ran the server at the caller's level in all of %d calls", b.Calls)}
}

func nanoseconds(list []time.Duration) []int64 {
	ns := make([]int64, len(list))
	for i, d := range list {
		ns[i] = d.Nanoseconds()
	}
	return ns
}
