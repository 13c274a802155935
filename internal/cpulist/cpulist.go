// Package cpulist reads and writes the kernel's notation of CPU sets, as "0-3,8". It is
// pure and imports nothing of ours; whoever meets such a list calls it.
package cpulist

import (
	"fmt"
	"strconv"
	"strings"
)

// Max is the largest number of a CPU that is believed: no kernel has more.
const Max = 1<<16 - 1

// Parse reads a list; blanks around it are nobody's fault. The numbers come in the order
// in which they stand.
func Parse(list string) ([]int, error) {
	var ids []int
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		from, errFrom := strconv.ParseUint(low, 10, 16)
		to, errTo := strconv.ParseUint(high, 10, 16)
		if errFrom != nil || errTo != nil || to < from || len(ids) > Max {
			return nil, fmt.Errorf("CPU list %q: %q: want numbers up to %d, or FROM-TO", list, part, Max)
		}
		for id := from; id <= to; id++ {
			ids = append(ids, int(id))
		}
	}
	return ids, nil
}

// String writes CPUs, which are in their order.
func String(cpus []int) string {
	var out strings.Builder
	for i := 0; i < len(cpus); {
		last := i
		for last+1 < len(cpus) && cpus[last+1] == cpus[last]+1 {
			last++
		}
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprint(&out, cpus[i])
		if last > i {
			fmt.Fprintf(&out, "-%d", cpus[last])
		}
		i = last + 1
	}
	return out.String()
}
