package scenario

import (
	"testing"
	"time"

	"rota/lab/scenario/output"
)

func TestSliceCases(t *testing.T) {
	for _, c := range sliceCases() {
		if need := len(c.slices) * output.TurnsSlots; need > 64 {
			t.Errorf("%s: needs %d slots, a board has 64", c.name, need)
		}
		for slice := range c.bounds {
			found := false
			for _, other := range c.slices {
				found = found || other == slice
			}
			if !found {
				t.Errorf("%s: a promise about %v, for which nobody asks", c.name, slice)
			}
		}
	}
	for _, b := range sliceCases()[0].bounds[0] {
		if b.Row != rowRota700 || b.AtLeast < 664.9 || b.AtMost > 735.1 {
			t.Errorf("%+v: must be 700 us +- 5 %% of %s", b, rowRota700)
		}
	}
	c := sliceCases()[3]
	if got := c.metric(100*time.Microsecond, "mean_us"); got != "turns_pair_100us_mean_us" {
		t.Errorf("the figure is called %q", got)
	}
}

func TestTurnBuckets(t *testing.T) {
	list := turnBuckets(output.Turns{Buckets: []output.TurnBucket{{LowNs: 0, HighNs: 8192}, {LowNs: 8192, HighNs: 12288, Count: 3}}})
	if len(list) != 1 || list[0].Low != 8.192 || list[0].High != 12.288 || list[0].Count != 3 {
		t.Errorf("%+v", list)
	}
}
