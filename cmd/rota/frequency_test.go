package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"

	"rota/internal/api"
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
