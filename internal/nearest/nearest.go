// Package nearest finds the word that was probably meant by an unknown one. It
// is pure and imports nothing of ours; who refuses words calls it.
package nearest

import "strings"

// maxWord is the length above which a word is nobody's slip.
const maxWord = 40

// Word is the known word that was probably meant: the same in another case, or
// at most a third of its letters away. Empty when none is.
func Word(word string, known []string) string {
	if len(word) > maxWord {
		return ""
	}
	best, least := "", len(word)/3+1
	for _, k := range known {
		if strings.EqualFold(word, k) {
			return k
		}
		if d := Distance(strings.ToLower(word), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// Distance is the number of letters to insert, delete or replace (Levenshtein).
func Distance(a, b string) int {
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
