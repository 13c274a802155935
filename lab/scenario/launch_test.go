package scenario

import (
	"testing"

	"rota/lab/scenario/output"
)

const launchLine = "launch_ms 80.5 cpu_ms 78 served_ms 20 voluntary 120 forced 14 app_units 2000 bg_units 6000\n"

func TestReadLaunches(t *testing.T) {
	all, err := readLaunches(launchLine + "launch_ms 119.5 cpu_ms 82 served_ms 20 voluntary 130 forced 16 app_units 2200 bg_units 9000\n")
	if err != nil || all.ms.Avg() != 100 || all.ms.Percentile(99) != 119.5 || all.forced.Avg() != 15 || all.voluntary.Avg() != 125 || all.cpuPct(4) != 25 || all.app != 4200 || all.bg != 15000 {
		t.Errorf("%+v, error %v", all, err)
	}
	for _, text := range []string{"", "\n\n", "launch_ms 80.5", launchLine + "launch: Success\n", launchLine + "launch_ms 0 cpu_ms 1 served_ms 1 voluntary 1 forced 1 app_units 1 bg_units 1"} {
		if _, err := readLaunches(text); err == nil {
			t.Errorf("%q was understood", text)
		}
	}
}

func TestLaunchTimes(t *testing.T) {
	list := launchTimes(output.Samples{80.5, 119.5, 89.99})
	if len(list) != 2 || list[0].Low != 80 || list[0].Count != 2 || list[1].High != 120 || list[1].Count != 1 {
		t.Errorf("%+v", list)
	}
}

func TestWaitShares(t *testing.T) {
	parts := waitShares(output.Samples{0, 3, 4, 100, 1023, 1024, 5000, 1e9})
	for i, want := range []float64{25, 12.5, 12.5, 12.5, 12.5, 25} {
		if !near(parts[i], want) {
			t.Errorf("%s: %v %%, want %v", waitBuckets()[i].label, parts[i], want)
		}
	}
}

func TestLaunchTask(t *testing.T) {
	for comm, want := range map[string]bool{"app-main": true, "app-worker": true, "RenderThread": true, "bg-caller": false, "zygote": false} {
		if launchTask(comm) != want {
			t.Errorf("%s: %v", comm, !want)
		}
	}
}
