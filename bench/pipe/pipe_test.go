package pipe

import (
	"os"
	"testing"

	"rota/bench/level"
	"rota/bench/peer"
)

func TestMain(m *testing.M) {
	peer.Main(os.Args, Roles())
	os.Exit(m.Run())
}

func TestMeasure(t *testing.T) {
	g := peer.NewGroup(t.Context(), os.Stderr)
	defer g.Stop()
	spans, err := Measure(g, 2, 25, level.Level{})
	if err != nil || len(spans) != 50 {
		t.Fatalf("%d spans, error %v", len(spans), err)
	}
	for _, s := range spans {
		if s <= 0 {
			t.Errorf("span %v", s)
		}
	}
}
