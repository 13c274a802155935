package config

import (
	"fmt"
	"strings"
)

// maxFaults is the number of faults that one report lists; the rest is only
// counted, so that a file of 10,000 wrong lines stays readable.
const maxFaults = 20

// Fault is one thing that is wrong with a file, and what to do about it.
type Fault struct {
	File  string `json:"file"`
	Line  int    `json:"line"` // 1 is the first; 0: the file as a whole
	Fault string `json:"fault"`
	Fix   string `json:"fix"`
}

// Error is one line: file:line: fault: fix.
func (f Fault) Error() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: %s: %s", f.File, f.Fault, f.Fix)
	}
	return fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Fault, f.Fix)
}

// Faults is why a file was refused: the first faults in the file's order.
type Faults struct {
	List []Fault
	More int // faults beyond those listed
}

// Error is one line per fault.
func (f *Faults) Error() string {
	var b strings.Builder
	for i, fault := range f.List {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(fault.Error())
	}
	if f.More > 0 {
		fmt.Fprintf(&b, "\nand %d more faults", f.More)
	}
	return b.String()
}

func (f *Faults) add(fault Fault) {
	if len(f.List) == maxFaults {
		f.More++
		return
	}
	f.List = append(f.List, fault)
}

// quoted shows a hostile value: escaped, and cut to what fits a line.
func quoted(s string) string {
	const most = 48
	if len(s) > most {
		return fmt.Sprintf("%q...", strings.ToValidUTF8(s[:most], ""))
	}
	return fmt.Sprintf("%q", s)
}
