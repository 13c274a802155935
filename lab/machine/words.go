package machine

import "strings"

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

// KernelFault returns the line of the console with which the kernel died, ""
// when it did not.
func KernelFault(console string) string {
	for _, mark := range []string{"Kernel panic - not syncing", "BUG: ", "Oops: ", "general protection fault", "Internal error"} {
		for _, line := range strings.Split(Plain(console), "\n") {
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
