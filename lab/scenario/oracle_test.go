package scenario

import (
	"strings"
	"testing"

	"rota/lab/oracle"
)

// Each kind of fault of the oracle has a line in the table, in its order.
func TestOracleFaultsAreShown(t *testing.T) {
	shown := map[oracle.Fault]bool{}
	for _, f := range oracleFaults() {
		shown[f.fault] = true
	}
	for _, fault := range oracle.Faults() {
		if !shown[fault] {
			t.Errorf("fault %q has no line in the table", fault)
		}
	}
	for _, m := range conformance().Metrics {
		if m.Group == "faults" && len(m.Bounds) != len(conformance().Rows) {
			t.Errorf("%s: promised for %d rows of %d", m.Name, len(m.Bounds), len(conformance().Rows))
		}
	}
	for _, row := range conformance().Rows {
		if row.Scheduler != "rota" || row.Record == 0 || strings.Contains(row.Name, " ") {
			t.Errorf("row %+v: must be rota with a record", row)
		}
	}
}
