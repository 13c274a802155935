package dedicate

import (
	"reflect"
	"slices"
	"testing"
)

// eight is a machine of four cores with two threads each, two cores to a cache.
func eight() Machine {
	m := Machine{Core: map[int]int{}, Domain: map[int]int{}, Interrupts: map[string][]int{"eth0": {4}}}
	for cpu := range 8 {
		m.Online = append(m.Online, cpu)
		m.Core[cpu], m.Domain[cpu] = cpu&^1, cpu/4
	}
	return m
}

func TestChoose(t *testing.T) {
	without := func(cpus ...int) Machine {
		m := eight()
		m.Online = slices.DeleteFunc(m.Online, func(cpu int) bool { return slices.Contains(cpus, cpu) })
		return m
	}
	bound := func(b ...Bound) Machine {
		m := eight()
		m.Bound = b
		return m
	}
	for name, c := range map[string]struct {
		machine Machine
		wants   []Want
		grants  []Grant
	}{
		"whole cores": {eight(), []Want{{Class: "a", Count: 1}}, []Grant{{Class: "a", CPUs: []int{6, 7}}}},
		"one cache":   {eight(), []Want{{Class: "a", Count: 4}}, []Grant{{Class: "a", CPUs: []int{4, 5, 6, 7}}}},
		"kept":        {eight(), []Want{{Class: "a", Count: 1, Before: []int{2, 3}}}, []Grant{{Class: "a", CPUs: []int{2, 3}}}},
		"where its tasks ran": {eight(), []Want{{Class: "a", Count: 4, Tasks: map[int]int{1: 2, 2: 1, 6: 2}}},
			[]Grant{{Class: "a", CPUs: []int{0, 1, 2, 3}}}},
		"with interrupts":  {eight(), []Want{{Class: "a", Count: 1, Follow: "eth0", Before: []int{2, 3}}}, []Grant{{Class: "a", CPUs: []int{4, 5}}}},
		"away from them":   {eight(), []Want{{Class: "a", Count: 4, Avoid: "eth0"}}, []Grant{{Class: "a", CPUs: []int{2, 3, 6, 7}}}},
		"unknown device":   {eight(), []Want{{Class: "a", Count: 1, Follow: "eth9"}}, []Grant{{Class: "a", CPUs: []int{6, 7}, Missing: `device "eth9" has no interrupts: see /proc/interrupts`}}},
		"listed":           {eight(), []Want{{Class: "a", List: []int{1, 2}}}, []Grant{{Class: "a", CPUs: []int{1, 2}}}},
		"lists come first": {eight(), []Want{{Class: "a", Count: 1}, {Class: "b", List: []int{7}}}, []Grant{{Class: "a", CPUs: []int{4, 5}}, {Class: "b", CPUs: []int{7}}}},
		"partly offline":   {without(2), []Want{{Class: "a", List: []int{1, 2}}}, []Grant{{Class: "a", CPUs: []int{1}, Missing: "CPUs 2 are offline or not there"}}},
		"all offline":      {without(2), []Want{{Class: "a", List: []int{2}}}, []Grant{{Class: "a", Refused: "CPUs 2 are offline or not there"}}},
		"half a core":      {without(7), []Want{{Class: "a", Count: 1}}, []Grant{{Class: "a", CPUs: []int{6}}}},
		"all CPUs":         {eight(), []Want{{Class: "a", Count: 8}}, []Grant{{Class: "a", Refused: "no CPU would be left for all others"}}},
		"too many":         {eight(), []Want{{Class: "a", Count: 9}}, []Grant{{Class: "a", Refused: "no CPU would be left for all others"}}},
		"taken":            {eight(), []Want{{Class: "a", List: []int{1}}, {Class: "b", List: []int{1, 2}}}, []Grant{{Class: "a", CPUs: []int{1}}, {Class: "b", Refused: `CPU 1 belongs to class "a"`}}},
		"around who is bound": {bound(Bound{PID: 5, Name: "db", CPUs: []int{6, 7}}), []Want{{Class: "a", Count: 1}},
			[]Grant{{Class: "a", CPUs: []int{4, 5}}}},
		"not the last of who is bound": {bound(Bound{PID: 5, Name: "db", CPUs: []int{6}}), []Want{{Class: "a", List: []int{5, 6}}},
			[]Grant{{Class: "a", Refused: "task 5 (db) may run on CPUs 6 only"}}},
		"not the last of two classes": {bound(Bound{PID: 5, Name: "db", CPUs: []int{5, 6}}), []Want{{Class: "a", List: []int{5}}, {Class: "b", List: []int{6}}},
			[]Grant{{Class: "a", CPUs: []int{5}}, {Class: "b", Refused: "task 5 (db) may run on CPUs 5-6 only"}}},
		"its own may be bound": {bound(Bound{PID: 5, Name: "db", CPUs: []int{6}, Class: "a"}), []Want{{Class: "a", List: []int{6}}},
			[]Grant{{Class: "a", CPUs: []int{6}}}},
		"bound later": {bound(Bound{PID: 5, Name: "db", CPUs: []int{6}}), []Want{{Class: "a", Count: 1, Before: []int{6, 7}}},
			[]Grant{{Class: "a", CPUs: []int{6, 7}}}},
		"a cache with room": {eight(), []Want{{Class: "a", Count: 2}, {Class: "b", Count: 3}}, []Grant{{Class: "a", CPUs: []int{6, 7}}, {Class: "b", CPUs: []int{0, 1, 2, 3}}}},
		"a cache with room beside who is bound": {bound(Bound{PID: 5, Name: "db", CPUs: []int{4}}), []Want{{Class: "a", Count: 4}},
			[]Grant{{Class: "a", CPUs: []int{0, 1, 2, 3}}}},
		"not what another class keeps": {without(6, 7), []Want{{Class: "a", Count: 1, Before: []int{6, 7}}, {Class: "b", Count: 1, Before: []int{4, 5}}},
			[]Grant{{Class: "a", CPUs: []int{2, 3}}, {Class: "b", CPUs: []int{4, 5}}}},
		"nor to be below one cache": {eight(), []Want{{Class: "a", Count: 4}, {Class: "b", Count: 2, Before: []int{4, 5}}},
			[]Grant{{Class: "a", CPUs: []int{0, 1, 2, 3}}, {Class: "b", CPUs: []int{4, 5}}}},
		"bound to what is offline": {bound(Bound{PID: 5, Name: "db", CPUs: []int{9}}), []Want{{Class: "a", List: []int{6}}},
			[]Grant{{Class: "a", CPUs: []int{6}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Choose(c.machine, c.wants); !reflect.DeepEqual(got, c.grants) {
				t.Errorf("got %+v, want %+v", got, c.grants)
			}
		})
	}
}
