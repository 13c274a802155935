package sched

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What boosts follows from the switches, and from whether any class gives a boost.
func TestReasons(t *testing.T) {
	all := InheritSwitches{Futex: true, Locks: true, Wakeups: true, Binder: true}
	giver := Class{Tier: Priority, Inherit: true}
	for _, test := range []struct {
		name    string
		inherit InheritSwitches
		classes []Class
		want    uint32
	}{
		{"all", all, []Class{{Tier: Fair}, giver}, 1<<reasonFutex | 1<<reasonLock | 1<<reasonWake | 1<<reasonBinder},
		{"some", InheritSwitches{Locks: true}, []Class{giver}, 1 << reasonLock},
		{"none", InheritSwitches{}, []Class{giver}, 0},
		{"nobody gives", all, []Class{{Tier: Fair, Inherit: true}, {Tier: Priority}}, 0},
	} {
		p := Params{Inherit: test.inherit, Classes: test.classes}
		if got := p.knobs().Inherit; got != test.want {
			t.Errorf("%s: %b, want %b", test.name, got, test.want)
		}
	}
}

// Each source has its programs, and every wait but a wake-up has a source.
func TestSourcesAreInTheObject(t *testing.T) {
	spec := object(t)
	seen := uint32(1<<reasonWake) | wantCounters
	for _, src := range sources {
		for _, name := range src.programs {
			if spec.Programs[name] == nil {
				t.Errorf("no program %q", name)
			}
		}
		if src.without == "" || len(src.programs) == 0 {
			t.Errorf("%v: no programs, or no words for where they are missing", src.programs)
		}
		seen |= src.reasons
	}
	if seen != 1<<reasons-1|wantCounters {
		t.Errorf("waits with a source: %b", seen)
	}
}

// A hook that is in no source would be loaded with the scheduler, and never attached.
func TestHooksAreInSources(t *testing.T) {
	for name, prog := range object(t).Programs {
		if prog.Type.String() != "Tracing" || name == "rota_on_exec" {
			continue
		}
		if !slices.Contains(optionalPrograms(), name) {
			t.Errorf("%s: in no source", name)
		}
	}
}

// What is part of the kernel is there, a module when it is loaded.
func TestSourceIsPresent(t *testing.T) {
	src := source{modules: []string{"binder_linux", "binder"}}
	sysfs := func(module, state string) string {
		dir := t.TempDir()
		path := filepath.Join(dir, "module", module)
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if state != "" {
			if err := os.WriteFile(filepath.Join(path, "initstate"), []byte(state+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	for _, test := range []struct {
		name  string
		src   source
		sysfs string
		want  bool
	}{
		{"no module is asked for", source{}, t.TempDir(), true},
		{"not loaded", src, sysfs("binfmt_misc", "live"), false},
		{"loaded", src, sysfs("binder_linux", "live"), true},
		{"being loaded", src, sysfs("binder_linux", "coming"), false},
		{"part of the kernel", src, sysfs("binder", ""), true},
	} {
		if got := test.src.present(test.sysfs); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// What the kernel says of a task, in words.
func TestExplained(t *testing.T) {
	for policy, realTime := range map[uint32]bool{0: false, 1: true, 2: true, 3: false, 5: false, 6: true, 7: false} {
		if got := (&rotaExplain{Policy: policy}).task(); got.RealTime != realTime {
			t.Errorf("policy %d: real-time %v", policy, got.RealTime)
		}
	}
	e := rotaExplain{BoostedNs: 5, WaitsTid: 7, WaitsReason: reasonBinder, WaitsGives: 1, WaitsNs: 9}
	if got := e.task(); got.Boosted != 0 || got.Waits != (Wait{TID: 7, Reason: "binder", Gives: true, For: 9}) {
		t.Errorf("%+v", got)
	}
	e = rotaExplain{BoostedNs: 5, Awaited: 1, WaitsReason: 7}
	if got := e.task(); got.Boosted != 5 || got.Waits != (Wait{}) {
		t.Errorf("%+v", got)
	}
	e = rotaExplain{LagNs: -7}
	if got := e.task(); got.Lag != -7 {
		t.Errorf("%+v", got)
	}
	e = rotaExplain{Given: 3, Lifted: 2}
	if got := e.task(); got.Calls != (Calls{Given: 3, Boosted: 2}) {
		t.Errorf("%+v", got)
	}
	e = rotaExplain{WaitsTid: 7, WaitsReason: 7}
	if got := e.task(); got.Waits.Reason != "" {
		t.Errorf("%+v", got)
	}
}
