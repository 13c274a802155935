package latency

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
)

// WriteSamples writes each call on a line of its own, for whoever wants to work
// the figures out again.
func (r *Result) WriteSamples(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("samples: %w", err)
	}
	w := bufio.NewWriter(f)
	fmt.Fprintln(w, "pair,caller,call,span_ns,delivery_ns,other_priority,other_cpu,max_priority,more_ioctls")
	for _, i := range slices.Sorted(maps.Keys(r.Pairs)) {
		s := r.Pairs[i]
		s.Fifo.write(w, i, "fifo")
		s.Other.write(w, i, "other")
	}
	return errors.Join(w.Flush(), f.Close())
}

func (s Series) write(w *bufio.Writer, pair int, caller string) {
	bit := func(seen, mask byte) int {
		if seen&mask != 0 {
			return 1
		}
		return 0
	}
	for i, seen := range s.Seen {
		fmt.Fprintf(w, "%d,%s,%d,%d,%d,%d,%d,%d,%d\n", pair, caller, i, s.Spans[i], s.Deliveries[i],
			bit(seen, otherPriority), bit(seen, otherCPU), bit(seen, atMaxPriority), bit(seen, moreIoctls))
	}
}
