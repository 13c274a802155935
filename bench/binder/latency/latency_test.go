package latency

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"rota/bench/binder"
	"rota/bench/binder/pairs"
	"rota/bench/peer"
)

func reportOf(t *testing.T, r *Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Report(&b, Context{Kernel: "6.18", CPUs: 4}); err != nil {
		t.Fatal(err)
	}
	var any map[string]any
	if err := json.Unmarshal(b.Bytes(), &any); err != nil {
		t.Errorf("not JSON: %v\n%s", err, b.String())
	}
	return b.String()
}

// series is calls of these ns, which all show the same.
func series(seen byte, ns ...int64) Series {
	return Series{ns, slices.Clone(ns), bytes.Repeat([]byte{seen}, len(ns))}
}

// TestReport holds the words, the nesting, the spaces and the digits: those of
// both originals.
func TestReport(t *testing.T) {
	pairs := map[int]Samples{0: {Other: series(otherCPU, 200_000, 2_800_000, 53_000), Fifo: series(otherPriority, 160_000, 1e8, 2_500_000)}}
	for kind, want := range map[Kind]string{
		Binder: `{
"cfg":{"pair":1,"iterations":3,"deadline_us":2500},
"P0":{"SYNC":"POOR","S":3,"I":6,"R":0.5,
  "other_ms":{ "avg":1   ,"wst":2.8 ,"bst":0.053,"miss":1,"meetR":0.66667},
  "fifo_ms": { "avg":34  ,"wst":1e+02,"bst":0.16,"miss":1,"meetR":0.66667}
},
"inheritance": "FAIL"
}
`,
		HwBinder: `{
"cfg":{"pair":1,"iterations":3,"deadline_us":2500},
"P0":{"SYNC":"POOR","S":3,"I":6,"R":0.5,
  "other_ms":{ "avg":1   , "wst":2.8 , "bst":0.053, "miss":1, "meetR":0.66667},
  "fifo_ms": { "avg":34  , "wst":1e+02, "bst":0.16, "miss":1, "meetR":0.66667}
},
"inheritance": "FAIL"
}
`,
	} {
		r := &Result{Options: Options{Kind: kind, Iterations: 3, Pairs: 1, Deadline: DefaultDeadline}, Pairs: pairs}
		if got := reportOf(t, r); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", kind, got, want)
		}
	}
}

// TestCompat holds each defect of the originals: there with Compat, not without.
func TestCompat(t *testing.T) {
	ns := make([]int64, 256)
	for i := range ns {
		ns[i] = 2_600_000
	}
	for _, test := range []struct {
		kind          Kind
		compat        bool
		sync, miss    int
		heritage      bool
		deadline      time.Duration
		seenF, seenO  byte
		whatIsChecked string
	}{
		{Binder, false, 512, 0, false, 3 * time.Millisecond, otherPriority | otherCPU, otherCPU, "all calls count for sync, no count wraps"},
		{Binder, false, 0, 0, false, 3 * time.Millisecond, 0, otherPriority, "ordinary calls count as well"},
		{Binder, true, 0, 0, true, 3 * time.Millisecond, otherPriority | otherCPU, otherCPU, "only calls at 99 count for sync, 256 is 0"},
		{Binder, true, 256, 0, true, 3 * time.Millisecond, otherCPU | atMaxPriority, otherCPU, "calls at 99 count for sync"},
		{HwBinder, false, 512, 0, true, 3 * time.Millisecond, otherCPU, otherCPU, "the deadline is for all calls"},
		{HwBinder, true, 512, 256, true, 3 * time.Millisecond, otherCPU, otherCPU, "ordinary calls have 2.5 ms"},
	} {
		r := &Result{Options: Options{Kind: test.kind, Compat: test.compat, Deadline: test.deadline},
			Pairs: map[int]Samples{0: {Fifo: series(test.seenF, ns...), Other: series(test.seenO, ns...)}}}
		other, fifo := r.Options.deadlines()
		s := r.Pairs[0]
		miss := s.Other.figures(other).miss
		if got := s.notSynced(r.Options); got != test.sync || miss != test.miss || r.inherited() != test.heritage || s.Fifo.figures(fifo).miss != 0 {
			t.Errorf("%s, compat %v: %s: %d not synced, %d misses, inherited %v", test.kind, test.compat, test.whatIsChecked, got, miss, r.inherited())
		}
	}
}

