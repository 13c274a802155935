package scenario

import "testing"

func TestInversionWaits(t *testing.T) {
	longest, excess, err := inversionWaits("wait_max_ms 3.250 wait_avg_ms 1.100 excess_max_ms 2.750\n")
	if err != nil || longest != 3.25 || excess != 2.75 {
		t.Errorf("%v, %v, %v", longest, excess, err)
	}
	for _, text := range []string{"", "wait_max_ms 3.25", "excess_max_ms 1", "wait_max_ms x excess_max_ms 1"} {
		if _, _, err := inversionWaits(text); err == nil {
			t.Errorf("%q was understood", text)
		}
	}
}
