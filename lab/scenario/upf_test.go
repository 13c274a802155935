package scenario

import "testing"

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