func TestExtended(t *testing.T) {
	r := &Result{Options: Options{Extended: true, Deadline: time.Millisecond}, LeftFault: errors.New("no debugfs"),
		Pairs: map[int]Samples{0: {Other: series(moreIoctls, 1e6+1, 5), Fifo: series(0, 7, 8)}}}
	text := reportOf(t, r)
	for _, word := range []string{`"kernel":"6.18"`, `"left_unknown":"no debugfs"`, `"miss_ratio":0.5`, `"calls_of_more_than_one_ioctl":2`, `"inheritance": "PASS"`} {
		if !strings.Contains(text, word) {
			t.Errorf("no %s in\n%s", word, text)
		}
	}
}

func TestVerdicts(t *testing.T) {
	slow, quick := slices.Repeat([]time.Duration{5 * time.Millisecond}, 100), slices.Repeat([]time.Duration{20 * time.Microsecond}, 100)
	late, fine := slices.Repeat([]int64{5e6}, 100), slices.Repeat([]int64{3e4}, 100)
	for _, test := range []struct {
		name        string
		fifo, other []time.Duration
		deliveries  []int64
		want        string
	}{
		{"loaded, and the server waits", quick, slow, late, fail},
		{"loaded, and it does not", quick, slow, fine, pass},
		{"one in a hundred may wait", quick, slow, append(late[:1:1], fine[1:]...), pass},
		{"two may not", quick, slow, append(late[:2:2], fine[2:]...), fail},
		{"idle", quick, quick, fine, unknown},
		{"nothing measured", nil, nil, fine, unknown},
	} {
		r := &Result{PipeFifo: test.fifo, PipeOther: test.other}
		got := r.effectiveVerdict(Series{Deliveries: test.deliveries})
		if got.Verdict.Verdict != test.want || got.Why == "" || got.Source != fromWait || got.Calls != nil {
			t.Errorf("%s: %+v, want %s", test.name, got, test.want)
		}
	}
	for want, probe := range map[string]NiceProbe{pass: {Calls: 4, Followed: 4}, fail: {Calls: 4, Followed: 3}, unknown: {Calls: 4, Followed: 4, Fault: "not permitted"}} {
		r := &Result{Pairs: map[int]Samples{0: {Nice: probe}}}
		if got := r.niceVerdict(); got.Verdict != want {
			t.Errorf("nice: %+v, want %s", got, want)
		}
	}
}

// TestVerdictOfRota: rota's own count decides where it has one, and else the waits do.
func TestVerdictOfRota(t *testing.T) {
	for _, test := range []struct {
		name               string
		boosts             Boosts
		fault              error
		want, source, says string
	}{
		{"all", Boosts{12, 12}, nil, pass, fromRota, "in all of 12 calls by threads of a class that gives it (calls in all: 14)"},
		{"one not", Boosts{12, 11}, nil, fail, fromRota, "in 1 of 12 calls"},
		{"one, and it was not", Boosts{1, 0}, nil, fail, fromRota, "in 1 of 1 calls"},
		{"fewer than by SCHED_FIFO", Boosts{1, 1}, nil, unknown, fromWait, "rota knows of 1 calls"},
		{"no giver", Boosts{}, nil, unknown, fromWait, "rota knows of 0 calls"},
		{"no word", Boosts{12, 12}, errors.New("not running"), unknown, fromWait, "rota does not say: not running"},
	} {
		o := Options{Extended: true, Boosts: func(context.Context, []int) (Boosts, error) { return test.boosts, test.fault }}
		r := &Result{Options: o, Pairs: map[int]Samples{0: {Other: series(0, 1, 2), Fifo: series(0, 3, 4), Nice: NiceProbe{Calls: 10}}}}
		r.askScheduler(t.Context(), nil)
		got := r.effectiveVerdict(r.Pairs[0].Fifo)
		if got.Verdict.Verdict != test.want || got.Source != test.source || !strings.Contains(got.Why, test.says) {
			t.Errorf("%s: %+v, want %s by %s: %s", test.name, got, test.want, test.source, test.says)
		}
		calls := fmt.Sprintf(`"source":"rota","calls":{"given":%d,"boosted":%d}`, test.boosts.Given, test.boosts.Boosted)
		if text := reportOf(t, r); strings.Contains(text, calls) != (test.source == fromRota) {
			t.Errorf("%s: %s in\n%s", test.name, calls, text)
		}
	}
}

