//go:build vm

package rota

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// arm64Load says who schedules and what the counters of each CPU say, and moves between
// tasks all the time.
const arm64Load = `
uname -m
echo "scheduler $(cat /sys/kernel/sched_ext/root/ops)"
rota status
for i in 1 2 3 4 5 6; do (n=0; while [ $n -lt 3000 ]; do n=$((n+1)); done) & done; wait
counters 100
`

// counted is a line of the load program counters.
var counted = regexp.MustCompile(`(?m)^cpu (\d+) (busy|asleep) cycles (\d+) instructions (\d+) ns (\d+) rounds (\d+)$`)

// TestARM64 has rota for arm64 schedule a guest of arm64, whose CPUs count cycles and
// instructions, and leave it cleanly: exec fails where it is lost or can't be ended.
func TestARM64(t *testing.T) {
	t.Parallel()
	out := strings.ReplaceAll(lab(t, "exec", "--kernel", "6.18-arm64", "--sched", "rota", "--tool", "bin/arm64/load/counters", "--", arm64Load), "\r", "")
	for _, words := range []string{"\naarch64\n", "\nscheduler rota\n", "sched_ext enabled", "sched_ext attached true", "disabled (unregistered from user space)"} {
		if !strings.Contains("\n"+out, words) {
			t.Errorf("no %q", words)
		}
	}
	lines := counted.FindAllStringSubmatch(out, -1)
	if len(lines) != 8 {
		t.Fatalf("%d lines of counters, want busy and asleep of 4 CPUs", len(lines))
	}
	for _, m := range lines {
		var n [4]float64 // cycles, instructions, ns, rounds of work
		for i := range n {
			n[i], _ = strconv.ParseFloat(m[3+i], 64)
		}
		busy := m[2] == "busy"
		about := func(part float64) bool { return part > 0.95 && part < 1.05 }
		if n[2] < 100e6 || !about(n[0]/n[2]) || busy != about(n[1]/n[2]) || busy != (n[3] > 0) {
			t.Errorf("a cycle takes 1 ns, and as many instructions are counted where somebody works: %s", m[0])
		}
	}
}

// countedSpeeds makes a machine say that its CPUs run at their top of 2 GHz, where their
// counters have a cycle each nanosecond, and says what rota makes of that.
const countedSpeeds = `
mkdir -p /tmp/cpu/cpufreq/policy0
cd /tmp/cpu/cpufreq/policy0
echo 0 1 2 3 > affected_cpus; echo 2000000 > cpuinfo_max_freq; echo 2000000 > scaling_cur_freq
mount -t overlay overlay -o lowerdir=/tmp/cpu:/sys/devices/system/cpu /sys/devices/system/cpu
for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done
until rota status | grep -q "state *running"; do sleep 1; done
sleep 12
rota check | grep counters
rota status --json
`

// TestCountersOfAProcessor: what a real PMU counts is read on every switch: the
// frequencies of the CPUs are those of their cycles, whatever cpufreq says, and how much a class
// waits for memory is what was counted, not what was declared.
func TestCountersOfAProcessor(t *testing.T) {
	t.Parallel()
	config := configured(t, "scheduler: {frequencyFairness: on}\nclasses: [{name: default, memoryBound: 0.7}]\n")
	out := lab(t, "exec", "--kernel", "6.18-arm64", "--sched", "rota", "--module", "overlay", "--config", config, "--", countedSpeeds)
	for _, words := range []string{
		`counters\s+STALL_BACKEND of armv8_pmuv3`, `"counters": "STALL_BACKEND of armv8_pmuv3`, `"countersNote": ""`,
		`"name": "default",[^{]*"memoryBoundPercent": 0,\s*"memoryBoundCounted": true`, `(?s)("speedPercent": (49|50|51).*){4}`,
	} {
		if !regexp.MustCompile(words).MatchString(out) {
			t.Errorf("no %s", words)
		}
	}
}
