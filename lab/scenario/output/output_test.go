package output

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recorded is what a tool of Debian bookworm printed.
func recorded(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestTools(t *testing.T) {
	type read func(string) (float64, error)
	stress := func(text string) (float64, error) { return StressNG(text, "cpu") }
	tests := map[string]struct {
		read read
		file string
		want float64
	}{
		"hackbench": {Hackbench, "hackbench.txt", 0.154},
		"pipe":      {PerfPipe, "perf-pipe.txt", 30.781},
		"messaging": {PerfMessaging, "perf-messaging.txt", 0.050},
		"stress-ng": {stress, "stress-ng.txt", 3546},
		"switch":    {BenchSwitch, "bench-switch.json", 3736.3416666666667},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := test.read(recorded(t, test.file))
			if err != nil || got != test.want {
				t.Errorf("got %v, %v; want %v", got, err, test.want)
			}
			for _, bad := range []string{"", "Time: soon", "x usecs/op", "Total time:", "metrc: [1] cpu", "Time: NaN", " NaN usecs/op", "Total time: -1 [sec]", `{"switchNanos": {"median": 0}}`, "{}"} {
				if got, err := test.read(bad); err == nil {
					t.Errorf("read %v from %q", got, bad)
				}
			}
		})
	}
}

func TestStressNGNamesTheStressor(t *testing.T) {
	if _, err := StressNG(recorded(t, "stress-ng.txt"), "pipe"); err == nil || !strings.Contains(err.Error(), `"pipe"`) {
		t.Errorf("error is %v: must name pipe", err)
	}
}

