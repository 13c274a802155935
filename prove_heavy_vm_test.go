//go:build vm

package rota

import (
	"regexp"
	"strconv"
	"testing"
)

// heavyOne wakes a task of nice -19 every 0.4 ms on a CPU where three tasks take long turns and four
// work for a moment every 2.5 ms. It prints how often it waited for more than 1 ms, and how often it
// was seen to wait for less. The tool's numbers begin with zeros, and the guest's awk would read octal
// ones.
const heavyOne = `
taskset -c 1 bursts 5 4 20 2500 3 40000 2000 1 > /dev/null & load=$!
sleep 0.7
nice -n -19 taskset -c 1 cyclictest --policy=other --quiet --interval=400 --loops=8000 --histogram=1000 > /waits
awk '/^[0-9]/ {sub(/^0+/, "", $2); soon += $2} /Overflows/ {sub(/^0+/, "", $NF); print "late " $NF + 0; print "soon " soon}' /waits
kill $load
`

var heavyWaits = regexp.MustCompile(`(?m)^(late|soon) (\d+)`)

// TestHeavyOneWaitsForNoLightTurn: who weighs far more than all others does not wait for the whole
// turns of those who are due a moment sooner. A few of 8000 may, by how they are due: 0 to 2 do,
// and 7 to 10 did while the turn of whoever ran went on.
func TestHeavyOneWaitsForNoLightTurn(t *testing.T) {
	t.Parallel()
	out := lab(t, "exec", "--sched", "rota", "--tool", "cyclictest", "--tool", "taskset", "--tool", "nice", "--tool", "awk",
		"--file", "bin/load/bursts=/bin/bursts", "--", heavyOne)
	got := map[string]int{}
	for _, m := range heavyWaits.FindAllStringSubmatch(out, -1) {
		got[m[1]], _ = strconv.Atoi(m[2])
	}
	if _, counted := got["late"]; !counted || got["soon"] < 4000 {
		t.Fatalf("measured %v, must be how many were late, and more than 4000 soon", got)
	}
	if got["late"] > 3 {
		t.Errorf("%d waits of more than 1 ms, must be at most 3", got["late"])
	}
}
