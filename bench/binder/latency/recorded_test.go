package latency

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// line is one call of a file of samples.
type line struct {
	pair                         string
	caller                       string
	span, delivery               int64
	priority, cpu, atMax, ioctls bool
}

// recorded reads the samples of a run in a virtual machine with four hogs.
func recorded(t *testing.T) (lines []line) {
	t.Helper()
	f, err := os.Open("testdata/recorded.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		span, err := strconv.ParseInt(row[3], 10, 64)
		delivery, err2 := strconv.ParseInt(row[4], 10, 64)
		if err != nil || err2 != nil {
			t.Fatal(row)
		}
		lines = append(lines, line{row[0], row[1], span, delivery, row[5] == "1", row[6] == "1", row[7] == "1", row[8] == "1"})
	}
	return lines
}

// reported is the part of a report that is worked out again.
type reported struct {
	Cfg         struct{ Pair, Iterations, Deadline_us int }
	P0, P1      reportedPair
	Inheritance string
	Extended    struct {
		All map[string]struct{ Call, Delivery map[string]any }
	}
}

type reportedPair struct {
	SYNC              string
	S, I              int
	R                 float64
	Other_ms, Fifo_ms map[string]float64
}

// TestRecorded works every figure of a recorded run out again, from its samples
// and by the words of the definitions: nothing of the program is used.
func TestRecorded(t *testing.T) {
	text, err := os.ReadFile("testdata/recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	var r reported
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	lines := recorded(t)
	for name, p := range map[string]reportedPair{"0": r.P0, "1": r.P1} {
		apart, calls := 0, 0
		for _, l := range lines {
			if l.pair == name {
				calls++
				if l.cpu {
					apart++
				}
			}
		}
		near(t, name+" R", p.R, 1-float64(apart)/float64(calls), 6)
		if p.I != calls || p.S != calls-apart || (p.SYNC == "GOOD") != (p.R > 0.6) || calls != 2*r.Cfg.Iterations {
			t.Errorf("pair %s: %+v, want I %d, S %d", name, p, calls, calls-apart)
		}
		again(t, name+" other", p.Other_ms, lines, name, "other", r.Cfg.Deadline_us)
		again(t, name+" fifo", p.Fifo_ms, lines, name, "fifo", r.Cfg.Deadline_us)
	}
	inherited := "PASS"
	for _, l := range lines {
		if l.priority {
			inherited = "FAIL"
		}
	}
	if r.Inheritance != inherited {
		t.Errorf("inheritance %s, want %s", r.Inheritance, inherited)
	}
	for _, caller := range []string{"other", "fifo"} {
		var spans, deliveries []int64
		for _, l := range lines {
			if l.caller == caller {
				spans, deliveries = append(spans, l.span), append(deliveries, l.delivery)
			}
		}
		spreadAgain(t, caller+" call", r.Extended.All[caller].Call, spans)
		spreadAgain(t, caller+" delivery", r.Extended.All[caller].Delivery, deliveries)
	}
}

// near compares a figure with digits that count.
func near(t *testing.T, what string, got, want float64, digits int) {
	t.Helper()
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(want, 'e', digits-1, 64), 64)
	if err != nil || got != rounded {
		t.Errorf("%s: %v, want %v (%v)", what, got, rounded, want)
	}
}

func again(t *testing.T, what string, got map[string]float64, lines []line, pair, caller string, deadline int) {
	t.Helper()
	var n, miss, total, worst int64
	best := int64(math.MaxInt64)
	for _, l := range lines {
		if l.pair != pair || l.caller != caller {
			continue
		}
		n++
		total += l.span
		worst, best = max(worst, l.span), min(best, l.span)
		if l.span > int64(deadline)*1000 {
			miss++
		}
	}
	near(t, what+" avg", got["avg"], float64(total)/float64(n)/1e6, 2)
	near(t, what+" wst", got["wst"], float64(worst)/1e6, 2)
	near(t, what+" bst", got["bst"], float64(best)/1e6, 2)
	near(t, what+" meetR", got["meetR"], 1-float64(miss)/float64(n), 5)
	if got["miss"] != float64(miss) || len(got) != 5 {
		t.Errorf("%s: %v, want %d misses", what, got, miss)
	}
}

// spreadAgain finds percentiles by counting: the least sample that so many
// percent of all are not above.
func spreadAgain(t *testing.T, what string, got map[string]any, samples []int64) {
	t.Helper()
	notAbove := func(v int64) (n int) {
		for _, s := range samples {
			if s <= v {
				n++
			}
		}
		return n
	}
	for name, perMille := range map[string]int{"min_us": 0, "p50_us": 500, "p90_us": 900, "p95_us": 950, "p99_us": 990, "p99_9_us": 999, "max_us": 1000} {
		least := int64(math.MaxInt64)
		for _, s := range samples {
			if notAbove(s)*1000 >= perMille*len(samples) {
				least = min(least, s)
			}
		}
		if got[name] != float64(least)/1e3 {
			t.Errorf("%s %s: %v, want %v", what, name, got[name], float64(least)/1e3)
		}
	}
	total, bars := 0, 0
	for _, bar := range got["histogram_us"].([]any) {
		b := bar.(map[string]any)
		count := 0
		for _, s := range samples {
			if us := float64(s) / 1e3; us >= b["low"].(float64) && us < b["high"].(float64) {
				count++
			}
		}
		if count != int(b["count"].(float64)) {
			t.Errorf("%s: %v, want %d", what, b, count)
		}
		total, bars = total+count, bars+1
	}
	if total != len(samples) || got["samples"] != float64(len(samples)) {
		t.Errorf("%s: %d in %d bars, %v samples, want %d", what, total, bars, got["samples"], len(samples))
	}
}

// TestSamplesAreWhatIsReported reports the recorded samples anew: figures,
// spaces and all, and the samples as they were.
func TestSamplesAreWhatIsReported(t *testing.T) {
	r := &Result{Options: Options{Kind: Binder, Pairs: 2, Iterations: 60, Deadline: DefaultDeadline}, Pairs: map[int]Samples{}}
	for _, l := range recorded(t) {
		i, err := strconv.Atoi(l.pair)
		if err != nil {
			t.Fatal(err)
		}
		s := r.Pairs[i]
		series := &s.Other
		if l.caller == "fifo" {
			series = &s.Fifo
		}
		var seen byte
		for bit, is := range map[byte]bool{otherPriority: l.priority, otherCPU: l.cpu, atMaxPriority: l.atMax, moreIoctls: l.ioctls} {
			if is {
				seen |= bit
			}
		}
		series.Spans, series.Deliveries, series.Seen = append(series.Spans, l.span), append(series.Deliveries, l.delivery), append(series.Seen, seen)
		r.Pairs[i] = s
	}
	file := filepath.Join(t.TempDir(), "samples.csv")
	if err := r.WriteSamples(file); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(file)
	want, _ := os.ReadFile("testdata/recorded.csv")
	if string(got) != string(want) {
		t.Error("the samples are not those that were read")
	}
	text := reportOf(t, r)
	whole, _ := os.ReadFile("testdata/recorded.json")
	head, _, _ := strings.Cut(string(whole), "\"extended\"")
	gotHead, _, _ := strings.Cut(text, "\"inheritance\": ")
	if gotHead != head {
		t.Errorf("reported:\n%s\nrecorded:\n%s", gotHead, head)
	}
}
