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

func TestInversionCases(t *testing.T) {
	bounds := map[string]float64{}
	for _, c := range inversionCases() {
		if _, twice := bounds[c.metric("excess")]; twice {
			t.Errorf("%+v is there twice", c)
		}
		bounds[c.metric("excess")] = c.bound()
	}
	for name, want := range map[string]float64{
		"inversion_mutex_1_of_4_excess_ms":         1,
		"inversion_pipe_4_of_64_excess_ms":         2.5,
		"inversion_mutex_three_1_of_64_excess_ms":  2,
		"inversion_mutex_behind_1_of_64_excess_ms": 1.5,
		"inversion_binder_2_of_64_excess_ms":       1.5,
		"inversion_pi_killed_1_of_64_excess_ms":    1,
	} {
		if bounds[name] != want {
			t.Errorf("%s: at most %v, want %v", name, bounds[name], want)
		}
	}
}
