package scenario

import (
	"fmt"
	"math"
	"time"
)

// niceWeights are the kernel's weights of nice -20..19
// (kernel/sched/core.c, sched_prio_to_weight).
var niceWeights = [40]float64{
	88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
	9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277,
	1024, 820, 655, 526, 423, 335, 272, 215, 172, 137,
	110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
}

// niceWeight is the weight of a nice value in -20..19.
func niceWeight(nice int) float64 { return niceWeights[nice+20] }

// steadyWant is of how much of a CPU who sleeps wants something in every
// napPeriod; who wants less may want nothing in a whole window.
const steadyWant = float64(napWork) / float64(napPeriod)

// claim is what a member of a crowd may ask of its CPUs.
type claim struct {
	weight float64
	// want is how much of one CPU it asks for, 0..1; 0: all that it can get.
	want float64
}

// dues returns what each is due of ns, the CPU time that all can have together:
// who asks for a part gets it, and the others have what those left in the ratio
// of their weights. got is what each had, in the unit of ns.
func dues(claims []claim, got []float64, ns, windowNs float64) []float64 {
	due, weights := make([]float64, len(claims)), 0.0
	for i, c := range claims {
		if c.want > 0 {
			due[i] = c.want * windowNs
			ns -= got[i]
		} else {
			weights += c.weight
		}
	}
	for i, c := range claims {
		if c.want == 0 {
			due[i] = ns * c.weight / weights
		}
	}
	return due
}

// look is the CPU time that each member had when the board was read.
type look struct {
	atNs  uint64
	cpuNs []uint64
}

// shareErrors are the distances of what each had from what he was due, in
// percent of a window, over all windows of a length.
type shareErrors struct {
	maxPct, meanPct float64
	windows         int
	// worst is whose error is the greatest.
	worst int
	// leastPct is the smallest part of what he wanted that anybody had who
	// wanted steadyWant or more, but not all that he could get; 100 if there
	// was nobody.
	leastPct float64
}

// errorsOf judges every window of the given length that begins at one of the
// looks, which are as far apart as that is a multiple of; cpus is how many CPUs
// the crowd has for itself.
func errorsOf(claims []claim, looks []look, window time.Duration, cpus int) (shareErrors, error) {
	e, sum := shareErrors{leastPct: 100}, 0.0
	for first, end := 0, 0; ; first++ {
		for end < len(looks) && looks[end].atNs-looks[first].atNs < uint64(window) {
			end++
		}
		if end == len(looks) {
			break
		}
		e.windows++
		sum += e.add(claims, looks[first], looks[end], cpus)
	}
	if e.windows == 0 {
		return e, fmt.Errorf("shares: %d looks at the board: must span %v", len(looks), window)
	}
	e.meanPct = sum / float64(e.windows*len(claims))
	return e, nil
}

// add judges one window and returns the sum of all errors in it, in percent.
func (e *shareErrors) add(claims []claim, from, to look, cpus int) (sumPct float64) {
	windowNs := float64(to.atNs - from.atNs)
	got := make([]float64, len(claims))
	for i := range got {
		got[i] = float64(to.cpuNs[i] - from.cpuNs[i])
	}
	for i, due := range dues(claims, got, windowNs*float64(cpus), windowNs) {
		pct := 100 * math.Abs(got[i]-due) / windowNs
		if sumPct += pct; pct > e.maxPct {
			e.maxPct, e.worst = pct, i
		}
		if claims[i].want >= steadyWant {
			e.leastPct = min(e.leastPct, 100*got[i]/due)
		}
	}
	return sumPct
}
