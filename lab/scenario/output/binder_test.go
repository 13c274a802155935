package output

import (
	"os"
	"strings"
	"testing"
)

func TestReadBinder(t *testing.T) {
	text, err := os.ReadFile("testdata/binder-latency.json")
	if err != nil {
		t.Fatal(err)
	}
	b, err := ReadBinder(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if b.Other.P50 <= 0 || b.Fifo.P99 < b.Fifo.P50 || b.Other.MissRatio <= 0 || b.Left != 0 || len(b.Other.Buckets) == 0 {
		t.Errorf("%+v", b)
	}
	if want := float64(104+107) / 240; b.Sync != want {
		t.Errorf("sync %v, want %v", b.Sync, want)
	}
	for _, verdict := range []string{"rt", "nice", "effective"} {
		if b.Verdicts[verdict] == nil {
			t.Errorf("no verdict %s", verdict)
		}
	}
	for name, bad := range map[string]string{
		"": "not JSON", "{}": "no samples", strings.Replace(string(text), `"P1"`, `"Q1"`, 1): "pair 1", strings.Replace(string(text), `"left"`, `"right"`, 1): "not known",
	} {
		if _, err := ReadBinder(name); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

func TestBinderEffective(t *testing.T) {
	for word, want := range map[string]struct {
		pass  float64
		known bool
	}{"PASS": {1, true}, "FAIL": {0, true}, "UNKNOWN": {}, "": {}} {
		b := Binder{Verdicts: map[string]any{"effective": map[string]any{"verdict": word}}}
		if pass, known := b.Effective(); pass != want.pass || known != want.known {
			t.Errorf("%q: %v, %v", word, pass, known)
		}
	}
	for _, odd := range []map[string]any{nil, {"effective": "PASS"}} {
		if _, known := (Binder{Verdicts: odd}).Effective(); known {
			t.Errorf("%v: a verdict", odd)
		}
	}
}

func TestReadThroughput(t *testing.T) {
	rows, err := ReadThroughput(`{"benchmarks":[{"name":"BM_sendVec_binder/4","real_time":41000,"time_unit":"ns"}]}`)
	if err != nil || rows["BM_sendVec_binder/4"] != 41 {
		t.Errorf("%v, error %v", rows, err)
	}
	for _, bad := range []string{"", `{"benchmarks":[{"name":"x","real_time":4,"time_unit":"us"}]}`} {
		if _, err := ReadThroughput(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func FuzzReadBinder(f *testing.F) {
	text, err := os.ReadFile("testdata/binder-latency.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Fuzz(func(t *testing.T, text string) { ReadBinder(text) })
}
