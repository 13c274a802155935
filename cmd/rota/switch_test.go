package main

import "testing"

func TestCPUList(t *testing.T) {
	for want, cpus := range map[string][]int{"0": {0}, "0-3": {0, 1, 2, 3}, "1,3-4,8": {1, 3, 4, 8}} {
		if got := cpuList(cpus); got != want {
			t.Errorf("%v: %s, want %s", cpus, got, want)
		}
	}
}
