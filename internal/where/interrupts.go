package where

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// interruptsFile lists the interrupts that drivers serve.
const interruptsFile = "proc/interrupts"

// vectors are the kernel's soft interrupts, in its order, which is part of what it
// promises to programs.
var vectors = []string{"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"}

func vectorName(number int) string {
	if number < 0 || number >= len(vectors) {
		return ""
	}
	return vectors[number]
}

// readInterrupts reads the names of interrupts by their numbers.
func readInterrupts(root fs.FS) map[int]string {
	names := map[int]string{}
	cpus := 0
	_ = eachLine(root, interruptsFile, func(line string) {
		if cpus == 0 {
			cpus = strings.Count(line, "CPU")
			return
		}
		if number, name, ok := parseInterrupt(line, cpus); ok {
			names[number] = name
		}
	})
	return names
}

// parseInterrupt reads "24: counts of the CPUs, chip, how it is triggered, names of
// those who serve it". Lines with words for numbers have no such.
func parseInterrupt(line string, cpus int) (number int, name string, ok bool) {
	label, rest, found := strings.Cut(line, ":")
	number, err := strconv.Atoi(strings.TrimSpace(label))
	fields := strings.Fields(rest)
	if !found || err != nil || number < 0 || cpus < 0 || len(fields) <= cpus {
		return 0, "", false
	}
	fields = fields[cpus:]
	trigger := slices.IndexFunc(fields, func(word string) bool {
		word = strings.ToLower(word)
		return strings.HasSuffix(word, "edge") || strings.HasSuffix(word, "level") || strings.HasSuffix(word, "fasteoi")
	})
	if trigger < 0 {
		return number, fields[len(fields)-1], true
	}
	return number, strings.Join(fields[trigger+1:], " "), true
}