func TestPing(t *testing.T) {
	times, lost, err := Ping(recorded(t, "ping.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Samples{0.213, 0.021, 0.025, 0.016, 0.033}, times); diff != "" || lost != 0 {
		t.Errorf("lost %d, times (-want +got):\n%s", lost, diff)
	}
	text := strings.Replace(recorded(t, "ping.txt"), "5 packets", "8 packets", 1)
	if _, lost, err = Ping(text); err != nil || lost != 3 {
		t.Errorf("lost %d, %v; want 3", lost, err)
	}
	for _, bad := range []string{"", "64 bytes: time=1.5 s\n1 packets transmitted", "64 bytes: time=x ms\n1 packets transmitted", " packets transmitted", "1e300 packets transmitted"} {
		if _, _, err := Ping(bad); err == nil {
			t.Errorf("read %q", bad)
		}
	}
}

func TestCyclictest(t *testing.T) {
	l, err := Cyclictest([]byte(recorded(t, "cyclictest.json")))
	if err != nil {
		t.Fatal(err)
	}
	if l.Cycles != 100 || l.Min != 62 || l.Max != 74 || l.Avg != 64.31 || l.Over != 0 || l.Counts[63] != 30 {
		t.Errorf("read %+v", l)
	}
	for p, want := range map[float64]float64{0: 62, 7: 62, 8: 63, 50: 64, 99: 72, 100: 74} {
		if got := l.Percentile(p); got != want {
			t.Errorf("percentile %v is %v, want %v", p, got, want)
		}
	}
}

func TestCyclictestCountsWhatItsHistogramCouldNotHold(t *testing.T) {
	l, err := Cyclictest([]byte(`{"thread":{"0":{"histogram":{"5":8},"cycles":10,"min":5,"max":90000,"avg":9000}}}`))
	if err != nil || l.Over != 2 {
		t.Fatalf("over %d, %v; want 2", l.Over, err)
	}
	if got := l.Percentile(99); got != 90000 {
		t.Errorf("percentile 99 is %v, want the maximum", got)
	}
}

func TestCyclictestCountsTheCycleThatWasCutOff(t *testing.T) {
	l, err := Cyclictest([]byte(`{"thread":{"0":{"histogram":{"6":1},"cycles":1,"min":6,"max":3200346,"avg":3200346}}}`))
	if err != nil || l.Cycles != 2 || l.Over != 1 || l.Percentile(99) != 3200346 {
		t.Errorf("read %+v, %v: must count two cycles, one over", l, err)
	}
}

func TestCyclictestRefuses(t *testing.T) {
	for _, bad := range []string{
		"", "{}", `{"thread":{}}`,
		`{"thread":{"0":{"cycles":0}}}`,
		`{"thread":{"0":{"cycles":1},"1":{"cycles":1}}}`,
		`{"thread":{"0":{"cycles":1,"histogram":{"x":1}}}}`,
		`{"thread":{"0":{"cycles":1,"histogram":{"-1":1}}}}`,
		`{"thread":{"0":{"cycles":1,"histogram":{"5":2}}}}`,
		`{"thread":{"0":{"cycles":1,"histogram":{"5":-9}}}}`,
	} {
		if l, err := Cyclictest([]byte(bad)); err == nil {
			t.Errorf("read %+v from %s", l, bad)
		}
	}
}

func TestSamples(t *testing.T) {
	s := Samples{3, 1, 2, 10}
	if s.Avg() != 4 || s.Max() != 10 || s.Min() != 1 || s.Deviation() != math.Sqrt(12.5) {
		t.Errorf("avg %v, max %v, min %v, deviation %v", s.Avg(), s.Max(), s.Min(), s.Deviation())
	}
	for p, want := range map[float64]float64{0: 1, 25: 1, 26: 2, 50: 2, 99: 10, 100: 10} {
		if got := s.Percentile(p); got != want {
			t.Errorf("percentile %v is %v, want %v", p, got, want)
		}
	}
	var none Samples
	if none.Avg() != 0 || none.Max() != 0 || none.Min() != 0 || none.Deviation() != 0 || none.Percentile(99) != 0 {
		t.Error("no samples: every figure must be 0")
	}
}

func TestFigure(t *testing.T) {
	if got, err := Figure("barrier_s 0.5 errors 0\n", "barrier_s"); err != nil || got != 0.5 {
		t.Errorf("got %v, %v: must be 0.5", got, err)
	}
	for _, bad := range []string{"", "errors 0", "barrier_s 0", "barrier_s -1", "barrier_s"} {
		if _, err := Figure(bad, "barrier_s"); err == nil {
			t.Errorf("%q has no such figure, and is accepted", bad)
		}
	}
}

func TestPairs(t *testing.T) {
	got, err := Pairs("changes 258 wrong_cpu 0 stalled 0\n")
	if diff := cmp.Diff(map[string]float64{"changes": 258, "wrong_cpu": 0, "stalled": 0}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{"", "a", "a b", "a 1 b"} {
		if _, err := Pairs(bad); err == nil {
			t.Errorf("read %q", bad)
		}
	}
}

func TestIdle(t *testing.T) {
	before, err := ProcStat("cpu  100 0 100 700 100 0 0 0 50 0\ncpu0 1\n")
	if err != nil || before != (CPUTimes{Idle: 800, Total: 1000}) {
		t.Fatalf("read %+v, %v", before, err)
	}
	after := CPUTimes{Idle: 820, Total: 1400}
	if pct, err := IdlePct(before, after); err != nil || math.Abs(pct-5) > 1e-9 {
		t.Errorf("idle %v %%, %v; want 5", pct, err)
	}
	if _, err := IdlePct(after, before); err == nil {
		t.Error("time ran backwards and nobody minded")
	}
	for _, bad := range []string{"", "cpu0 1 2 3 4 5 6 7 8", "cpu  1 2 3", "cpu  1 2 3 4 5 6 7 x"} {
		if _, err := ProcStat(bad); err == nil {
			t.Errorf("read %q", bad)
		}
	}
	if _, err := ProcStat(recorded(t, "proc-stat.txt")); err != nil {
		t.Error(err)
	}
}

func TestBoard(t *testing.T) {
	data := make([]byte, boardSlots*slotSize)
	data[slotSize*3] = 7   // loops of slot 3
	data[slotSize*3+8] = 8 // CPU time
	data[slotSize*3+16] = 9
	data[slotSize*3+24] = 10
	data[slotSize*3+32] = 11
	data[slotSize*3+48] = 12
	data[slotSize*3+56] = 13
	slots, err := Board(data)
	if err != nil || slots[3] != (Slot{7, 8, 9, 10, 11, 12, 13}) || slots[2] != (Slot{}) {
		t.Errorf("read %+v, %v", slots[3], err)
	}
	if _, err := Board(data[1:]); err == nil {
		t.Error("a short board was read")
	}
}

// sane fails when a reader accepted what is no number.
func sane(t *testing.T, v float64, err error) {
	t.Helper()
	if err == nil && (math.IsNaN(v) || math.IsInf(v, 0) || v < 0) {
		t.Errorf("read %v without an error", v)
	}
}

func FuzzText(f *testing.F) {
	for _, name := range []string{"hackbench.txt", "perf-pipe.txt", "perf-messaging.txt", "stress-ng.txt", "ping.txt", "proc-stat.txt"} {
		f.Add(recorded(f, name))
	}
	f.Add("changes 258 wrong_cpu 0 stalled 0\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, read := range []func(string) (float64, error){Hackbench, PerfPipe, PerfMessaging} {
			v, err := read(text)
			sane(t, v, err)
		}
		v, err := StressNG(text, "cpu")
		sane(t, v, err)
		times, lost, err := Ping(text)
		if lost < 0 {
			t.Errorf("lost %d packets", lost)
		}
		for _, v := range times {
			sane(t, v, err)
		}
		if cpu, err := ProcStat(text); err == nil && cpu.Idle > cpu.Total {
			t.Errorf("more idle than time: %+v", cpu)
		}
		pairs, err := Pairs(text)
		for _, v := range pairs {
			sane(t, v, err)
		}
	})
}

func FuzzCyclictest(f *testing.F) {
	f.Add([]byte(recorded(f, "cyclictest.json")))
	f.Add([]byte(`{"thread":{"0":{"histogram":{"5":8},"cycles":10,"min":5,"max":90000,"avg":9000}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := Cyclictest(data)
		if err != nil {
			return
		}
		total := l.Over
		for _, count := range l.Counts {
			total += count
		}
		if total != l.Cycles || l.Over < 0 {
			t.Errorf("%d cycles, but %d counted, %d over", l.Cycles, total, l.Over)
		}
		l.Percentile(99)
	})
}
