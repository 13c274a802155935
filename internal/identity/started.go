package identity

import (
	"strconv"
	"strings"
)

// tick is the unit in which /proc says when a task was started, in ns.
const tick = 10_000_000

// StartedAt tells whether the task of the text of /proc/TID/stat was started then, in
// ns since boot: numbers of tasks are used again.
func StartedAt(stat string, ns uint64) bool {
	ticks, ok := parseStart(stat)
	return ok && ticks == ns/tick
}

// parseStart finds when the task was started, in ticks. Its name stands in brackets
// and may hold anything.
func parseStart(stat string) (ticks uint64, ok bool) {
	const field = 22 - 3 // of what follows the name
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= field {
		return 0, false
	}
	ticks, err := strconv.ParseUint(fields[field], 10, 64)
	return ticks, err == nil
}
