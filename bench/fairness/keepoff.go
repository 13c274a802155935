package fairness

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// keepOff moves all threads of this process away from a CPU, where they may run elsewhere,
// so that counting takes nothing from who is counted. Without it the rest is the same.
func keepOff(cpu int) {
	threads, _ := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		var set unix.CPUSet
		if err != nil || unix.SchedGetaffinity(id, &set) != nil {
			continue
		}
		set.Clear(cpu)
		if set.Count() > 0 {
			unix.SchedSetaffinity(id, &set)
		}
	}
}
