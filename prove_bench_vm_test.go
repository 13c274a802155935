//go:build vm

package rota

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// benchCPU measures loads whose waits are known: two loops that share a CPU, and
// who sleeps on a machine where CPUs are idle. Where rota runs, its daemon counts
// the waits of the loops, too.
const benchCPU = `
report() { name=$1; shift; echo "report $name $("$@" --json | tr '\n' ' ')"; }
loop() { taskset 2 sh -c 'while :; do :; done' & }
sh -c 'while :; do sleep 0.005; done' & sleeper=$!
report sleeper rota bench runnable --pid $sleeper --for 500ms
kill $sleeper
report switch rota bench switch --cpu 0 --iterations 300 --repeat 3
rota bench runnable --cgroup none; echo "no cgroup: $?"
rota bench runnable --pid 99999; echo "no process: $?"
(rota bench runnable --cgroup / --for 100s; echo "interrupted: $?") & sleep 0.7
kill -INT $(pidof rota); wait $!
sh -c 'sleep 0.5' & report ended rota bench runnable --pid $! --for 100s
loop; one=$!; loop; two=$!
mkdir -p /sys/fs/cgroup/loops/one
echo $one > /sys/fs/cgroup/loops/one/cgroup.procs; echo $two > /sys/fs/cgroup/loops/cgroup.procs
report loop rota bench runnable --pid $one --for 500ms
report loops rota bench runnable --cgroup /sys/fs/cgroup/loops --for 500ms
case $part in
known)
	mkdir /sys/fs/cgroup/known
	report known rota bench runnable --cgroup known --for 3s & bench=$!
	sleep 1.5
	taskset 2 sh -c '
		echo $$ > /sys/fs/cgroup/known/cgroup.procs; read before < /proc/$$/schedstat
		i=0; while [ $i -lt 8000 ]; do i=$((i+1)); done
		read after < /proc/$$/schedstat; echo $$ > /sys/fs/cgroup/cgroup.procs
		echo "schedstat $before $after"'
	wait $bench ;;
class)
	echo '{"classes": [{"name": "loops"}], "rules": [{"match": {"cgroup": "loops"}, "class": "loops"}]}' > /rota.yaml
	rota run --config /rota.yaml & daemon=$!
	for try in $(seq 100); do sleep 0.1; grep -q enabled /sys/kernel/sched_ext/state && break; done
	sleep 0.3
	report class rota bench runnable --class loops --for 1s
	report after rota bench runnable --cgroup loops --for 1s
	rota bench runnable --class lops; echo "no class: $?"
	kill $daemon; wait $daemon ;;
esac
`

// waits is what runnable answers.
type waits struct {
	Seconds       float64
	EndedEarly    string
	Count, Lost   uint64
	MeanMicros    float64
	MaxMicros     float64
	Buckets       []struct{ SharePercent float64 }
	WaitHistogram []uint64
	Context       struct{ Scheduler string }
	// What switch answers.
	SwitchesPerRound                   float64
	RoundNanos, PairNanos, SwitchNanos struct{ Min, Median, Max float64 }
}

// share is the part of the time that somebody waited; two who wait at once count twice.
func (w waits) share() float64 { return w.MeanMicros * float64(w.Count) / 1e6 / w.Seconds }

// named finds the reports, by name.
var named = regexp.MustCompile(`(?m)^report (\w+) (\{.*\}) *$`)

// TestBenchCPU measures waits and switches on the oldest kernel that it is for and
// on the newest, and waits of a class on one between.
func TestBenchCPU(t *testing.T) {
	t.Parallel()
	for kernel, part := range map[string]string{"6.1": "", "6.18": "class", "7.2": "known"} {
		t.Run(kernel, func(t *testing.T) {
			t.Parallel()
			out := strings.ReplaceAll(lab(t, "exec", coarse, "--kernel", kernel, "--file", "bin/rota=/bin/rota", "--", "part="+part+benchCPU), "\r", "")
			words := []string{"no cgroup: 1", "no process: 1", "interrupted: 0", "ended early: interrupted"}
			if part == "class" {
				words = append(words, "no class: 1")
			}
			for _, word := range words {
				if !strings.Contains(out, word) {
					t.Errorf("no %q", word)
				}
			}
			found := map[string]waits{}
			for _, m := range named.FindAllStringSubmatch(out, -1) {
				var w waits
				if err := json.Unmarshal([]byte(m[2]), &w); err != nil {
					t.Fatalf("%v in %s", err, m[0])
				}
				found[m[1]] = w
			}
			checkWaits(t, found)
			switch part {
			case "class":
				checkClass(t, found["class"], found["after"])
			case "known":
				checkKnown(t, found["known"], schedstat.FindStringSubmatch(out))
			}
		})
	}
}

