package sched

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// good are parameters that are in order, with one class like this.
func good(class Class) Params {
	return Params{Slice: 3 * time.Millisecond, StarvationBound: time.Second, Classes: []Class{class}}
}

func TestValidate(t *testing.T) {
	normal := Class{Name: "default", Tier: Fair, Weight: 100}
	knob := func(change func(*Params)) Params {
		p := good(normal)
		change(&p)
		return p
	}
	class := func(change func(*Class)) Params {
		c := normal
		c.Name = "game"
		change(&c)
		return good(c)
	}
	tests := map[string]struct {
		params Params
		want   string // "" means that they are in order
	}{
		"usual":              {good(normal), ""},
		"no classes":         {knob(func(p *Params) { p.Classes = nil }), "0 classes"},
		"all classes":        {knob(func(p *Params) { p.Classes = many(normal, 256) }), ""},
		"too many classes":   {knob(func(p *Params) { p.Classes = many(normal, 257) }), "257 classes"},
		"bad last class":     {knob(func(p *Params) { p.Classes = append(many(normal, 3), Class{Name: "x"}) }), `"x"`},
		"least slice":        {knob(func(p *Params) { p.Slice = 100 * time.Microsecond }), ""},
		"slice too short":    {knob(func(p *Params) { p.Slice = 100*time.Microsecond - 1 }), "slice 99.999µs"},
		"longest slice":      {knob(func(p *Params) { p.Slice = 100 * time.Millisecond }), ""},
		"slice too long":     {knob(func(p *Params) { p.Slice = 100*time.Millisecond + 1 }), "slice 100.000001ms"},
		"no slice":           {knob(func(p *Params) { p.Slice = 0 }), "slice 0s"},
		"least bound":        {knob(func(p *Params) { p.StarvationBound = 50 * time.Millisecond }), ""},
		"bound too short":    {knob(func(p *Params) { p.StarvationBound = 49 * time.Millisecond }), "starvation bound 49ms"},
		"longest bound":      {knob(func(p *Params) { p.StarvationBound = 10 * time.Second }), ""},
		"bound too long":     {knob(func(p *Params) { p.StarvationBound = 11 * time.Second }), "starvation bound 11s"},
		"least weight":       {class(func(c *Class) { c.Weight = 1 }), ""},
		"weight too small":   {class(func(c *Class) { c.Weight = 0 }), `class "game": weight 0`},
		"greatest weight":    {class(func(c *Class) { c.Weight = 10000 }), ""},
		"weight too great":   {class(func(c *Class) { c.Weight = 10001 }), `class "game": weight 10001`},
		"priority, full cap": {class(func(c *Class) { c.Tier, c.Cap = Priority, 1000 }), ""},
		"cap too great":      {class(func(c *Class) { c.Tier, c.Cap = Priority, 1001 }), "cap 1001"},
		"background":         {class(func(c *Class) { c.Tier = Background }), ""},
		"unknown tier":       {class(func(c *Class) { c.Tier = Background + 1 }), "tier 3"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := test.params.validate()
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

func many(class Class, n int) (classes []Class) {
	for range n {
		classes = append(classes, class)
	}
	return classes
}

func TestCapNs(t *testing.T) {
	for perMille, want := range map[uint32]uint64{
		0: 0, 1: 100_000, 333: 33_300_000, 900: 90_000_000, 1000: 100_000_000,
	} {
		if got := capNs(perMille); got != want {
			t.Errorf("%d per mille: %d ns, want %d", perMille, got, want)
		}
	}
}

func TestTierCap(t *testing.T) {
	tests := map[string]struct {
		classes []Class
		want    uint64
	}{
		"no priority class":    {[]Class{{Tier: Fair}, {Tier: Background, Cap: 500}}, 0},
		"one":                  {[]Class{{Tier: Fair}, {Tier: Priority, Cap: 250}}, 25_000_000},
		"the largest counts":   {[]Class{{Tier: Priority, Cap: 250}, {Tier: Priority, Cap: 900}, {Tier: Priority, Cap: 100}}, 90_000_000},
		"others do not matter": {[]Class{{Tier: Fair, Cap: 1000}, {Tier: Priority, Cap: 1}}, 100_000},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (Params{Classes: test.classes}).tierCap(); got != test.want {
				t.Errorf("%d ns, want %d", got, test.want)
			}
		})
	}
}

func TestKnobs(t *testing.T) {
	tests := map[string]struct {
		params Params
		want   rotaKnobs
	}{
		"quiet": {good(Class{Tier: Fair}), rotaKnobs{SliceNs: 3_000_000, StarvationNs: 1_000_000_000, NrClasses: 1, Tiers: 2}},
		"watching, all tiers": {
			Params{Slice: 1, StarvationBound: 2, Watch: true, Classes: []Class{{Tier: Fair}, {Tier: Background}, {Tier: Priority}, {Tier: Fair}}},
			rotaKnobs{SliceNs: 1, StarvationNs: 2, NrClasses: 4, Watch: 1, Tiers: 7},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.params.knobs(); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

func TestClassTable(t *testing.T) {
	params := good(Class{Tier: Priority, Weight: 9, Slice: time.Millisecond, Cap: 10, Inherit: true, Dynamic: true})
	got := params.classes()
	want := make([]rotaClass, MaxClasses)
	want[0] = rotaClass{SliceNs: 1_000_000, CapNs: 1_000_000, Weight: 9, Tier: 0, Inherit: 1, Dynamic: 1}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got[:2], want[:2])
	}
}

func TestTierString(t *testing.T) {
	for tier, want := range map[Tier]string{Priority: "priority", Fair: "fair", Background: "background", 3: "unknown"} {
		if got := tier.String(); got != want {
			t.Errorf("tier %d is %q, want %q", tier, got, want)
		}
	}
}

// The object has room for a record only when one is wanted.
func TestMakeRoom(t *testing.T) {
	for record, want := range map[int]uint32{0: 1, 5000: 15000} {
		spec := object(t)
		s := &Scheduler{record: record, params: Params{Record: record}, topology: topology{cpus: 3}}
		if err := s.makeRoom(spec); err != nil {
			t.Fatal(err)
		}
		var capacity uint32
		if err := spec.Variables["record_capacity"].Get(&capacity); err != nil || int(capacity) != record {
			t.Errorf("record of %d: capacity %d, %v", record, capacity, err)
		}
		if got := spec.Maps["records"]; got.MaxEntries != want || got.ValueSize != recordBytes {
			t.Errorf("record of %d: %d entries of %d bytes, want %d of %d", record, got.MaxEntries, got.ValueSize, want, recordBytes)
		}
	}
	if err := (&Scheduler{}).WriteRecord(nil); err == nil {
		t.Error("wrote a record where none was wanted")
	}
}
