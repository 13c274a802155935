package sched

import "testing"

// What boosts follows from the switches, and from whether any class gives a boost.
func TestReasons(t *testing.T) {
	all := InheritSwitches{Futex: true, Locks: true, Wakeups: true}
	giver := Class{Tier: Priority, Inherit: true}
	for _, test := range []struct {
		name    string
		inherit InheritSwitches
		classes []Class
		want    uint32
	}{
		{"all", all, []Class{{Tier: Fair}, giver}, 1<<reasonFutex | 1<<reasonLock | 1<<reasonWake},
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

// Each hook is a program of the object, and each reason with hooks has a begin and an end.
func TestHooksAreInTheObject(t *testing.T) {
	spec := object(t)
	for _, hook := range optionalHooks() {
		if spec.Programs[hook.program] == nil {
			t.Errorf("no program %q", hook.program)
		}
		if hook.without == "" {
			t.Errorf("%s: no words for where it is missing", hook.program)
		}
	}
	for reason, hooks := range waitHooks {
		if len(hooks)%2 != 0 {
			t.Errorf("reason %d: %d hooks, not in pairs", reason, len(hooks))
		}
	}
}
