//go:build vm

package rota

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// kernels says how rota fares on each row of the lock file: the exit code of
// `rota check`, and a word of the reason where it refuses. Rows of one release
// differ in their modules: booted names the one that is tried for both. Some come
// without modules: bare. programs is where rota for other kernels than amd64's is.
var kernels = map[string]struct {
	exit, reason, booted, programs string
	bare                           bool
}{
	"6.1":         {exit: "78", reason: "sched_ext"},
	"6.1-binder":  {exit: "78", reason: "sched_ext", booted: "6.1"},
	"6.12":        {exit: "78", reason: "sched_ext"},
	"6.12-binder": {exit: "78", reason: "sched_ext", booted: "6.12"},
	"6.17":        {exit: "0"},
	"6.18":        {exit: "0"},
	"6.18-binder": {exit: "0"},
	"6.18-arm64":  {exit: "0", programs: "arm64/"},
	"6.19":        {exit: "0", bare: true},
	"7.0":         {exit: "0", bare: true},
	"7.1":         {exit: "78", reason: "malformed", bare: true},
	"7.2.12":      {exit: "78", reason: "malformed"},
	"7.2":         {exit: "0"},
	"7.2-binder":  {exit: "0", booted: "7.2"},
}

// tryToRun checks, runs until attached or ended, and stops. Before that it says whether the lab
// has given the kernel what it makes random numbers of.
const tryToRun = `
dmesg | grep -q "crng init done" && echo "random: ready"
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
	t.Parallel()
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
		want, known := kernels[row]
		if known && want.booted != "" {
			continue
		}
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			if !known {
				t.Fatal("what rota does on this kernel is not known: add it to the test and to docs/guide/kernels.md")
			}
			args := []string{"exec", coarse, "--kernel", row, "--file", "bin/" + want.programs + "rota=/bin/rota"}
			if !want.bare {
				args = append(args, "--module", "veth")
			}
			out := lab(t, append(args, "--", tryToRun)...)
			series, _, _ := strings.Cut(row, "-")
			if !regexp.MustCompile(`kernel ` + regexp.QuoteMeta(series) + `[.+]`).MatchString(out) {
				t.Error("another kernel was booted")
			}
			words := []string{"random: ready", "check: " + want.exit, "run: " + want.exit, want.reason}
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
