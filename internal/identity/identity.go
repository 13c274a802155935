// Package identity reads what rules ask about a task from the machine's own files: its cgroup and
// its user's name. It imports nothing of ours; package daemon and `rota where` must
// read the same, or rules would be written that match something else.
package identity

import "strings"

// Cgroup finds the path of the v2 tree, "0::/path", in the text of /proc/PID/cgroup; empty
// where that tree is not mounted. The kernel allows no newline in a cgroup's name.
func Cgroup(text string) string {
	for line := range strings.Lines(text) {
		if path, found := strings.CutPrefix(line, "0::"); found {
			return strings.TrimSuffix(strings.TrimSuffix(path, "\n"), " (deleted)")
		}
	}
	return ""
}
