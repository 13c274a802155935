//go:build vm

package rota

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	binderModule = "binder_linux devices=binder,hwbinder,vndbinder"
	// manyCalls is after how many calls of each device nothing may be left. A
	// million take a quarter of an hour each: see docs/guide/binder.md.
	manyCalls = 20_000
	// maxMoreIoctls is how many of some hundred calls may take more than one
	// ioctl: a signal may interrupt one.
	maxMoreIoctls = 2
)

// binderLab runs a command line in a machine with the binder driver.
func binderLab(t *testing.T, kernel, command string, more ...string) string {
	t.Helper()
	args := []string{"exec", coarse, "--kernel", kernel, "--module", binderModule, "--file", "bin/rota=/bin/rota"}
	return strings.ReplaceAll(lab(t, append(append(args, more...), "--", command)...), "\r", "")
}

// TestBinder holds calls of a priority class to the deadline beside hogs and hackbench.
func TestBinder(t *testing.T) {
	t.Parallel()
	promised(t, "binder", "--row", "rota+classes")
}

// maxLaunchLoss is how much CPU time everybody else may lose for what an app gains while it
// starts. The goal is 1.05 in the median of seeds; single ones are 1.00 to 1.05.
const maxLaunchLoss = 1.08

// TestLaunch starts an app whose threads are in a priority class and whose services
// are not. What everybody else loses by it is counted in work, as it is the work that takes
// longer when the scheduler costs more.
func TestLaunch(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "launch.json")
	promised(t, "launch", "--row", "kernel,rota+classes", "--json", file)
	kernel, rota := figures(t, file, "kernel"), figures(t, file, "rota+classes")
	gained := rota["launch_app_cpu_pct"] - kernel["launch_app_cpu_pct"]
	lost := (100 - kernel["launch_app_cpu_pct"]) * (1 - rota["launch_bg_units_hz"]/kernel["launch_bg_units_hz"])
	if gained <= 0 || lost > maxLaunchLoss*gained {
		t.Errorf("the app gains %.1f points of all CPUs' time, everybody else loses %.1f: at most %.2f x", gained, lost, maxLaunchLoss)
	}
}

// TestBinderDriver runs the tests of the protocol that need the driver: dead
// servers, full buffers, parcels that are too large, several threads.
func TestBinderDriver(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "binder.test")
	build := exec.Command("go", "test", "-c", "-tags", "vm", "-o", program, "./bench/binder")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out := binderLab(t, "6.18-binder", "/binder.test -test.v -test.run ^TestDriver", "--file", program+"=/binder.test")
	for _, test := range []string{"DeadServer", "Limits", "Threads"} {
		if !strings.Contains(out, "--- PASS: TestDriver"+test) {
			t.Errorf("no PASS of TestDriver%s", test)
		}
	}
}

// benchEach runs each tool, and then what may happen to one.
const benchEach = `
rota check --json | grep -A4 '"name": "binder"'
for kind in binder hwbinder; do
	echo "report $(rota bench $kind-latency -i 40 -pair 2 --extended | tr '\n' ' ')"
	echo "report $(rota bench $kind-throughput --benchmark_filter '/(4|65536)$' --benchmark_min_time 100x --benchmark_format json 2>/dev/null | tr '\n' ' ')"
done
rota bench binder-latency -i 1000000 & bench=$!
sleep 0.5; kill -INT $bench; wait $bench; echo "interrupted: $?"
rota bench binder-latency -i 1000000 & bench=$!
sleep 0.5
for pid in $(pidof rota); do grep -q latency-server /proc/$pid/cmdline && kill -9 $pid; done
wait $bench; echo "server killed: $?"
echo "left running: $(pidof rota)."
`

// reports finds the JSON in what a machine printed.
var reports = regexp.MustCompile(`(?m)^report (\{.*\}) *$`)

