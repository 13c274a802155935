package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	durationForm = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,9})?(ns|us|µs|ms|s)$`)
	percentForm  = regexp.MustCompile(`^[0-9]{1,3}(\.[0-9])?%$`)
	integerForm  = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})$`)
	eventForm    = regexp.MustCompile(`^(r[0-9a-fA-F]{1,16}|[a-zA-Z0-9_]{1,64}:[a-zA-Z0-9_]{1,64})(/(r[0-9a-fA-F]{1,16}|[a-zA-Z0-9_]{1,64}:[a-zA-Z0-9_]{1,64}))?$`)
	nameForm     = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
)

// valueError is a fault of one value, before it is known where it stands.
type valueError struct{ fault, fix string }

func (e *valueError) Error() string { return e.fault + ": " + e.fix }

// parseDuration reads one number with one unit. Combined forms ("1m30s"),
// signs and bare numbers are refused: none of them is ever meant here.
func parseDuration(text string, low, high time.Duration) (time.Duration, error) {
	if !durationForm.MatchString(text) {
		return 0, &valueError{"is not a duration", "write a number with its unit us, ms or s, as " + word(low)}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < low || d > high {
		return 0, &valueError{"is out of range", "must be " + word(low) + ".." + word(high)}
	}
	return d, nil
}

// word writes a duration as the file would: 100us, not 100µs.
func word(d time.Duration) string {
	return strings.Replace(d.String(), "µs", "us", 1)
}

// parsePercent reads a share of one CPU and returns it in per mille.
func parsePercent(text string) (uint32, error) {
	if !percentForm.MatchString(text) {
		return 0, &valueError{"is not a percentage", "write a number with %, as 90% or 2.5%"}
	}
	f, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	mille := uint32(f*10 + 0.5)
	if err != nil || mille < 10 || mille > 1000 {
		return 0, &valueError{"is out of range", "must be 1%..100%"}
	}
	return mille, nil
}

var fractionForm = regexp.MustCompile(`^[01](\.[0-9]{1,6})?$`)

// parseFraction reads a part of a whole, 0..1.
func parseFraction(text string) (float64, error) {
	if !fractionForm.MatchString(text) {
		return 0, &valueError{"is not a fraction", "write a number from 0 to 1, as 0.4"}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f > 1 {
		return 0, &valueError{"is out of range", "must be 0..1"}
	}
	return f, nil
}

func parseInteger(text string, low, high uint32) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if !integerForm.MatchString(text) || err != nil {
		return 0, &valueError{"is not a whole number", fmt.Sprintf("must be %d..%d", low, high)}
	}
	if n < uint64(low) || n > uint64(high) {
		return 0, &valueError{"is out of range", fmt.Sprintf("must be %d..%d", low, high)}
	}
	return uint32(n), nil
}
