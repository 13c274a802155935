//go:build vm

package rota

import (
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// visitors puts two hogs on each CPU, and five tasks that wake every ms and stay where they
// are: now this CPU has most to do, now that one. It says three times how often the hogs changed
// CPUs in 3 s, and how far the one that had most CPU time is from the one that had least, in
// percent.
const visitors = `
stress-ng --quiet --cpu 8 --cpu-method int64 & stress=$!
cyclictest --policy=other --quiet --threads=20 --affinity --interval=1000 --distance=37 > /dev/null & naps=$!
sleep 2
hogs=$(grep -l stress-ng-cpu /proc/[0-9]*/comm | cut -d/ -f3)
field() { for hog in $hogs; do grep "$1 " /proc/$hog/sched; done; }
moves() { field nr_migrations | awk '{sum += $3} END {print sum}'; }
runtime() { field se.sum_exec_runtime | awk '{print $3}'; }
echo "hogs $(echo $hogs | wc -w)"
for time in 1 2 3; do
	before=$(moves); runtime > /before
	sleep 3
	after=$(moves); runtime > /after
	echo "moves $((after - before))"
	paste /before /after | awk '{ms = $2 - $1; if (NR == 1 || ms < least) least = ms; if (ms > most) most = ms}
		END {print "spread " int(100 * (most / least - 1))}'
done
kill $stress $naps
`

var visited = regexp.MustCompile(`(?m)^(hogs|moves|spread) (\d+)`)

// TestHogsStay lets tasks come and go beside hogs: that is no reason for a hog to move, and
// yet the hogs share the CPUs. Now and then a hog is moved at the wrong time: how far they
// are apart is the median of three.
func TestHogsStay(t *testing.T) {
	t.Parallel()
	out := lab(t, "exec", "--sched", "rota", "--tool", "cyclictest", "--tool", "stress-ng", "--", visitors)
	got := map[string][]int{}
	for _, m := range visited.FindAllStringSubmatch(out, -1) {
		n, _ := strconv.Atoi(m[2])
		got[m[1]] = append(got[m[1]], n)
	}
	moves, spreads := got["moves"], got["spread"]
	if !slices.Equal(got["hogs"], []int{8}) || len(moves) != 3 || len(spreads) != 3 {
		t.Fatalf("measured %v, must be 8 hogs, and three times their moves and their spread", got)
	}
	if slices.Max(moves) > 150 {
		t.Errorf("the hogs moved %v times in 3 s, must be at most 150", moves)
	}
	slices.Sort(spreads)
	if spreads[1] > 10 {
		t.Errorf("the hog with most CPU time had %v %% more than the one with least, must be at most 10 in the median", spreads)
	}
}

// apart attaches while CPU 1 is offline, and so in a cache domain of its own. Four hogs that
// begin on CPU 0 may then run on CPU 3, too, where one is that has to stay. Printed is what
// that had of 3 s, in ticks of 10 ms.
const apart = `
hog() { taskset $1 sh -c 'while :; do :; done' & all="$all $!"; }
echo 0 > /sys/devices/system/cpu/cpu1/online
ls /sys/devices/system/cpu/cpu1/cache > /dev/null 2>&1 || echo apart
rota run & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
hog 8; alone=$!
hog 4
for i in 1 2 3 4; do hog 1; taskset -p 9 $! > /dev/null; done
used() { cut -d' ' -f14 /proc/$alone/stat; }
sleep 1
before=$(used)
sleep 3
echo alone $(($(used) - before))
kill $all
kill -INT $scheduler
wait`

// TestEveryPlaceIsLookedAt has a machine whose CPUs do not stand at the places of their
// numbers: a CPU takes from all others of its domain yet.
func TestEveryPlaceIsLookedAt(t *testing.T) {
	t.Parallel()
	out := lab(t, "exec", "--tool", "bin/rota", "--tool", "taskset", "--", apart)
	m := regexp.MustCompile(`(?s)apart\n.*alone (\d+)`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no figure, or CPU 1 has caches while it is offline, in:\n%s", out)
	}
	if ticks, _ := strconv.Atoi(m[1]); ticks < 90 || ticks > 200 {
		t.Errorf("who must stay on CPU 3 had %d ticks of 300, must be 90 to 200: two or three share it", ticks)
	}
}
