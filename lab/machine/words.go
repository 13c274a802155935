package machine

import (
	"regexp"
	"strings"
)

// maxLastLines bounds the guest's words in an error.
const maxLastLines = 25

// LastWords returns the last lines of a console, fit for a terminal.
func LastWords(console string) string {
	lines := strings.Split(strings.TrimSpace(Plain(console)), "\n")
	if len(lines) > maxLastLines {
		lines = lines[len(lines)-maxLastLines:]
	}
	if text := strings.Join(lines, "\n"); text != "" {
		return text
	}
	return "(nothing)"
}

// faultMarks are the words with which a kernel dies, the cause before its effects.
var faultMarks = []string{"Kernel panic - not syncing", "BUG: ", "Oops: ", "general protection fault", "Internal error"}

// kernelWords are what the kernel itself wrote into a line of the console: they begin with its
// time in microseconds. That is in the midst of a line when a program had not finished its own.
var kernelWords = regexp.MustCompile(`\[ *\d+\.\d{6}\].*`)

// KernelFault returns the words on the console with which the kernel died, ""
// when it did not. A program may print the same ones.
func KernelFault(console string) string {
	text := Plain(console)
	lines := kernelWords.FindAllString(text, -1)
	if len(lines) == 0 { // a kernel without times (printk.time=0), whose every line may be its own
		lines = strings.Split(text, "\n")
	}
	for _, mark := range faultMarks {
		for _, line := range lines {
			if strings.Contains(line, mark) {
				return strings.TrimSpace(line)
			}
		}
	}
	return ""
}

// Plain makes a console fit for a terminal or a file: it drops carriage returns and replaces what could steer a terminal.
func Plain(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\r':
			return -1
		case c == '\n' || c == '\t' || (c >= ' ' && c < 0x7f) || c >= 0xa0:
			return c
		}
		return '?'
	}, text)
}
