//go:build vm

package rota

import (
	"regexp"
	"strconv"
	"testing"
)

// slack is how far a figure may be from its goal before the tests fail, for
// goals that are not reached on every seed; docs/goals.md says what is
// reached and why not more. A figure that no row matches must reach its goal.
var slack = []struct {
	promise string // what the line of the table contains
	factor  float64
}{
	// The kernel is lazy, and rota only if it is told to be: docs/decisions/0020.
	{"messaging -g 4 over pipes", 1.4},
	{"messages, ", 1.1},
	{"rota: wake-up latency under hackbench", 1.4},
	{"rota+classes: wake-up latency under hackbench", 2},
	{"rota: wake-up latency under one CPU hog", 2},
	{"rota+classes: wake-up latency under one CPU hog", 8},
	// Three seeds on two kernels have 80 to 95 us, the kernel 93 to 106 (docs/figures.md).
	{"five tasks that wake every ms, nice 0, avg", 1.1},
	// By the phases of a build rota has 0.14 to 0.19 ms, real-time tasks 0.08 to 0.24.
	{"round trip", 2.3},
	{"512 threads meet 20 times", 1.6},
	// What is left is by chance: 0.3 to 0.7 % by seed; 4 to 9 %, see docs/goals.md.
	{"change places", 1.5},
	{"5 hogs of nice 0 on four CPUs", 1.5},
	// A caller that is preempted between two clock readings may go on elsewhere, and half of them are real-time tasks,
	// for which a server leaves its CPU in the midst of an answer: docs/goals.md.
	{"answered on the caller's CPU", 1.1},
	// Few calls are made beside hackbench: one that misses is 2 %.
	{"binder calls, ", 5},
	// Where programs differ least, at the highest step, a phase moves half of it.
	{"improvement of Fair_Degree", 1.5},
}

var (
	// "rota: group, label: 25.31 us, 1.13 x kernel's 22.40 (at most 1.05 x kernel)"
	relative = regexp.MustCompile(`, ([0-9.e+]+) x [^ ]+ [0-9.e+]+ \((at most|at least) ([0-9.e+]+) x `)
	// "rota: group, label: 50.37 us (at most 40 us)"
	absolute = regexp.MustCompile(`: ([0-9.e+]+) [^ (]*? ?\((at most|at least) ([0-9.e+]+)`)
)

// miss tells by which factor a line of the table misses its goal; 0: it does not say.
func miss(line string) float64 {
	m := relative.FindStringSubmatch(line)
	if m == nil {
		m = absolute.FindStringSubmatch(line)
	}
	if m == nil {
		return 0
	}
	got, err := strconv.ParseFloat(m[1], 64)
	goal, err2 := strconv.ParseFloat(m[3], 64)
	if err != nil || err2 != nil || got <= 0 || goal <= 0 {
		return 0
	}
	if m[2] == "at least" {
		return goal / got
	}
	return got / goal
}

// TestMiss reads lines as the table prints them.
func TestMiss(t *testing.T) {
	for line, want := range map[string]float64{
		"NOT REACHED   rota: a, b: 25.20 us, 1.26 x kernel's 20.00 (at most 1.05 x kernel)":  1.2,
		"NOT REACHED   rota+classes: a, b: 60.00 us (at most 40 us)":                         1.5,
		"NOT REACHED   rota: a, b: 400.0 ops, 0.5 x kernel's 800.0 (at least 0.97 x kernel)": 1.94,
		"NOT REACHED   rota: a, b: 0 (at least 1)":                                           0,
		"not measured  rota: a, b":                                                           0,
	} {
		if got := miss(line); got < want-0.001 || got > want+0.001 {
			t.Errorf("%s: missed by %v, want %v", line, got, want)
		}
	}
}