// TestVerdictOfNothing: no call is none at any level.
func TestVerdictOfNothing(t *testing.T) {
	r := &Result{Options: Options{Boosts: func(context.Context, []int) (Boosts, error) { return Boosts{}, nil }}}
	if got := r.effectiveVerdict(Series{}); got.Source != fromWait || got.Verdict.Verdict != unknown {
		t.Errorf("%+v", got)
	}
}

// TestServersAreNamed: the scheduler is asked for the servers, and only where it counts.
func TestServersAreNamed(t *testing.T) {
	var asked []int
	r := &Result{}
	all := []pairs.Pair{{Server: &peer.Process{PID: 7}}, {Server: &peer.Process{PID: 9}}}
	r.askScheduler(t.Context(), all)
	r.Options.Boosts = func(_ context.Context, servers []int) (Boosts, error) {
		asked = servers
		return Boosts{2, 1}, nil
	}
	r.askScheduler(t.Context(), all)
	if !slices.Equal(asked, []int{7, 9}) || r.Boosts != (Boosts{2, 1}) {
		t.Errorf("asked for %v, %+v", asked, r.Boosts)
	}
}

func TestCheck(t *testing.T) {
	fine := Options{Iterations: 2, Pairs: 1, Deadline: time.Millisecond}
	for name, change := range map[string]func(*Options){
		"iterations": func(o *Options) { o.Iterations = 0 }, "pairs": func(o *Options) { o.Pairs = MaxPairs + 1 }, "deadline": func(o *Options) { o.Deadline = time.Microsecond - 1 },
	} {
		o := fine
		if change(&o); o.Check() == nil || !strings.Contains(o.Check().Error(), "--"+name) {
			t.Errorf("%s: %v", name, o.Check())
		}
	}
	whole := Samples{Other: series(0, 1, 2), Fifo: series(0, 1, 2)}
	short, odd, back := whole, whole, whole
	short.Fifo = series(0, 1)
	odd.Other.Seen = nil
	back.Other = series(0, 1, -1)
	for _, s := range []Samples{short, odd, back} {
		if s.check(fine) == nil {
			t.Errorf("%+v: no fault", s)
		}
	}
	short.Missed = true
	if err := errors.Join(whole.check(fine), short.check(fine), fine.Check()); err != nil {
		t.Error(err)
	}
}

// TestBars: the bars have no gaps, and each time lies in its own.
func TestBars(t *testing.T) {
	for _, ns := range []int64{0, 999, 1000, 1249, 1250, 1999, 2000, 12345, 1e9, 1e15} {
		b := bar(ns)
		if us := float64(ns) / 1e3; us < edge(b) || us >= edge(b+1) {
			t.Errorf("%d ns in [%v, %v) us", ns, edge(b), edge(b+1))
		}
	}
	if spread(nil).Samples != 0 || math.IsNaN(spread(nil).Avg) {
		t.Error("nothing has a distribution")
	}
}

// TestRank: a percentile is the least sample that so many percent are not above.
func TestRank(t *testing.T) {
	for _, test := range []struct {
		n       int
		percent float64
		want    int
	}{{1, 50, 0}, {1, 99.9, 0}, {2, 50, 0}, {100, 50, 49}, {100, 99, 98}, {1000, 99.9, 998}, {1001, 99.9, 999}} {
		if got := rank(test.n, test.percent); got != test.want {
			t.Errorf("%v %% of %d: sample %d, want %d", test.percent, test.n, got, test.want)
		}
	}
}

// FuzzReply: a server may answer anything.
func FuzzReply(f *testing.F) {
	f.Add(make([]byte, 24))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := readReply(binder.Received(data))
		if (err == nil) != (len(data) >= 24) {
			t.Errorf("%d bytes: %+v, error %v", len(data), a, err)
		}
	})
}
