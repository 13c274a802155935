package fairness

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func near(a, b float64) bool { return math.Abs(a-b) < 0.0005 }

// Half the frequency; of the time one command waits for memory at never, the other one half.
func TestCompare(t *testing.T) {
	s := Step{PerSecond: []float64{500, 15}}
	s.compare([]float64{1000, 20})
	if !near(s.Kept[0], 0.5) || !near(s.Kept[1], 0.75) || !near(s.MeanKept, 0.625) || !near(s.Degree, 0.125) || !near(s.SampleDegree, 0.1768) {
		t.Errorf("%+v", s)
	}
	s = Step{PerSecond: []float64{3, 5, 10}}
	s.compare([]float64{10, 10, 10})
	if !near(s.MeanKept, 0.6) || !near(s.Degree, 0.2944) || !near(s.SampleDegree, 0.3606) {
		t.Errorf("three: %+v", s)
	}
	s = Step{PerSecond: []float64{600, 12}}
	if s.compare([]float64{1000, 20}); s.Degree != 0 || s.SampleDegree != 0 {
		t.Errorf("all alike: %+v", s)
	}
}

// result is one of two commands at three frequencies.
func result(degrees ...float64) Result {
	r := Result{Commands: []string{"a", "b"}, Copies: 8, Progress: Lines}
	for i, khz := range []int{2530000, 1470000, 930000} {
		r.Steps = append(r.Steps, Step{KHz: khz, Kept: []float64{1, 1}, Degree: append([]float64{0}, degrees...)[i]})
	}
	return r
}

func TestAgainst(t *testing.T) {
	r, earlier := result(0.02, 0.2), result(0.1, 0)
	r.Against(earlier)
	if s := r.Steps[0]; s.Before != nil || s.Improvement != nil {
		t.Errorf("the highest: %+v", s)
	}
	if s := r.Steps[1]; s.Before == nil || *s.Before != 0.1 || !near(*s.Improvement, 80) {
		t.Errorf("better: %+v", s)
	}
	if s := r.Steps[2]; s.Before == nil || s.Improvement != nil {
		t.Errorf("nothing to improve: %+v", s)
	}
	r, earlier = result(0.02, 0.2), result(0.1, 0.1)
	earlier.Steps[1].KHz++
	if r.Against(earlier); r.Steps[1].Before != nil || !near(*r.Steps[2].Improvement, -100) {
		t.Errorf("%+v", r.Steps)
	}
}

func TestMatches(t *testing.T) {
	same := Options{Commands: []string{"a", "b"}, Copies: 8, Progress: Lines, Frequencies: []int{2530000, 930000}}
	earlier := result(0.1, 0.1)
	if err := earlier.Matches(same); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Options){
		`commands ["a" "b"]`:                func(o *Options) { o.Commands = []string{"b", "a"} },
		"use --cpu 0":                       func(o *Options) { o.CPU = 3 },
		"use --copies 8":                    func(o *Options) { o.Copies = 4 },
		"use --progress lines":              func(o *Options) { o.Progress = "instructions" },
		"was 2530 MHz, now it is 2400":      func(o *Options) { o.Frequencies = []int{2400000, 930000} },
		"it has none of these frequencies:": func(o *Options) { o.Frequencies = []int{2530000, 1000000} },
	} {
		o := same
		change(&o)
		if err := earlier.Matches(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestReadResult(t *testing.T) {
	text, err := json.Marshal(result(0.1, 0.2))
	if err != nil {
		t.Fatal(err)
	}
	r, err := ReadResult(bytes.NewReader(text))
	if err != nil || r.Steps[2].Degree != 0.2 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, bad := range []struct{ old, new, want string }{
		{`"a","b"`, `"a"`, "1 commands"},
		{`"kHz":1470000`, `"kHz":2530000`, "2530000 kHz is not below"},
		{`"kHz":930000`, `"kHz":0`, "0 kHz is not below"},
		{`"kept":[1,1],"meanKept":0,"fairDegree":0.2`, `"kept":[1],"meanKept":0,"fairDegree":0.2`, "1 programs"},
		{`"fairDegree":0.2`, `"fairDegree":-0.2`, "Fair_Degree -0.2"},
		{`"fairDegree":0.2`, `"fairDegree":1e39`, "Fair_Degree 1e+39"},
		{`"steps":[`, `"steps":[],"was":[`, "0 frequencies"},
		{`{`, `x`, "invalid character"},
		{`{`, strings.Repeat(" ", maxResult) + `{`, "more than 1048576 bytes"},
	} {
		broken := strings.Replace(string(text), bad.old, bad.new, 1)
		if _, err := ReadResult(strings.NewReader(broken)); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: %v, want %q", bad.new[:min(20, len(bad.new))], err, bad.want)
		}
	}
}

// FuzzReadResult: what is read can be compared, and what comes out written down.
func FuzzReadResult(f *testing.F) {
	text, _ := json.Marshal(result(0.1, 0.2))
	f.Add(text)
	f.Add([]byte(`{"commands":["a","b"],"steps":[{"kHz":2,"kept":[1,1]},{"kHz":1,"kept":[1,1],"fairDegree":1e-320}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		earlier, err := ReadResult(bytes.NewReader(in))
		if err != nil {
			return
		}
		now := earlier
		now.Steps = nil
		o := Options{Commands: earlier.Commands, Copies: earlier.Copies, Progress: earlier.Progress}
		for _, s := range earlier.Steps {
			o.Frequencies = append(o.Frequencies, s.KHz)
			now.Steps = append(now.Steps, Step{KHz: s.KHz, Degree: 0.1})
		}
		if err := earlier.Matches(o); err != nil {
			t.Error(err)
		}
		now.Against(earlier)
		if _, err := json.Marshal(now); err != nil {
			t.Error(err)
		}
	})
}
