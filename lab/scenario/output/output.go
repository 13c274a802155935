// Package output reads what the field's own measuring tools print: cyclictest,
// ping, perf bench, hackbench, stress-ng and the files of /proc.
//
// Every function takes the text and returns numbers in the unit that its name
// says, or an error that names the tool and quotes what it could not read. It
// runs no tool and knows no scenario. lab/scenario calls it, in the guest.
package output

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
)

// Samples are measured values in one unit.
type Samples []float64

// Avg returns the mean; 0 without samples.
func (s Samples) Avg() float64 {
	sum := 0.0
	for _, v := range s {
		sum += v
	}
	if len(s) == 0 {
		return 0
	}
	return sum / float64(len(s))
}

// Max returns the largest value; 0 without samples.
func (s Samples) Max() float64 {
	largest := 0.0
	for i, v := range s {
		if i == 0 || v > largest {
			largest = v
		}
	}
	return largest
}

// Min returns the smallest value; 0 without samples.
func (s Samples) Min() float64 {
	smallest := 0.0
	for i, v := range s {
		if i == 0 || v < smallest {
			smallest = v
		}
	}
	return smallest
}

// Deviation returns the standard deviation of all samples, which ping calls mdev.
func (s Samples) Deviation() float64 {
	mean, sum := s.Avg(), 0.0
	for _, v := range s {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / float64(max(len(s), 1)))
}

// Percentile returns the value that p percent (0..100) of the samples do not
// exceed, by nearest rank; 0 without samples.
func (s Samples) Percentile(p float64) float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := append(Samples(nil), s...)
	sort.Float64s(sorted)
	rank := int(math.Ceil(p * float64(len(sorted)) / 100))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// number reads a finite, non-negative number and its place in words for the error.
func number(tool, what, text string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return 0, fmt.Errorf("%s: %s is %q: must be a number", tool, what, clip(text))
	}
	return v, nil
}

// after finds the text between the first occurrence of mark and the end of its line.
func after(text, mark string) (string, bool) {
	_, rest, ok := strings.Cut(text, mark)
	if !ok {
		return "", false
	}
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line), true
}

// firstWord returns the first word of text, "" when there is none.
func firstWord(text string) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// clip keeps an error message short whatever the tool printed.
func clip(text string) string {
	text = strings.TrimSpace(text)
	if len(text) > 120 {
		return text[:120] + "..."
	}
	return text
}
