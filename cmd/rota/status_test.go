package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rota/internal/api"
)

// TestWriteOwners: whether CPUs are lent, and when.
func TestWriteOwners(t *testing.T) {
	for want, c := range map[string]api.Class{
		"class a has CPUs 2-3\n":                                               {},
		"class a has CPUs 2-3, lent while idle\n":                              {CPUsLent: true},
		"class a has CPUs 2-3, lent after 1.5ms without a task of the class\n": {CPUsLent: true, CPUsLentAfterMicros: 1500},
		"class a has CPUs 2-3, lent after 1ms without a task of the class, came back 9 times, 7 before they were wanted\n": {
			CPUsLent: true, CPUsLentAfterMicros: 1000, CPUsReturned: 9, CPUsExpected: 7},
	} {
		c.Name, c.CPUs = "a", []int{2, 3}
		var out strings.Builder
		writeOwners(&out, []api.Class{c})
		if out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	}
}

// TestGuideExplainsColumns: each column of status and top is named in the guide.
func TestGuideExplainsColumns(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guide/status.md")
	if err != nil {
		t.Fatal(err)
	}
	s := api.Status{
		Classes:   []api.Class{{Name: "a", CPUs: []int{1}}},
		CPUs:      []api.CPU{{Owner: "a"}},
		Frequency: api.Frequency{Mode: "on"},
	}
	var out strings.Builder
	if err := writeStatus(&out, s, true); err != nil {
		t.Fatal(err)
	}
	heads := []string{strings.Join(topRows(s, 1)[0], "  ")}
	for line := range strings.Lines(out.String()) {
		if regexp.MustCompile(`^(class  |cpu  |boosts: |classes: )`).MatchString(line) {
			heads = append(heads, strings.TrimSpace(line))
		}
	}
	if len(heads) != 6 {
		t.Fatalf("%d tables, want 6, in %s", len(heads), out.String())
	}
	known := []string{"class", "tier", "cpu", "p99", "max"} // in the first table, or without a word
	for _, head := range heads {
		for _, column := range regexp.MustCompile(`  +`).Split(head, -1) {
			column = strings.TrimPrefix(column, "boosts: ")
			if !slices.Contains(known, column) && !strings.Contains(string(guide), "`"+column+"`") {
				t.Errorf("docs/guide/status.md does not explain %q", column)
			}
		}
	}
}
