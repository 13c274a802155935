//go:build vm

package rota

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// lab runs bin/rota-lab as anybody would and returns what it wrote.
func lab(t *testing.T, args ...string) string {
	t.Helper()
	program, err := filepath.Abs("bin/rota-lab")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: run make build", err)
	}
	out, err := exec.Command(program, args...).CombinedOutput()
	t.Logf("rota-lab %s\n%s", strings.Join(args, " "), out)
	if err != nil {
		t.Fatalf("rota-lab: %v", err)
	}
	return string(out)
}

var (
	reached    = regexp.MustCompile(`(?m)^  reached .*$`)
	notReached = regexp.MustCompile(`(?m)^  (NOT REACHED|not measured) .*$`)
)

// promised runs a scenario and fails for each promise about its figures that
// was not reached.
func promised(t *testing.T, args ...string) {
	t.Helper()
	out := lab(t, append([]string{"run"}, args...)...)
	for _, line := range notReached.FindAllString(out, -1) {
		t.Error(strings.TrimSpace(line))
	}
	if !reached.MatchString(out) {
		t.Error("nothing was promised: the test proves nothing")
	}
}

// TestNoStarvation lets others behave badly: fork storms and hogs of a priority
// class, hogs of nice -20, stress-ng --aggressive, barriers of 512 threads.
//
// Guarantee G1, no starvation: a runnable task of any class and any nice value
// gets CPU time within `scheduler.starvationBound` (default 1 s), and the
// kernel's watchdog never ends rota
func TestNoStarvation(t *testing.T) {
	promised(t, "abuse")
}

// TestFairShares measures shares by nice and over CPUs.
//
// Guarantee G2, fair shares: tasks of the fair tier on one CPU get the shares of
// their weights to within 2 %, and hogs spread over CPUs to within 8 % of each
// other
func TestFairShares(t *testing.T) {
	promised(t, "shares", "--row", "rota,rota+classes")
}

// TestSafeExit does to the machine and to the daemon what can happen to them.
//
// Guarantee G5, safe exit: when the daemon dies, is killed, or the scheduler
// fails, the kernel's own scheduler has every task at once; nothing hangs,
// nothing is lost
func TestSafeExit(t *testing.T) {
	promised(t, "faults", "--row", "rota,rota+classes")
}

// TestPromises holds the figures that a scenario promises beside the
// guarantees.
func TestPromises(t *testing.T) {
	for _, scenario := range []string{"wake", "ping", "throughput"} {
		t.Run(scenario, func(t *testing.T) { promised(t, scenario) })
	}
}

// TestSameTwice runs a cell twice and expects the same bytes, and other bytes
// from another seed.
func TestSameTwice(t *testing.T) {
	dir := t.TempDir()
	results := func(seed string, more ...string) string {
		file := filepath.Join(dir, seed+".json")
		lab(t, append([]string{"run", "wake", "--row", "rota", "--seed", seed, "--json", file}, more...)...)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(text), `"seed": `+seed, `"seed"`)
	}
	if results("1", "--twice") == results("2") {
		t.Error("another seed gave the same results")
	}
}

// kernels says how rota fares on each row of the lock file: the exit code of
// `rota check`, and a word of the reason where it refuses.
var kernels = map[string]struct {
	exit, reason string
}{
	"6.1":         {"78", "sched_ext"},
	"6.12":        {"78", "sched_ext"},
	"6.17":        {"0", ""},
	"6.18":        {"0", ""},
	"6.18-binder": {"0", ""},
	"6.19":        {"0", ""},
	"7.0":         {"0", ""},
	"7.1":         {"78", "malformed"},
	"7.2.12":      {"78", "malformed"},
	"7.2":         {"0", ""},
}

// tryToRun checks, runs until attached or ended, and stops.
const tryToRun = `
/bin/rota check; echo "check: $?"
/bin/rota run & daemon=$!
for try in $(seq 100); do
	sleep 0.1
	kill -0 $daemon 2>/dev/null || break
	grep -q enabled /sys/kernel/sched_ext/state 2>/dev/null && break
done
echo "state: $(cat /sys/kernel/sched_ext/state 2>/dev/null)"
sleep 1
kill $daemon 2>/dev/null
wait $daemon
echo "run: $?"
`

// TestEveryKernel boots each kernel of the lock file: rota runs there, or says
// why not.
func TestEveryKernel(t *testing.T) {
	text, err := os.ReadFile("lab/kernels.lock")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, m := range regexp.MustCompile(`(?m)^Row: (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		rows = append(rows, m[1])
	}
	if len(rows) != len(kernels) {
		t.Errorf("lab/kernels.lock has the rows %v, the test knows %d", rows, len(kernels))
	}
	for _, row := range rows {
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			want, known := kernels[row]
			if !known {
				t.Fatal("what rota does on this kernel is not known: add it to the test and to docs/guide/kernels.md")
			}
			out := lab(t, "exec", "--kernel", row, "--file", "bin/rota=/bin/rota", "--", tryToRun)
			words := []string{"check: " + want.exit, "run: " + want.exit, want.reason}
			if want.exit == "0" {
				words = append(words, "state: enabled")
			}
			for _, word := range words {
				if !strings.Contains(strings.ReplaceAll(out, "\r", ""), word) {
					t.Errorf("no %q", word)
				}
			}
		})
	}
	for row := range kernels {
		if !slices.Contains(rows, row) {
			t.Errorf("the test knows %s, which lab/kernels.lock does not have", row)
		}
	}
}
