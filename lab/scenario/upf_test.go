package scenario

import (
	"testing"

	"rota/lab/guest"
)

// Each program of a chain begins on each of the CPUs once, and no two of one chain on the same; with
// cpuset isolation each begins where it may be.
func TestUPFBeginsOnEachCPU(t *testing.T) {
	for user, want := range map[string]string{"": "0123", "upf/user": "2323"} {
		r := &upfRun{g: &guest.Guest{CPUs: 4}, user: user}
		for shift := range 3 { // the user, the gateway, who answers
			var begins string
			for i := range upfBegins {
				begins += r.begin(i + shift)
			}
			if rotated := (want + want)[shift : shift+upfBegins]; begins != rotated {
				t.Errorf("user %q, program %d: begins on %s, must be %s", user, shift, begins, rotated)
			}
		}
	}
}

func TestWhereFound(t *testing.T) {
	for answer, want := range map[string]bool{
		`{"executors":[{"context":"softirq","interrupt":"NET_RX"},{"context":"task","comm":"ask"}]}`: true,
		`{"executors":[{"context":"task","comm":"other"},{"context":"task","comm":"ask"}]}`:          false,
		`{"executors":[{"context":"softirq","comm":"ask"}]}`:                                         false,
		`{}`: false,
	} {
		if got, err := whereFound(answer, "ask"); got != want || err != nil {
			t.Errorf("%s: %v, %v", answer, got, err)
		}
	}
	if _, err := whereFound("rota: no", "ask"); err == nil {
		t.Error("what is no JSON was accepted")
	}
}
