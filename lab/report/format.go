package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// unitOf returns the unit that ends a metric's name, as a reader writes it.
func unitOf(metric string) string {
	unit := metric[strings.LastIndexByte(metric, '_')+1:]
	switch unit {
	case "pct":
		return "%"
	case "us", "ms", "s", "ns", "ops", "packets":
		return unit
	case "mb":
		return "MB"
	case "hz":
		return "/s"
	}
	return ""
}

// figure prints a number with four significant digits, whole from 1000 on.
func figure(v float64) string {
	switch magnitude := math.Abs(v); {
	case magnitude == 0 || magnitude == 1:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case magnitude < 1e-4 || magnitude >= 1e12:
		return strconv.FormatFloat(v, 'g', 4, 64)
	case magnitude >= 999.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	default:
		digits := 3 - int(math.Floor(math.Log10(magnitude)))
		text := strconv.FormatFloat(v, 'f', min(digits, 6), 64)
		return text
	}
}

// withUnit prints a number and its unit.
func withUnit(v float64, metric string) string {
	if unit := unitOf(metric); unit != "" {
		return figure(v) + " " + unit
	}
	return figure(v)
}

// ratio prints how often base goes into value; "" when that says nothing.
func ratio(value, base spread) string {
	if value.seeds == 0 || base.seeds == 0 || base.median <= 0 || value.median < 0 {
		return ""
	}
	r := value.median / base.median
	switch {
	case r >= 9.995:
		return figure(math.Round(r*10)/10) + "x"
	case r < 0.00995:
		return strconv.FormatFloat(r, 'g', 2, 64) + "x"
	}
	return strconv.FormatFloat(r, 'f', 2, 64) + "x"
}

// rangeOf prints the lowest and highest value; "" when they are the same.
func rangeOf(s spread) string {
	if s.seeds < 2 || s.low == s.high {
		return ""
	}
	return figure(s.low) + ".." + figure(s.high)
}

// runName names a run in a sentence.
func runName(run Run) string {
	return fmt.Sprintf("row %s, seed %d", run.Row, run.Seed)
}

// endedEarly says of a run that failed why.
func endedEarly(run Run) string { return runName(run) + ": ended early: " + run.Exit }

// counted joins a number and a word.
func counted(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}

// heading says which machine a table is about.
func heading(r Results, p part) string {
	kernel := printable(p.kernel)
	if kernel == "" {
		kernel = "unknown"
	}
	seeds := make([]string, len(p.seeds))
	for i, seed := range p.seeds {
		seeds[i] = strconv.FormatInt(seed, 10)
	}
	word := "seed"
	if len(seeds) > 1 {
		word = "seeds"
	}
	return fmt.Sprintf("kernel %s, %s, %s %s", kernel, counted(r.CPUs, "CPU"), word, strings.Join(seeds, " "))
}

// printable takes control characters out of what came from a guest or a file.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}
