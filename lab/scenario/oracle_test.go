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

// TestCharged: 3 of 4 ms are charged, and the second in which nothing is recorded is none of them.
func TestCharged(t *testing.T) {
	const ms = 1000000
	record := &oracle.Record{Parts: [][]oracle.Event{
		{{Time: 0}, {Time: 1000 * ms}, {Time: 1002 * ms, Kind: oracle.Charge, Span: 2 * ms}},
		{{Time: 1000 * ms}, {Time: 1002 * ms, Kind: oracle.Charge, Span: ms}},
		{},
	}}
	if got := charged(record); got != 0.75 {
		t.Errorf("%v, want 0.75", got)
	}
	if got := charged(&oracle.Record{}); got != 0 {
		t.Errorf("%v of no record", got)
	}
}
