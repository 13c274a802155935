package main

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"rota/internal/api"
	"rota/internal/counters"
	"rota/internal/sched"
)

// policy is what the kernel says of the CPUs of one frequency.
func policy(fsys fstest.MapFS, name, cpus, top string) {
	for file, text := range map[string]string{"affected_cpus": cpus, "cpuinfo_max_freq": top, "scaling_cur_freq": "1000000"} {
		fsys["sys/devices/system/cpu/cpufreq/"+name+"/"+file] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
}

// A policy that can't be read does not hide those that can.
func TestCheckFrequency(t *testing.T) {
	fsys := fstest.MapFS{}
	if f := checkFrequency(fsys); f.OK || !strings.Contains(f.Detail, "no frequencies") || f.Fix == "" {
		t.Errorf("none: %+v", f)
	}
	policy(fsys, "policy0", "0 1", "2000000")
	if f := checkFrequency(fsys); !f.OK || f.Detail != "of 2 CPUs, the slowest at 50 % of its top now" || f.Fix != "" {
		t.Errorf("all: %+v", f)
	}
	policy(fsys, "policy2", "2 3", "fast")
	if f := checkFrequency(fsys); f.OK || !strings.HasPrefix(f.Detail, "of 2 CPUs, the slowest at 50 % of its top now; not of all: /sys/") || f.Fix == "" {
		t.Errorf("some: %+v", f)
	}
}

func TestWritePaces(t *testing.T) {
	s := api.Status{
		Frequency: api.Frequency{Mode: "on", Note: "policy2: odd"},
		CPUs:      []api.CPU{{CPU: 0}, {CPU: 1}},
		Classes:   []api.Class{{Name: "a", RuntimeMicros: 10, ProgressMicros: 5}},
	}
	var none, some bytes.Buffer
	writePaces(&none, s)
	s.CPUs[1].SpeedPercent = 50
	writePaces(&some, s)
	if want := "frequency fairness: time counts as it is: policy2: odd\n"; none.String() != want {
		t.Errorf("%q", none.String())
	}
	if got := some.String(); !strings.HasPrefix(got, "frequency fairness: where no speed is known time counts as it is: policy2: odd\nclass a gets on at 50.0% ") {
		t.Errorf("%q", got)
	}
}

func TestCheckCounters(t *testing.T) {
	for name, test := range map[string]struct {
		set  *counters.Set
		err  error
		want sched.Finding
	}{
		"some": {&counters.Set{Source: counters.Source{Name: "STALLS"}}, nil, sched.Finding{Name: "counters", OK: true, Detail: "STALLS"}},
		"none": {nil, counters.ErrNone, sched.Finding{Name: "counters", Detail: counters.ErrNone.Error(), Fix: "only for scheduler.frequencyFairness: declare memoryBound of the classes there"}},
	} {
		got := checkCounters(fstest.MapFS{}, func(_ fs.FS, event string, _ time.Duration, cpus []int) (*counters.Set, error) {
			if event != "" || len(cpus) != 1 {
				t.Errorf("asked for %q of %v", event, cpus)
			}
			return test.set, test.err
		})
		if got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func TestWriteCounters(t *testing.T) {
	for want, f := range map[string]api.Frequency{
		"":                   {},
		"counters: STALLS\n": {Counters: "STALLS"},
		"counters: STALLS, not in use: refused\n":                               {Counters: "STALLS", CountersNote: "refused"},
		"counters: none, what waits for memory is as declared: no such thing\n": {CountersNote: "no such thing"},
	} {
		var out bytes.Buffer
		if writeCounters(&out, f); out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	}
	var out bytes.Buffer
	writePaces(&out, api.Status{
		Frequency: api.Frequency{Mode: "on", Counters: "STALLS"}, CPUs: []api.CPU{{SpeedPercent: 50}},
		Classes: []api.Class{{Name: "a", RuntimeMicros: 10, ProgressMicros: 5, MemoryBoundPercent: 60, MemoryBoundCounted: true}},
	})
	if want := "counters: STALLS\nclass a gets on at 50.0% of full speed (60% memory bound, as counted): 0.0% of all progress\n"; out.String() != want {
		t.Errorf("%q", out.String())
	}
}
