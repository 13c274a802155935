//go:build vm

package rota

import (
	"regexp"
	"testing"
)

// cameLoad takes a CPU away and gives it back at once, and then has a class that runs on
// no other: it waits for 60 % of its time.
const cameLoad = `
printf '\350\003\000\000\000\000\000\000' > /tmp/speed
cat > /rota.yaml <<'END'
scheduler: {frequencyFairness: on, counters: "syscalls:sys_enter_getppid/raw_syscalls:sys_enter"}
classes: [{name: waits, memoryBound: 0.1}]
rules: [{match: {comm: progress}, class: waits}]
END
rota run --config /rota.yaml & daemon=$!
for try in $(seq 100); do sleep 0.1; rota status 2> /dev/null | grep -q "state *running" && break; done
sleep 1.5
echo 0 > /sys/devices/system/cpu/cpu1/online && echo 1 > /sys/devices/system/cpu/cpu1/online
sleep 2.5
taskset 2 progress 600 /tmp/speed 1000 /tmp/board 0 & load=$!
taskset 2 progress 600 /tmp/speed 1000 /tmp/board 1 & other=$!
sleep 2
rota status --json
kill -9 $load $other; kill $daemon; wait $daemon
`

// TestCountersOfACPUThatCame: the counters of a CPU end when it goes, and rota opens new ones
// also where it was away for a moment only.
func TestCountersOfACPUThatCame(t *testing.T) {
	t.Parallel()
	out := lab(t, "exec", coarse, "--tool", "bin/rota", "--tool", "taskset", "--tool", "bin/load/progress", "--", cameLoad)
	if !regexp.MustCompile(`"name": "waits",[^{]*"memoryBoundPercent": (5[89]|6[0-2])(\.\d+)?,\s*"memoryBoundCounted": true`).MatchString(out) {
		t.Error("what waits on the CPU that came was not counted as 60 %")
	}
}
