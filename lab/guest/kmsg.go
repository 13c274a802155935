package guest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// maxComplaints bounds the kernel lines in a result.
const maxComplaints = 200

// kernelComplaints returns the lines of the kernel's log that matter to a
// run: what sched_ext says, warnings with a trace, stalls.
func kernelComplaints() []string {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var lines []string
	record := make([]byte, 8192)
	for len(lines) < maxComplaints {
		n, err := unix.Read(fd, record)
		if err == unix.EPIPE { // overwritten while we read: go on with the next
			continue
		}
		if err != nil || n <= 0 {
			return lines
		}
		_, text, _ := strings.Cut(string(record[:n]), ";")
		text, _, _ = strings.Cut(text, "\n")
		if isComplaint(text) {
			lines = append(lines, text)
		}
	}
	return lines
}

func isComplaint(text string) bool {
	for _, mark := range []string{"sched_ext", "WARNING:", "BUG:", "Oops", "rcu: INFO", "stall", "soft lockup", "hung task", "blocked for more than", "Out of memory", "oom-kill"} {
		if strings.Contains(text, mark) {
			return true
		}
	}
	return false
}

// runningTasks names the runnable tasks, for the report of a run that did not
// end: at most 20, as "comm(pid)".
func runningTasks() string {
	var names []string
	stats, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		comm, state, pid := parseStat(string(b))
		if state == "R" && len(names) < 20 {
			names = append(names, fmt.Sprintf("%s(%s)", comm, pid))
		}
	}
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, " ")
}

// parseStat takes a line of /proc/PID/stat apart; comm may hold anything.
func parseStat(line string) (comm, state, pid string) {
	open, close := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 1 || close < open || close+3 > len(line) {
		return "", "", ""
	}
	return line[open+1 : close], line[close+2 : close+3], line[:open-1]
}
