package config

import "strings"

// nearest is the word that was probably meant by an unknown one: the same in
// another case, or at most a third of its letters away. Empty when none is.
func nearest(word string, known []string) string {
	if len(word) > 40 {
		return ""
	}
	best, least := "", len(word)/3+1
	for _, k := range known {
		if strings.EqualFold(word, k) {
			return k
		}
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is the number of letters to insert, delete or replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// Meant is the fix for an unknown word.
func Meant(word string, known []string) string {
	if n := nearest(word, known); n != "" {
		return "did you mean " + n + "?"
	}
	if len(known) > 8 {
		return "known are " + strings.Join(known[:8], ", ") + ", ..."
	}
	return "known are " + strings.Join(known, ", ")
}
