package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// anyPattern is a check that refuses one value only.
func anyPattern(key, value string) error {
	if value == "bad[" {
		return errors.New("has a [ without ]: close it")
	}
	return nil
}

func TestParseGood(t *testing.T) {
	const text = `# everything that is supported
scheduler:
  slice: 2ms
  starvationBound: 0.5s
  fair: {runToParity: false, preemptShort: true, eligibilityCheck: true, lazyPreemption: true, handOver: false}
  preset: latency
  frequencyFairness: frequency
  counters: "raw_syscalls:sys_enter"
  accessLatency: 80ns
  inherit: {locks: false}
classes:
  - name: default
    weight: 200
  - {name: network, tier: priority, slice: 1ms, cap: 90%}
  - name: ui
    tier: priority
    inherit: false
    dynamicSlice: false
  - name: batch-2
    tier: background
    weight: 1
    memoryBound: 0.4
rules:
  - match: {cgroup: "kubepods.slice/**/upf-*"}
    class: network
  - class: ui
    match:
      comm: RenderThread
      exe: /system/*
      user: 1000
`
	want := &Config{
		Slice:           2 * time.Millisecond,
		StarvationBound: 500 * time.Millisecond,
		Fair:            Fair{PreemptShort: true, EligibilityCheck: true, BriefRequests: true, LazyPreemption: true},
		Inherit:         Inherit{Futex: true, Wakeups: true, Binder: true},
		Frequency:       FrequencyOnly,
		Counters:        "raw_syscalls:sys_enter",
		AccessLatency:   80 * time.Nanosecond,
		Classes: []Class{
			{Name: "default", Tier: TierFair, Weight: 200, Line: 12},
			{Name: "network", Tier: TierPriority, Weight: 100, Slice: time.Millisecond, Cap: 900, Inherit: true, DynamicSlice: true, Line: 14},
			{Name: "ui", Tier: TierPriority, Weight: 100, Cap: 950, Line: 15},
			{Name: "batch-2", Tier: TierBackground, Weight: 1, MemoryBound: 0.4, Line: 19},
		},
		Rules: []Rule{
			{Cgroup: "kubepods.slice/**/upf-*", Class: "network", Line: 24},
			{Comm: "RenderThread", Exe: "/system/*", User: "1000", Class: "ui", Line: 26},
		},
	}
	got, err := Parse("rota.yaml", []byte(text), anyPattern)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseEmpty(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "scheduler:\nclasses:\nrules:\n", "null\n", "\ufeff# a mark of the order of bytes\n"} {
		got, err := Parse("rota.yaml", []byte(text), anyPattern)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if diff := cmp.Diff(Default(), got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestParseFaults(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"unknown key", "scheduler:\n  slise: 1ms\n", `f:2: scheduler: unknown key "slise": did you mean slice?`},
		{"unknown section", "rule: []\n", `f:1: unknown key "rule": did you mean rules?`},
		{"case of a key", "scheduler: {starvationbound: 1s}", `f:1: scheduler: unknown key "starvationbound": did you mean starvationBound?`},
		{"far from any key", "scheduler: {zzzz: 1}", `f:1: scheduler: unknown key "zzzz": known are preset, slice, starvationBound, fair, inherit, frequencyFairness, counters, accessLatency`},
		{"no unit", "scheduler: {slice: 2800}", `f:1: scheduler: slice "2800" is not a duration: write a number with its unit us, ms or s, as 100us`},
		{"wrong unit", "scheduler: {slice: 1min}", `f:1: scheduler: slice "1min" is not a duration: write a number with its unit us, ms or s, as 100us`},
		{"sign", "scheduler: {slice: -1ms}", `f:1: scheduler: slice "-1ms" is not a duration: write a number with its unit us, ms or s, as 100us`},
		{"slice too short", "scheduler: {slice: 99us}", `f:1: scheduler: slice "99us" is out of range: must be 100us..100ms`},
		{"slice too long", "scheduler: {slice: 101ms}", `f:1: scheduler: slice "101ms" is out of range: must be 100us..100ms`},
		{"bound too long", "scheduler: {starvationBound: 11s}", `f:1: scheduler: starvationBound "11s" is out of range: must be 50ms..10s`},
		{"no value", "scheduler: {slice: }", `f:1: scheduler: slice: has no value: give it a value or remove it`},
		{"keys for a value", "scheduler: {slice: {a: 1}}", `f:1: scheduler: slice: must be a value, not keys: write one value`},
		{"a value for keys", "scheduler: 5", `f:1: scheduler: must have keys, not "5": write keys: preset, slice, starvationBound, fair, inherit, frequencyFairness, counters, accessLatency`},
		{"keys for a list", "classes: {name: a}", `f:1: classes: must be a list, not keys: begin each entry with -`},
		{"a list for the file", "- a\n", `f:1: must have keys, not a list: write keys: scheduler, classes, rules`},
		{"key twice", "scheduler:\n  slice: 1ms\n  slice: 2ms\n", `f:3: scheduler: key "slice" is already given in line 2: keep one`},
		{"section twice", "classes: []\nclasses: []\n", `f:2: key "classes" is already given in line 1: keep one`},
		{"key is a list", "[a]: 1\n", `f:1: a key must be a word, not a list: write a word`},

		{"fair switch", "scheduler: {fair: {runToParity: yes}}", `f:1: scheduler: fair: runToParity "yes" is not a switch: write true or false`},
		{"fair key", "scheduler: {fair: {runtoparity: true}}", `f:1: scheduler: fair: unknown key "runtoparity": did you mean runToParity?`},
		{"preset", "scheduler: {preset: latncy}", `f:1: scheduler: preset "latncy" is unknown: did you mean latency?`},
		{"frequency", "scheduler: {frequencyFairness: yes}", `f:1: scheduler: frequencyFairness "yes" is unknown: write off, on, frequency`},
		{"counters", "scheduler: {counters: cycles}", `f:1: scheduler: counters "cycles" is no counter: write auto, off, a raw event of the processor as r20cb, a tracepoint as GROUP:NAME, or two events with / between`},
		{"accesses of no event", "scheduler: {accessLatency: 80ns}", `f:1: scheduler: accessLatency: counters: auto counts no accesses: name the event of an access in counters, or remove it`},
		{"accesses that take no time", "scheduler: {counters: 'sched:sched_switch'}", `f:1: scheduler: counters "sched:sched_switch" counts no cycles, and nothing says how long each takes: add accessLatency, as 80ns`},
		{"accesses of cycles", "scheduler: {counters: r1/r2, accessLatency: 80ns}", `f:1: scheduler: accessLatency: counters "r1/r2" counts cycles, no accesses: remove it, or name one event`},
		{"long accesses", "scheduler: {counters: r20cb, accessLatency: 2ms}", `f:1: scheduler: accessLatency "2ms" is out of range: must be 1ns..1ms`},
		{"inherit below priority", "classes: [{name: a, inherit: true}]", `f:1: class "a": tier fair has nothing to inherit: remove it, or set tier: priority`},
		{"dynamic slices below priority", "classes: [{name: a, tier: background, dynamicSlice: true}]", `f:1: class "a": tier background has no dynamic slices: remove it, or set tier: priority`},
		{"inherit is no number", "classes: [{name: a, tier: priority, inherit: 1}]", `f:1: class "a": inherit "1" is not a switch: write true or false`},
		{"inherit from what", "scheduler: {inherit: {futexes: true}}", `f:1: scheduler: inherit: unknown key "futexes": did you mean futex?`},
		{"cpus below priority", "classes: [{name: a, cpus: {dedicated: 1}}]", `f:1: class "a": tier fair cannot own CPUs: remove it, or set tier: priority`},
		{"cpus for all the rest", "classes: [{name: default, tier: priority, cpus: {dedicated: 1}}]", `f:1: class "default": cannot own CPUs, every task that no rule matches is in it: give CPUs to a class of your own`},
		{"no number of cpus", "classes: [{name: a, tier: priority, cpus: {lend: true}}]", `f:1: class "a": cpus: says not which: add dedicated: a number of CPUs, or a list as "2-3"`},
		{"lent after nothing", "classes: [{name: a, tier: priority, cpus: {dedicated: 1, lendAfter: 1ms}}]", `f:1: class "a": cpus: lendAfter: nothing is lent: add lend: true, or remove it`},
		{"lent too soon", "classes: [{name: a, tier: priority, cpus: {dedicated: 1, lend: true, lendAfter: 10us}}]", `f:1: class "a": cpus: lendAfter "10us" is out of range: must be 100us..1s`},
		{"cpus", "classes: [{name: a, tier: priority, cpus: {dedicated: 0}}]", `f:1: class "a": cpus: dedicated "0" is out of range: must be 1..1023`},
		{"a list of cpus", "classes: [{name: a, tier: priority, cpus: {dedicated: \"2-x\"}}]", `f:1: class "a": cpus: dedicated "2-x" is not a list of CPUs: write numbers up to 1023, as "2-3" or "2,5", and "2-2" for one`},
		{"cpus in order", "classes: [{name: a, tier: priority, cpus: {dedicated: \"2,1\"}}]", `f:1: class "a": cpus: dedicated "2,1" is not in order: write each CPU once, the smallest first`},
		{"cpus of two", "classes:\n- {name: a, tier: priority, cpus: {dedicated: \"1-2\"}}\n- {name: b, tier: priority, cpus: {dedicated: \"2-3\"}}\n", `f:3: class "b": cpus: CPU 2 belongs to class "a": list it in one of them`},
		{"device", "classes: [{name: a, tier: priority, cpus: {dedicated: 1, followInterrupts: ../x}}]", `f:1: class "a": cpus: followInterrupts "../x" is not the name of a device: write it as in /proc/interrupts or ` + "`ip link`" + `, as enp7s0`},
		{"interrupts of a list", "classes: [{name: a, tier: priority, cpus: {dedicated: \"1-2\", followInterrupts: eth0}}]", `f:1: class "a": cpus: interrupts choose nothing where CPUs are listed: remove it, or write dedicated: a number of CPUs`},
		{"memoryBound", "classes: [{name: a, memoryBound: 40%}]", `f:1: class "a": memoryBound "40%" is not a fraction: write a number from 0 to 1, as 0.4`},
		{"memoryBound above 1", "classes: [{name: a, memoryBound: 1.01}]", `f:1: class "a": memoryBound "1.01" is out of range: must be 0..1`},
		{"later match", "rules: [{match: {unit: ssh}, class: default}]", `f:1: rule 1: unit is not yet supported: remove it`},

		{"no name", "classes:\n  - tier: fair\n", `f:2: class: has no name: add name`},
		{"bad name", "classes: [{name: Net_1}]", `f:1: class: name "Net_1" is not a class name: use at most 32 of a-z, 0-9 and -, a letter first`},
		{"our name", "classes: [{name: rota}]", `f:1: class: name "rota" is the class of rota's own threads: choose another name`},
		{"name twice", "classes:\n- name: a\n- name: a\n", `f:3: class "a" is already given in line 2: give each class a name of its own`},
		{"tier", "classes: [{name: a, tier: priorty}]", `f:1: class "a": tier "priorty" is unknown: did you mean priority?`},
		{"weight 0", "classes: [{name: a, weight: 0}]", `f:1: class "a": weight "0" is out of range: must be 1..10000`},
		{"weight too large", "classes: [{name: a, weight: 10001}]", `f:1: class "a": weight "10001" is out of range: must be 1..10000`},
		{"octal weight", "classes: [{name: a, weight: 0100}]", `f:1: class "a": weight "0100" is not a whole number: must be 1..10000`},
		{"cap without %", "classes: [{name: a, tier: priority, cap: 90}]", `f:1: class "a": cap "90" is not a percentage: write a number with %, as 90% or 2.5%`},
		{"cap 0%", "classes: [{name: a, tier: priority, cap: 0%}]", `f:1: class "a": cap "0%" is out of range: must be 1%..100%`},
		{"cap of fair", "classes: [{name: a, cap: 90%}]", `f:1: class "a": tier fair has no cap: remove it, or set tier: priority`},

		{"unknown class", "classes: [{name: network}]\nrules: [{match: {comm: a}, class: netwrk}]", `f:2: rule 1: class "netwrk" is unknown: did you mean network?`},
		{"no class", "rules: [{match: {comm: a}}]", `f:1: rule 1: has no class: add class`},
		{"no match", "rules: [{class: default}]", `f:1: rule 1: matches no task: add match with at least one of cgroup, comm, exe, user, kernelFunction`},
		{"empty match", "rules: [{match: {}, class: default}]", `f:1: rule 1: matches no task: add match with at least one of cgroup, comm, exe, user, kernelFunction`},
		{"empty pattern", `rules: [{match: {comm: ""}, class: default}]`, `f:1: rule 1: comm: has no value: give it a value or remove it`},
		{"bad pattern", `rules: [{match: {comm: "bad["}, class: default}]`, `f:1: rule 1: comm "bad[" has a [ without ]: close it`},
		{"hostile value", "classes: [{name: \"a\\e[2J\\n\"}]", `f:1: class: name "a\x1b[2J\n" is not a class name: use at most 32 of a-z, 0-9 and -, a letter first`},

		{"anchor", "classes:\n  - &a {name: a}\n", `f:2: anchor &"a" is not allowed: write the value where it is needed`},
		{"alias alone", "a: *b\n", `f:1: not YAML: unknown anchor 'b' referenced: check the indentation, brackets and quotes from this line on`},
		{"merge", "classes: [{<<: {name: a}}]", "f:1: class: unknown key \"<<\": known are name, tier, weight, slice, cap, inherit, dynamicSlice, cpus, ...\nf:1: class: has no name: add name"},
		{"tag", "scheduler: !!map {}\n", `f:1: tag "!!map" is not allowed: remove it`},
		{"two documents", "scheduler:\n---\nscheduler:\n", `f:2: a second document begins: keep one`},
		{"not UTF-8", "scheduler:\n  slice: \xff\n", `f:2: byte 0xff is not valid UTF-8: save the file as UTF-8`},
		{"control character", "scheduler:\n\n  slice: \x01\n", `f:3: control character 0x01: remove it`},
		{"tab", "scheduler:\n\tslice: 1ms\n", `f:2: not YAML: found character that cannot start any token: check the indentation, brackets and quotes from this line on`},
		{"open bracket", "scheduler:\n  slice: [1,\nrules:\n", `f:3: not YAML: did not find expected node content: check the indentation, brackets and quotes from this line on`},
		{"indentation", "scheduler:\nclasses:\n  - name: x\n   tier: y\n", `f:3: not YAML: did not find expected '-' indicator: check the indentation, brackets and quotes from this line on`},
		{"deep", strings.Repeat("[", 100_000), `f:1: not YAML: exceeded max depth of 10000: check the indentation, brackets and quotes from this line on`},
		{"endless", "rules: [" + strings.Repeat("a,", 300_001) + "]", `f: has more than 300000 entries: join rules with patterns (*, **)`},

		{"all of them", "classes:\n- {name: a, tier: x}\nscheduler: {slice: 0s}\nrules:\n- {match: {comm: a}, class: b}\n",
			"f:2: class \"a\": tier \"x\" is unknown: known are priority, fair, background\n" +
				"f:3: scheduler: slice \"0s\" is out of range: must be 100us..100ms\n" +
				"f:5: rule 1: class \"b\" is unknown: known are default, a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Parse("f", []byte(tt.text), anyPattern)
			if err == nil {
				t.Fatalf("accepted as %+v", c)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	rules := func(n int) string {
		return "rules:\n" + strings.Repeat("  - match: {cgroup: \"a/b\", comm: c}\n    class: default\n", n)
	}
	classes := func(n int, first string) string {
		text := "classes:\n" + first
		for i := range n {
			text += fmt.Sprintf("  - name: c%d\n", i)
		}
		return text
	}
	tests := []struct{ name, text, want string }{
		{"10,000 rules", rules(10000), ""},
		{"10,001 rules", rules(10001), "f:20002: rules: 10001 are too many, at most 10000: join rules with patterns (*, **)"},
		{"254 classes and default", classes(254, ""), ""},
		{"255 classes with default", classes(254, "  - name: default\n"), ""},
		{"255 classes and default", classes(255, ""), `f:256: class "c254" is one too many: keep at most 255, class "default" included`},
		{"line of 1 MB", "rules:\n  - match: {comm: \"" + strings.Repeat("x", 1<<20) + "\"}\n    class: default\n",
			`f:2: rule 1: comm: "` + strings.Repeat("x", 48) + `"... is longer than 4096 bytes: shorten it`},
		{"1 MB of key", strings.Repeat("x", 1<<20) + ": 1\n",
			"f:1: not YAML: mapping values are not allowed in this context: check the indentation, brackets and quotes from this line on"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			begin := time.Now()
			_, err := Parse("f", []byte(tt.text), anyPattern)
			if took := time.Since(begin); took > 2*time.Second {
				t.Errorf("took %v", took)
			}
			if got := fmt.Sprint(err); err != nil && got != tt.want || err == nil && tt.want != "" {
				t.Errorf("got %.300s, want %s", got, tt.want)
			}
		})
	}
}

func TestManyFaults(t *testing.T) {
	_, err := Parse("f", []byte("classes:\n"+strings.Repeat("  - {tier: x}\n", 100)), anyPattern)
	var faults *Faults
	if !errors.As(err, &faults) {
		t.Fatal(err)
	}
	if len(faults.List) != maxFaults || faults.More != 200-maxFaults {
		t.Errorf("%d faults and %d more", len(faults.List), faults.More)
	}
	if !strings.HasSuffix(err.Error(), "\nand 180 more faults") {
		t.Error(err)
	}
}

// FuzzParse checks that no file makes the reader fail otherwise than in words.
func FuzzParse(f *testing.F) {
	f.Add([]byte("scheduler: {slice: 1ms}\nclasses: [{name: a, tier: priority, cap: 5%}]\nrules:\n- match: {comm: x}\n  class: a\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("? [a]\n: {b: c}\n"))
	f.Add([]byte("!!binary x\n---\n...\n%YAML 1.2\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("f", data, anyPattern)
		var faults *Faults
		switch {
		case err == nil && (len(c.Classes) == 0 || c.Classes[0].Name != DefaultClass || c.Slice < MinSlice || c.Slice > MaxSlice):
			t.Errorf("accepted as %+v", c)
		case err != nil && !errors.As(err, &faults):
			t.Errorf("not a list of faults: %v", err)
		case err != nil:
			for _, fault := range faults.List {
				if fault.Fault == "" || fault.Fix == "" || fault.Line < 0 || strings.ContainsAny(fault.Error(), "\n\x00\x1b") {
					t.Errorf("fault %+q", fault)
				}
			}
		}
	})
}
