package output

import (
	"fmt"
	"strings"
)

// Switches returns how often the machine has switched tasks since it was
// booted, from the text of /proc/stat.
func Switches(text string) (float64, error) {
	_, rest, found := strings.Cut(text, "\nctxt ")
	if !found {
		return 0, fmt.Errorf("/proc/stat: no line ctxt in %q", clip(text))
	}
	return number("/proc/stat", "ctxt", firstWord(rest))
}

// Status returns a task's name and how often it was made to give up its CPU,
// from the text of its status file in /proc.
func Status(text string) (comm string, forced float64, err error) {
	comm, found := after(text, "Name:")
	count, counted := after(text, "\nnonvoluntary_ctxt_switches:")
	if !found || !counted {
		return "", 0, fmt.Errorf("status: no name or no count of switches in %q", clip(text))
	}
	forced, err = number("status", "nonvoluntary_ctxt_switches", count)
	return comm, forced, err
}
