package cpulist

import (
	"slices"
	"strings"
	"testing"
)

var lists = []struct {
	list string
	want []int
}{
	{"0", []int{0}},
	{"0-3,8\n", []int{0, 1, 2, 3, 8}},
	{"5,2", []int{5, 2}},
	{"4,6-7,9", []int{4, 6, 7, 9}},
	{"5-5", []int{5}},
	{"", nil},
	{",", nil},
	{"0,", nil},
	{"-", nil},
	{"1-", nil},
	{"1-2-3", nil},
	{"0 - 3", nil},
	{"0-3:1/2", nil},
	{"0-9223372036854775807", nil},
	{"-1", nil},
	{"3-1", nil},
	{"0-65536", nil},
	{"x", nil},
	{"0x1", nil},
	{"+1", nil},
	{"0-65535,0-65535,0-65535", nil},
}

func TestParse(t *testing.T) {
	for _, c := range lists {
		got, err := Parse(c.list)
		if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) {
			t.Errorf("%q: %v, %v, want %v", c.list, got, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), "CPU list") {
			t.Errorf("%q: the error does not say what is wrong: %v", c.list, err)
		}
	}
}

func TestString(t *testing.T) {
	for want, cpus := range map[string][]int{"": nil, "3": {3}, "0-3,8": {0, 1, 2, 3, 8}, "1,3": {1, 3}} {
		if got := String(cpus); got != want {
			t.Errorf("%v: %q, want %q", cpus, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range lists {
		f.Add(c.list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		ids, err := Parse(list)
		if err != nil {
			return
		}
		for _, id := range ids {
			if id < 0 || id > Max {
				t.Fatalf("%q: CPU %d", list, id)
			}
		}
		slices.Sort(ids)
		ids = slices.Compact(ids)
		if again, err := Parse(String(ids)); err != nil || !slices.Equal(again, ids) {
			t.Fatalf("%q: %v, written out: %v, %v", list, ids, again, err)
		}
	})
}
