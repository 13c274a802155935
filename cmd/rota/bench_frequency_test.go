package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"rota/bench/binder/latency"
	"rota/bench/cpufreq"
	"rota/bench/fairness"
)

func TestProgressEvent(t *testing.T) {
	root := fstest.MapFS{"sys/kernel/tracing/events/raw_syscalls/sys_enter/id": {Data: []byte("412\n")}}
	for name, want := range map[string]fairness.Event{
		"instructions": {Kind: 0, Config: 1}, "raw_syscalls:sys_enter": {Kind: 2, Config: 412}, "r20cb": {Kind: 4, Config: 0x20cb},
	} {
		if e, err := progressEvent(root, name); err != nil || e == nil || *e != want {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	if e, err := progressEvent(root, "lines"); e != nil || err != nil {
		t.Errorf("lines: %+v, %v", e, err)
	}
	if _, err := progressEvent(root, "line"); err == nil || !strings.Contains(err.Error(), "must be instructions, lines, rHEX or GROUP:NAME") {
		t.Error(err)
	}
}

func TestFrequenciesOf(t *testing.T) {
	p := &cpufreq.Policy{Name: "policy0", Top: 2530500, Bottom: 930000}
	for _, test := range []struct {
		megahertz, want []int
		fault           string
	}{
		{megahertz: []int{930, 2530, 1470, 930}, want: []int{2530000, 1470000, 930000}},
		{megahertz: []int{2530, 929}, fault: "--frequencies 929: must be 930..2530, in MHz, which is what policy0 has"},
		{megahertz: []int{2531, 930}, fault: "--frequencies 2531: must be"},
		{megahertz: []int{-1, 930}, fault: "--frequencies -1: must be"},
		{megahertz: []int{1200, 1200}, fault: "--frequencies: 1 of them: must be 2..64"},
	} {
		got, err := frequenciesOf(p, test.megahertz)
		if test.fault == "" && (err != nil || !slices.Equal(got, test.want)) || test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)) {
			t.Errorf("%v: %v, %v", test.megahertz, got, err)
		}
	}
}

// policies is a folder as the kernel's, with a policy of these CPUs.
func policies(t *testing.T, cpus string) string {
	t.Helper()
	dir := t.TempDir()
	err := os.Mkdir(filepath.Join(dir, "policy0"), 0o755)
	for name, text := range map[string]string{
		"affected_cpus": cpus, "cpuinfo_max_freq": "2530000", "cpuinfo_min_freq": "930000", "scaling_min_freq": "930000", "scaling_max_freq": "2530000",
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, "policy0", name), []byte(text), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestOpenPolicy(t *testing.T) {
	all := ""
	for cpu := range 1024 {
		all += " " + number(uint64(cpu))
	}
	dir := policies(t, all)
	o := frequencyOptions{}
	p, err := o.openPolicy(dir, false)
	if err != nil || p.Name != "policy0" {
		t.Fatal(err)
	}
	p.Close()
	last := o.CPU
	if p, err = o.openPolicy(dir, true); err != nil || o.CPU != last {
		t.Fatal(err)
	}
	p.Close()
	o.CPU = 100000
	if _, err := o.openPolicy(dir, true); err == nil || !strings.Contains(err.Error(), "--cpu 100000: must be one of") {
		t.Error(err)
	}
	if _, err := o.openPolicy(t.TempDir(), false); !errors.Is(err, cpufreq.ErrNone) {
		t.Error(err)
	}
}

// frequencyResult is one of two commands.
func frequencyResult() fairness.Result {
	return fairness.Result{
		Commands: []string{"gzip -c big\x1b", strings.Repeat("x", 70)}, Copies: 8, CPU: 3, Policy: "policy2", Siblings: []int{2}, Progress: "lines", Seconds: 10,
		Steps: []fairness.Step{
			{KHz: 2530000, RunsAtKHz: 2530000, PerSecond: []float64{123456, 7}, Kept: []float64{1, 1}},
			{KHz: 1265000, RunsAtKHz: 1264500, Kept: []float64{0.5, 0.75}, MeanKept: 0.625, Degree: 0.125, SampleDegree: 0.1768},
			{KHz: 930000, RunsAtKHz: 930000, Kept: []float64{0.4, 0.4}, MeanKept: 0.4},
		},
		Again: fairness.Step{KHz: 2530000, RunsAtKHz: 2529000, Kept: []float64{1.001, 0.999}, MeanKept: 1, Degree: 0.001, SampleDegree: 0.0014},
	}
}

func TestFrequencyTable(t *testing.T) {
	r := frequencyReport{Context: latency.Context{Kernel: "6.18", Scheduler: "rota"}, Result: frequencyResult()}
	var out bytes.Buffer
	if err := r.write(&out); err != nil {
		t.Fatal(err)
	}
	want := `CPU 3 (policy2, shared with CPU 2), 8 copies of each command, 10s at each frequency, progress: lines, kernel 6.18, scheduler rota

   command                                                       per s at 2530 MHz
A  gzip -c big?                                                          1.235e+05
B  xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...                  7

 MHz  runs at  A kept  B kept  mean kept  Fair_Degree  sample
1265     1264   50.0%   75.0%      62.5%       0.1250  0.1768
 930      930   40.0%   40.0%      40.0%       0.0000  0.0000
2530     2529  100.1%   99.9%     100.0%       0.0010  0.0014

kept of the progress at 2530 MHz; Fair_Degree: 0 where all keep as much
last row: the highest frequency again; differences as there say nothing
`
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
	before, improvement := 0.25, 50.0
	r.Steps[1].Before, r.Steps[1].Improvement = &before, &improvement
	rows := r.table()
	for i, want := range [][]string{{"before", "improvement"}, {"0.2500", "50.0%"}, {"-", "-"}, {"-", "-"}} {
		if got := rows[i][len(rows[i])-2:]; !slices.Equal(got, want) {
			t.Errorf("row %d: %q, want %q", i, got, want)
		}
	}
}

// The table must not change what it shows.
func TestFrequencyTableTwice(t *testing.T) {
	r := frequencyReport{Result: frequencyResult()}
	first := r.table()
	if again := r.table(); !slices.EqualFunc(first, again, slices.Equal[[]string]) {
		t.Errorf("%q, then %q", first, again)
	}
}
