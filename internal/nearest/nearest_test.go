package nearest

import "testing"

func TestWord(t *testing.T) {
	known := []string{"slice", "cap", "inherit"}
	for word, want := range map[string]string{
		"slise": "slice", "SLICE": "slice", "inherits": "inherit", "weight": "", "": "",
		"sliceslicesliceslicesliceslicesliceslicesl": "",
	} {
		if got := Word(word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"vfs_mkdri", "vfs_mkdir", 2}, {"kitten", "sitting", 3}} {
		if got := Distance(tt.a, tt.b); got != tt.want {
			t.Errorf("%q to %q: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
