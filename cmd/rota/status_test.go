package main

import (
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
	} {
		c.Name, c.CPUs = "a", []int{2, 3}
		var out strings.Builder
		writeOwners(&out, []api.Class{c})
		if out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	}
}
