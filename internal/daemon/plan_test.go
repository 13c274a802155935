package daemon

import (
	"fmt"
	"testing"
	"time"

	"rota/internal/api"
	"rota/internal/class"
	"rota/internal/config"
	"rota/internal/sched"
)

func configWith(names ...string) *config.Config {
	c := config.Default()
	for i, name := range names {
		c.Classes = append(c.Classes, config.Class{Name: name, Tier: config.TierFair, Weight: 100, Line: i + 1})
		c.Rules = append(c.Rules, config.Rule{Comm: name, Class: name})
	}
	return c
}

func mustNext(t *testing.T, p *plan, c *config.Config) *plan {
	t.Helper()
	n, err := p.next(c)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPlanKeepsIndexes(t *testing.T) {
	p, err := newPlan(configWith("a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		classes        []string
		before, pruned string
	}{
		{[]string{"b", "c"}, "default a b rota c", "default (free) b rota c"},
		{[]string{"d", "c"}, "default d b rota c", "default d (free) rota c"},
		{[]string{"a", "d", "e"}, "default d a rota c e", "default d a rota (free) e"},
		{nil, "default d a rota (free) e", "default (free) (free) rota (free) (free)"},
	}
	for _, s := range steps {
		p = mustNext(t, p, configWith(s.classes...))
		if got := names(p.params()); got != s.before {
			t.Errorf("%v: %s, want %s", s.classes, got, s.before)
		}
		p = p.prune()
		if got := names(p.params()); got != s.pruned {
			t.Errorf("%v pruned: %s, want %s", s.classes, got, s.pruned)
		}
		for _, name := range s.classes {
			index, _ := p.rules.Classify(class.Workload{Comm: name})
			if got := p.params().Classes[index].Name; got != name {
				t.Errorf("%v: rule for %s leads to %s", s.classes, name, got)
			}
		}
		if own := p.params().Classes[p.own()]; own.Name != config.ReservedClass || own.Tier != sched.Priority || own.Cap != ownCap {
			t.Errorf("our class is %+v", own)
		}
	}
}

func TestPlanIsNeverTooLarge(t *testing.T) {
	full := func(prefix string) *config.Config {
		var names []string
		for i := range config.MaxClasses - 1 {
			names = append(names, fmt.Sprintf("%s%d", prefix, i))
		}
		return configWith(names...)
	}
	p, err := newPlan(full("a"))
	if err != nil {
		t.Fatal(err)
	}
	// All classes change at once: no index is free, so they are used again.
	p = mustNext(t, p, full("b"))
	if n := len(p.params().Classes); n != sched.MaxClasses {
		t.Errorf("%d classes", n)
	}
	if p.prune() != p {
		t.Error("something was left over")
	}
}

func TestClassesOfStatus(t *testing.T) {
	c := configWith("a")
	c.Classes[1].Slice = time.Millisecond
	p, err := newPlan(c)
	if err != nil {
		t.Fatal(err)
	}
	got := classes(p, []sched.ClassStats{
		{Runtime: time.Second, WaitHist: []uint64{0, 0, 10}, WaitMax: 3 * time.Microsecond},
		{Runtime: 3 * time.Second, Tasks: 2},
	})
	if len(got) != 3 || got[0].Name != "default" || got[1].Name != "a" || got[2].Name != "rota" {
		t.Fatalf("%+v", got)
	}
	if got[0].SharePercent != 25 || got[1].SharePercent != 75 || got[1].Tasks != 2 || got[1].Rules != 1 {
		t.Errorf("%+v", got)
	}
	if got[0].SliceMicros != 2100 || got[1].SliceMicros != 1000 {
		t.Errorf("slices %d and %d", got[0].SliceMicros, got[1].SliceMicros)
	}
	if got[0].WaitP50Micros != 3 || got[0].WaitMaxMicros != 3 {
		t.Errorf("waits %+v", got[0])
	}
}

// A class that takes an index counts from zero.
func TestCountersOfReusedIndex(t *testing.T) {
	d, f := attached(t, "classes: [{name: a}]\n")
	count := func(runtime time.Duration) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.stats.Classes = []sched.ClassStats{{}, {Runtime: runtime, WaitHist: []uint64{uint64(runtime / time.Second)}, WaitMax: 24 * time.Millisecond}}
	}
	count(10 * time.Second)
	for _, text := range []string{"{}", "classes: [{name: b}]\n"} {
		rewrite(t, d, text)
		if _, err := d.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	count(12 * time.Second)
	var b api.Class
	for _, c := range d.Status().Classes {
		if c.Name == "b" {
			b = c
		}
	}
	// Of its two waits none took 1 us; that of 24 ms was another's.
	if b.RuntimeMicros != 2e6 || b.WaitHistogram[0] != 2 || b.WaitMaxMicros != 1 {
		t.Errorf("%+v", b)
	}
}
