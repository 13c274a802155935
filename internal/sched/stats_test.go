package sched

import (
	"maps"
	"testing"
)

func TestParseKernelEvents(t *testing.T) {
	tests := map[string]struct {
		text string
		want map[string]int64
	}{
		"none":          {"", map[string]int64{}},
		"as the kernel": {"SCX_EV_A 0\nSCX_EV_B 12\n", map[string]int64{"SCX_EV_A": 0, "SCX_EV_B": 12}},
		"no last line":  {"SCX_EV_A 7", map[string]int64{"SCX_EV_A": 7}},
		"negative":      {"SCX_EV_A -7\n", map[string]int64{"SCX_EV_A": -7}},
		"others":        {"a\n\n \nb c\nd 1 2\ne 99999999999999999999\nf 3\n", map[string]int64{"f": 3}},
		"twice":         {"a 1\na 2\n", map[string]int64{"a": 2}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := parseKernelEvents(test.text); !maps.Equal(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}
