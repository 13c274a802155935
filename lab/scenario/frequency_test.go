package scenario

import (
	"math"
	"os"
	"strings"
	"testing"
)

// TestTimeDegree: half of what the kept parts differ by. At half the frequency who only
// computes keeps 0.5 of his work, who waits 0.6 of his time at full speed 1 / (0.6 + 0.4 * 2).
func TestTimeDegree(t *testing.T) {
	pair := [2]program{{"a", 0}, {"b", 600}}
	want := (1/1.4 - 0.5) / 2
	if got := timeDegree(pair, 1265); math.Abs(got-want) > 1e-9 {
		t.Errorf("%v, want %v", got, want)
	}
	if got := timeDegree(pair, frequencySteps()[0]); got != 0 {
		t.Errorf("at full frequency: %v", got)
	}
}

func TestFrequencyConfig(t *testing.T) {
	for factor, want := range map[float64]string{1: "prog-600, memoryBound: 0.6000}", 1.2: "prog-600, memoryBound: 0.7200}", 2: "prog-600, memoryBound: 1.0000}"} {
		if got := frequencyConfig(factor); !strings.Contains(got, want) {
			t.Errorf("%v: no %q in %s", factor, want, got)
		}
	}
}

// TestCountedRows: what is counted is what the load does, and nothing is declared.
func TestCountedRows(t *testing.T) {
	load, err := os.ReadFile("../load/progress.c")
	if err != nil {
		t.Fatal(err)
	}
	if seenWaits(rowCounted) != 1000 || seenWaits(rowCountedUnder) != 800 || seenWaits(rowCountedOver) != 1200 {
		t.Error("rows of a counter that is wrong")
	}
	counted := 0
	for _, row := range frequency().Rows {
		if !strings.Contains(row.Config, "counters") {
			continue
		}
		counted++
		if strings.Contains(row.Config, "memoryBound") || !strings.Contains(row.Config, "sys_enter_getppid") {
			t.Errorf("%s: %s", row.Name, row.Config)
		}
	}
	if counted != 4 || !strings.Contains(string(load), "SYS_getppid") {
		t.Errorf("%d rows count", counted)
	}
}

func TestFrequencyMetrics(t *testing.T) {
	degrees := 0
	for _, m := range frequencyMetrics() {
		if strings.HasSuffix(m.Name, "_degree") {
			degrees++
		}
	}
	if degrees != 18 || perMille(2530) != 1000 || perMille(930) != 368 {
		t.Errorf("%d points, top %d, least %d", degrees, perMille(2530), perMille(930))
	}
}
