package sched

import "testing"

// Without flags, and with the flag domain, isolcpus= takes CPUs out of the
// scheduling domains; the other flags alone do not.
func TestIsolatesDomains(t *testing.T) {
	for value, want := range map[string]bool{
		"1-3":                    true,
		"domain,1-3":             true,
		"managed_irq,domain,1-3": true,
		"nohz,1-3":               false,
		"nohz,managed_irq,1":     false,
		"managed_irq,2,4-5":      false,
	} {
		if got := isolatesDomains(value); got != want {
			t.Errorf("isolcpus=%s: isolates domains: %v, want %v", value, got, want)
		}
	}
}
