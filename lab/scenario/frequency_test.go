package scenario

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"rota/lab/scenario/output"
)

// TestTimeDegree: half of what the kept parts differ by. At half the frequency who only
// computes keeps 0.5 of his work, who waits 0.6 of his time at full speed 1 / (0.6 + 0.4 * 2).
func TestTimeDegree(t *testing.T) {
	pair := [2]program{{"a", 0}, {"b", 600}}
	want := (1/1.4 - 0.5) / 2
	if got := timeDegree(pair, 1265); math.Abs(got-want) > 1e-9 {
		t.Errorf("%v, want %v", got, want)
	}
	if got := timeDegree(pair, topFrequency); got != 0 {
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
	for name, seen := range map[string]int{rowCounted: 1000, rowCountedUnder: 800, rowCountedOver: 1200} {
		if row := frequencyRowOf(name); row.Name != name || row.seen != seen || row.tsf {
			t.Errorf("%+v sees %d", row, row.seen)
		}
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

// TestEpochWeight: who waits half of its time keeps 0.75 at half the frequency, and who only
// computes 0.5, so that both get 0.6 of their work with these weights.
func TestEpochWeight(t *testing.T) {
	for _, test := range []struct {
		phi, speed float64
		want       int
	}{{0, 1, 1000}, {0.5, 1, 1000}, {0, 0.5, 2000}, {0.5, 0.5, 1333}, {1, 0.368, 1000}} {
		if got := epochWeight(weightOne, test.phi, test.speed); got != test.want {
			t.Errorf("phi %v at speed %v: %d, want %d", test.phi, test.speed, got, test.want)
		}
	}
	for _, name := range []string{rowKernelTSF, rowTSF} {
		if row := frequencyRowOf(name); row.Name != name || !row.tsf {
			t.Errorf("%+v", row)
		}
	}
}

// TestProgramOf: as many of each, also of those that every second or fourth tick hits.
func TestProgramOf(t *testing.T) {
	for _, step := range []int{1, 2, 4} {
		for first := range step {
			sum := 0
			for slot := first; slot < 2*frequencyTasks; slot += step {
				sum += programOf(slot)
			}
			if sum != frequencyTasks/step {
				t.Errorf("every %d from %d: %d of the second program", step, first, sum)
			}
		}
	}
}

// TestSpanOf: where there is little to see more is done, within bounds.
func TestSpanOf(t *testing.T) {
	near, far := programPairs()[0], programPairs()[2]
	if at := spanOf(near, 2270); at != 4200*time.Millisecond || at != spanOf(near, 2530) {
		t.Error(at)
	}
	if at := spanOf(far, 930); at != frequencySpan {
		t.Error(at)
	}
}

// TestWorkError: of 100 pieces 75 and 25 are due to weights of 3 and 1.
func TestWorkError(t *testing.T) {
	weights := []float64{3, 1}
	before := []output.Slot{{Loops: 1000}, {Loops: 7}}
	for loops, want := range map[uint64]float64{75: 0, 70: 5, 80: 5} {
		after := []output.Slot{{Loops: 1000 + loops}, {Loops: 107 - loops}}
		if got := workError(weights, before, after); math.Abs(got-want) > 1e-9 {
			t.Errorf("%d of 100: %v %%, want %v", loops, got, want)
		}
	}
}
