package scenario

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"rota/lab/guest"
	"rota/lab/scenario/output"
)

func TestScenariosAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range All() {
		t.Run(s.Name, func(t *testing.T) {
			if seen[s.Name] {
				t.Error("two scenarios have this name")
			}
			seen[s.Name] = true
			if s.Title == "" || !strings.HasSuffix(strings.TrimSuffix(s.Question, " (1 = as promised)"), "?") {
				t.Errorf("title %q, question %q: must both be there, and one a question", s.Title, s.Question)
			}
			if s.Run == nil || s.Limit == 0 || len(s.Rows) < 2 || len(s.Metrics) == 0 {
				t.Error("run, limit, rows or metrics are missing")
			}
			// Only rota writes a record.
			if s.Rows[0].Record == 0 && s.Rows[0].Name != rowKernel || s.Rows[0].Name == rowKernel && s.Rows[0].Scheduler != "kernel" {
				t.Errorf("first row is %+v: must be the kernel's own scheduler", s.Rows[0])
			}
			for _, load := range s.Loads {
				if _, err := os.Stat(filepath.Join("..", "load", load+".c")); err != nil {
					t.Error(err)
				}
			}
			if found, ok := Find(s.Name); !ok || found.Title != s.Title {
				t.Errorf("Find gives %q", found.Title)
			}
		})
	}
	if _, ok := Find("nothing"); ok {
		t.Error("a scenario was found that does not exist")
	}
}

func TestMetrics(t *testing.T) {
	name := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	for _, s := range All() {
		rows, names, labels := map[string]bool{}, map[string]bool{}, map[string]bool{}
		for _, r := range s.Rows {
			rows[r.Name] = true
		}
		for _, m := range s.Metrics {
			if !name.MatchString(m.Name) || names[m.Name] {
				t.Errorf("%s: metric %q: must be new and match %s", s.Name, m.Name, name)
			}
			names[m.Name] = true
			if m.Group == "" || m.Label == "" || labels[m.Group+m.Label] {
				t.Errorf("%s: metric %q: %q in %q must be new", s.Name, m.Name, m.Label, m.Group)
			}
			labels[m.Group+m.Label] = true
			for _, b := range m.Bounds {
				if !rows[b.Row] || b.Against != "" && !rows[b.Against] {
					t.Errorf("%s: metric %q: promise %+v speaks of a row that does not exist", s.Name, m.Name, b)
				}
				if b.AtLeast == 0 && b.AtMost == 0 {
					t.Errorf("%s: metric %q: promise %+v promises nothing", s.Name, m.Name, b)
				}
			}
		}
	}
}

func TestBuckets(t *testing.T) {
	l := output.Latency{Cycles: 20, Max: 900000, Over: 2, Counts: map[int]int64{0: 1, 5: 3, 99: 2, 100: 4, 103: 1, 104: 5, 26000: 2}}
	list := buckets(l)
	total := int64(0)
	last := 0.0
	for i, b := range list {
		if b.Low < last || b.High <= b.Low {
			t.Errorf("bucket %d is %+v after %v: must ascend", i, b, last)
		}
		last = b.High
		total += b.Count
	}
	if total != 20 {
		t.Errorf("%d samples in %v, want 20", total, list)
	}
	want := []guest.Bucket{{Low: 0, High: 1, Count: 1}, {Low: 5, High: 6, Count: 3}, {Low: 99, High: 100, Count: 2}, {Low: 100, High: 104, Count: 5}, {Low: 104, High: 109, Count: 5}}
	for i, b := range want {
		if list[i] != b {
			t.Errorf("bucket %d is %+v, want %+v", i, list[i], b)
		}
	}
	if end := list[len(list)-1]; end.Low > 900000 || end.High <= 900000 || end.Count != 2 {
		t.Errorf("the last bucket is %+v: must hold the two largest", end)
	}
}

func TestBucketAround(t *testing.T) {
	for us := 0.0; us < 3e6; us = us*1.001 + 1 {
		whole := float64(int(us))
		low, high := bucketAround(whole)
		if whole < low || whole >= high {
			t.Fatalf("%v us went into %v..%v", whole, low, high)
		}
	}
}

func TestErrorPct(t *testing.T) {
	for ratio, want := range map[float64]float64{3: 0, 3.3: 10, 2.7: 10} {
		if got := errorPct(ratio, 3); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("error of %v is %v %%, want %v", ratio, got, want)
		}
	}
}