// TestBinderTools runs the tools on the oldest kernel that has binder and rota's
// newest; TestBinder and TestBinderDriver are on one between.
func TestBinderTools(t *testing.T) {
	t.Parallel()
	for _, kernel := range []string{"6.1-binder", "7.2-binder"} {
		t.Run(kernel, func(t *testing.T) {
			t.Parallel()
			out := binderLab(t, kernel, benchEach)
			for _, words := range []string{"interrupted: 130", "(BR_DEAD_REPLY)", "server killed: 1", "left running: .", "module binder_linux, devices: /dev/binder /dev/hwbinder /dev/vndbinder, BTF present"} {
				if !strings.Contains(out, words) {
					t.Errorf("no %q", words)
				}
			}
			found := reports.FindAllStringSubmatch(out, -1)
			if len(found) != 4 {
				t.Fatalf("%d reports, want 4", len(found))
			}
			for _, m := range found {
				checkReport(t, m[1])
			}
		})
	}
}

// checkReport looks for what does not depend on the kernel.
func checkReport(t *testing.T, text string) {
	t.Helper()
	var r struct {
		Cfg        struct{ Pair int }
		Benchmarks []struct {
			More int `json:"calls_of_more_than_one_ioctl"`
		}
		Inheritance string
		Left        map[string]int
		Extended    struct {
			Inheritance struct {
				RT, Nice, Effective struct{ Verdict, Source string }
			}
			All map[string]struct {
				More int `json:"calls_of_more_than_one_ioctl"`
			}
			Left map[string]int
		}
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	left := r.Left
	for _, row := range r.Benchmarks {
		if row.More > maxMoreIoctls {
			t.Errorf("%d calls took more than one ioctl", row.More)
		}
	}
	if r.Cfg.Pair > 0 {
		left = r.Extended.Left
		v := r.Extended.Inheritance
		// Mainline kernels pass on nice, and no real-time attributes.
		if r.Inheritance != "FAIL" || v.RT.Verdict != "FAIL" || v.Nice.Verdict != "PASS" {
			t.Errorf("inheritance %s, %+v", r.Inheritance, v)
		}
		if v.Effective.Source != "wait" {
			t.Errorf("without rota there is nobody to ask: %+v", v.Effective)
		}
		for caller, calls := range r.Extended.All {
			if calls.More > maxMoreIoctls {
				t.Errorf("%s: %d calls took more than one ioctl", caller, calls.More)
			}
		}
	} else if len(r.Benchmarks) != 2 {
		t.Errorf("%d rows, want 2", len(r.Benchmarks))
	}
	nothingLeft(t, left)
}

func nothingLeft(t *testing.T, left map[string]int) {
	t.Helper()
	if len(left) == 0 {
		t.Error("not known what the driver holds")
	}
	for what, n := range left {
		if n != 0 {
			t.Errorf("%d %s are left in the driver", n, what)
		}
	}
}

// TestBinderLeaks makes many calls to each device: the driver holds nothing
// afterwards, and neither process has more descriptors.
func TestBinderLeaks(t *testing.T) {
	t.Parallel()
	command := fmt.Sprintf(`for kind in binder hwbinder; do
	echo "report $(rota bench $kind-throughput --benchmark_filter '/4$' --benchmark_min_time %dx --benchmark_format json 2>/dev/null | tr '\n' ' ')"
done`, manyCalls)
	out := binderLab(t, "6.18-binder", command, "--cpus", "2", "--host-limit", "45m")
	found := reports.FindAllStringSubmatch(out, -1)
	if len(found) != 2 {
		t.Fatalf("%d reports, want 2", len(found))
	}
	for _, m := range found {
		var r struct {
			Benchmarks []struct {
				Iterations  int
				Descriptors int `json:"descriptors_left"`
			}
			Left map[string]int
		}
		if err := json.Unmarshal([]byte(m[1]), &r); err != nil || len(r.Benchmarks) != 1 || r.Benchmarks[0].Iterations != manyCalls || r.Benchmarks[0].Descriptors != 0 {
			t.Errorf("error %v in %s", err, m[1])
		}
		nothingLeft(t, r.Left)
	}
}
