package guest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSetFeatures(t *testing.T) {
	for name, c := range map[string]struct {
		features []string
		fault    string
	}{
		"none":    {nil, ""},
		"known":   {[]string{"NO_RUN_TO_PARITY"}, ""},
		"unknown": {[]string{"NO_RUN_TO_PARITY", "NO_SUCH"}, `row "r": feature "NO_RUN_TO_PARITY": the scheduler of kernel 6.1 has none`},
	} {
		// A plain file keeps the last word that was written into it.
		path := filepath.Join(t.TempDir(), "features")
		if err := os.WriteFile(path, []byte("PLACE_LAG RUN_TO_PARITY\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		g := &Guest{Row: Row{Name: "r", Features: c.features}, Release: "6.1", out: newWriter(&out)}
		err := g.setFeatures(path)
		switch {
		case c.fault == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
			t.Errorf("%s: %v, want %q", name, err, c.fault)
		case c.fault == "" && len(c.features) > 0 && !strings.Contains(out.String(), "NO_RUN_TO_PARITY"):
			t.Errorf("%s: the features are not reported: %s", name, out.String())
		}
	}
	g := &Guest{Row: Row{Name: "r", Features: []string{"X"}}}
	if err := g.setFeatures(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), `row "r": set feature "X"`) {
		t.Errorf("without debugfs: %v", err)
	}
}
