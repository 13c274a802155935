package config

import (
	"strings"

	"rota/internal/nearest"
)

// Meant is the fix for an unknown word.
func Meant(word string, known []string) string {
	if n := nearest.Word(word, known); n != "" {
		return "did you mean " + n + "?"
	}
	if len(known) > 8 {
		return "known are " + strings.Join(known[:8], ", ") + ", ..."
	}
	return "known are " + strings.Join(known, ", ")
}
