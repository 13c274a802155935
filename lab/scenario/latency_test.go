package scenario

import (
	"strings"
	"testing"
	"time"
)

func TestLatencyBounds(t *testing.T) {
	promised := map[string]float64{} // row, nice and figure -> times the kernel's
	for _, nice := range latencyNices() {
		for _, figure := range []string{"avg", "p99", "max"} {
			for _, b := range latencyBounds(nice, figure) {
				if b.Against != rowKernel || b.AtLeast != 0 {
					t.Errorf("%+v: must be at most some of the kernel's", b)
				}
				promised[b.Row+" "+wakeNices()[nice]+" "+figure] = b.AtMost
			}
		}
	}
	if len(promised) != 9+4 {
		t.Errorf("%d promises, want 13: %v", len(promised), promised)
	}
	for name, want := range map[string]float64{
		"rota nice19 max": 1.05, "rota-latency nice_minus19 avg": 0.6, "rota-latency nice0 avg": 0.7,
		"rota-latency nice19 avg": 1, "rota-latency nice19 max": 1,
	} {
		if promised[name] != want {
			t.Errorf("%s: at most %v, want %v", name, promised[name], want)
		}
	}
}

func TestInfoOfRows(t *testing.T) {
	info := latency().Info("")
	if !info.OwnKernel["cfs"] || info.OwnKernel[rowKernel] || !strings.Contains(info.About["cfs"], "CFS") {
		t.Errorf("%+v, %+v", info.OwnKernel, info.About)
	}
	for _, plot := range info.Plots {
		for _, name := range []string{plot.X, plot.Y} {
			found := false
			for _, m := range info.Metrics {
				found = found || m.Name == name
			}
			if !found {
				t.Errorf("plot %q: there is no figure %q", plot.Title, name)
			}
		}
	}
}

func TestSumOfCPUs(t *testing.T) {
	if n, err := sumOfCPUs([]byte(`{"cpus":[{"cpu":0,"owner":"a","steals":3},{"cpu":1,"owner":"","steals":4}]}`), "steals"); err != nil || n != 7 {
		t.Errorf("%v, %v", n, err)
	}
	for _, bad := range []string{"", "{}", `{"cpus":[]}`, `{"cpus":[{"cpu":0}]}`, `{"cpus":[{"steals":"3"}]}`} {
		if _, err := sumOfCPUs([]byte(bad), "steals"); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestSwitchCount(t *testing.T) {
	var none *switchCount
	if err := none.begin(); err != nil {
		t.Error(err)
	}
	if err := none.end(time.Second); err != nil {
		t.Error(err)
	}
	a, b := switches{10, 5, 2}, switches{4, 3, 1}
	if got := a.add(b, -1); got != (switches{6, 2, 1}) {
		t.Errorf("the difference is %+v", got)
	}
}
