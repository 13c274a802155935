//go:build vm

package rota

import (
	"strings"
	"testing"
)

// exits starts programs that work for 2 to 3 ms one after another where every CPU has a hog, and prints
// where in the kernel each of them was when it left a CPU.
const exits = `
stress-ng --cpu 4 --cpu-method int64 --quiet & load=$!
sleep 1
cd /sys/kernel/tracing
echo 'prev_comm == "true"' > events/sched/sched_switch/filter
echo 'stacktrace if prev_comm == "true"' > events/sched/sched_switch/trigger
echo 1 > events/sched/sched_switch/enable
i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i+1)); done
echo 0 > tracing_on
cat trace
kill $load
`

// TestExitIsNotCutShort: the kernel takes who exits out of its autogroup and asks for a choice then, a few us
// before its parent is woken. On 6.18 one of a hundred programs waited for a hog's turn there, and none
// on 7.2; where that was a choice like any other 50 and 56 did, and by the build 7 to 28 and 63 do under the
// kernel's own scheduler: so it is seen where it is.
func TestExitIsNotCutShort(t *testing.T) {
	for _, kernel := range []string{"6.18", "7.2"} {
		t.Run(kernel, func(t *testing.T) {
			t.Parallel()
			if cut := cutShort(t, kernel, "kernel"); cut < 2 {
				t.Errorf("under the kernel's own scheduler %d of 100 programs had to wait there, must be at least 2: it is not seen", cut)
			}
			if cut := cutShort(t, kernel, "rota"); cut > 5 {
				t.Errorf("%d of 100 programs had to wait when they were taken out of their autogroup, must be at most 5", cut)
			}
		})
	}
}

// cutShort is how many of the hundred lost the CPU when they were taken out of their autogroup. That is seen as what
// the kernel did before it switched: it let go of the run queue's lock in do_exit(), or in the
// function that do_exit() calls.
func cutShort(t *testing.T, kernel, sched string) int {
	t.Helper()
	out := lab(t, "exec", "--kernel", kernel, "--sched", sched, "--tool", "stress-ng", "--", exits)
	if gone := strings.Count(out, "=> do_task_dead\n => do_exit\n"); gone != 100 {
		t.Fatalf("%s: %d programs ended, must be 100\n%s", sched, gone, out)
	}
	return strings.Count(out, "=> _raw_spin_unlock_irqrestore\n => do_exit\n") +
		strings.Count(out, "=> sched_move_task\n => do_exit\n")
}
