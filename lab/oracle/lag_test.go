package oracle

import "testing"

// Who runs on beside an equal is behind V by half of that, and the other before
// it: 10 ms are the bound of a request of 3 ms in either direction.
func TestLagBounds(t *testing.T) {
	const v = 1000 * ms
	for _, c := range []struct {
		ran   uint64 // ns
		fault int
	}{{16 * ms, 0}, {19 * ms, 0}, {21 * ms, 2}, {30 * ms, 2}} {
		spent := at(Charge, 0, 1, v+16*c.ran, v+16*c.ran+whole)
		spent.Span = c.ran
		again := spent // counted once as long as it lasts
		again.Span = 0
		report := Check(story(at(Join, JoinEmpty, 1, v, v+whole), at(Join, 0, 2, v-1, v-1+whole),
			at(Wait, 0, 2, v-1, v-1+whole), Event{Kind: Run, TID: 1}, spent, again))
		if report.Faults[LagBound] != c.fault {
			t.Errorf("%d ns: %d faults, want %d\n%s", c.ran, report.Faults[LagBound], c.fault, report)
		}
	}
}
