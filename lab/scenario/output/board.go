package output

import (
	"encoding/binary"
	"fmt"
)

const (
	boardSlots = 64
	slotSize   = 64 // bytes
)

// Slot is one thread's counters on a board of lab/load (see board.h there).
type Slot struct {
	Loops   uint64 // pieces of work since the start
	CPUNs   uint64 // CPU time of the thread
	GapNs   uint64 // longest time between two looks at the clock
	SinceNs uint64 // CLOCK_MONOTONIC at the last look
	Errors  uint64 // things that must not happen
	Units   uint64 // parts of pieces, each as long as another
	Waits   uint64 // of these, how many a counter of waits sees
}

// Board reads all slots of a board.
func Board(data []byte) ([]Slot, error) {
	if len(data) != boardSlots*slotSize {
		return nil, fmt.Errorf("board: %d bytes: must be %d", len(data), boardSlots*slotSize)
	}
	slots := make([]Slot, boardSlots)
	for i := range slots {
		words := data[i*slotSize:]
		word := func(n int) uint64 { return binary.NativeEndian.Uint64(words[8*n:]) }
		slots[i] = Slot{Loops: word(0), CPUNs: word(1), GapNs: word(2), SinceNs: word(3), Errors: word(4), Units: word(6), Waits: word(7)}
	}
	return slots, nil
}