// schedstat is the time that a task ran and waited, in ns, and how often it got a
// CPU, before its work and after it.
var schedstat = regexp.MustCompile(`(?m)^schedstat \d+ (\d+) (\d+) \d+ (\d+) (\d+) *$`)

// checkKnown holds the waits of a task against those that the kernel says it had.
func checkKnown(t *testing.T, w waits, kernel []string) {
	t.Helper()
	if kernel == nil {
		t.Fatal("the kernel does not say how long the task waited")
	}
	var n [4]float64
	for i := range n {
		n[i], _ = strconv.ParseFloat(kernel[i+1], 64)
	}
	// One wait may fall between reading and entering, one between leaving and reading.
	waited, times := (n[2]-n[0])/1e3, n[3]-n[1]
	more := float64(w.Count) - times
	if more < 0 || more > 2 {
		t.Errorf("waited %d times, the kernel says %.0f", w.Count, times)
	}
	if got := w.MeanMicros * float64(w.Count); got < 0.99*waited || got > 1.01*waited+more*w.MaxMicros || waited == 0 {
		t.Errorf("waited %.0f us, the kernel says %.0f us", got, waited)
	}
}

// checkWaits holds what was measured against what must be.
func checkWaits(t *testing.T, found map[string]waits) {
	t.Helper()
	for name, want := range map[string]float64{"loop": 0.5, "loops": 1} {
		// A turn at each end may be cut off.
		w := found[name]
		if w.share() < want-0.1 || w.share() > want+0.1 || w.Lost != 0 {
			t.Errorf("%s: waited %.2f of the time, want %.2f: %+v", name, w.share(), want, w)
		}
		if long := w.Buckets; len(long) != 6 || long[4].SharePercent+long[5].SharePercent < 90 {
			t.Errorf("%s: most waits must be those for another's turn: %+v", name, w)
		}
	}
	if w := found["sleeper"]; w.Count < 20 || w.MaxMicros > 1000 || w.Buckets[0].SharePercent+w.Buckets[1].SharePercent < 90 {
		t.Errorf("who sleeps beside idle CPUs waited: %+v", w)
	}
	if w := found["ended"]; w.EndedEarly == "" || w.Seconds > 10 {
		t.Errorf("the process has ended, the measurement not: %+v", w)
	}
	// Of three rounds one may be interrupted: what is left for the switch can then be less than nothing.
	s := found["switch"]
	if s.SwitchesPerRound < 2 || s.SwitchesPerRound > 3 || s.SwitchNanos.Median <= 0 || s.RoundNanos.Median < 2*s.PairNanos.Median {
		t.Errorf("switch: %+v", s)
	}
}

// checkClass holds the daemon's count of a class against that of its cgroup, which
// was measured after it, with the same load.
func checkClass(t *testing.T, class, cgroup waits) {
	t.Helper()
	if class.Context.Scheduler != "rota" || class.Count == 0 || cgroup.Count == 0 {
		t.Fatalf("class %+v, cgroup %+v", class, cgroup)
	}
	if ratio := float64(class.Count) / float64(cgroup.Count); ratio < 0.85 || ratio > 1.15 {
		t.Errorf("the daemon counted %d waits, the bench %d", class.Count, cgroup.Count)
	}
	for i, b := range class.Buckets {
		if d := b.SharePercent - cgroup.Buckets[i].SharePercent; d < -10 || d > 10 {
			t.Errorf("bucket %d: the daemon has %.1f %% of the waits, the bench %.1f %%", i, b.SharePercent, cgroup.Buckets[i].SharePercent)
		}
	}
}
