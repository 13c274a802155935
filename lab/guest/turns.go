package guest

import "fmt"

// Turns is how finely the virtual CPUs of an instruction-counted machine take turns.
type Turns string

// What a machine's time is cut into: finer turns come nearer to CPUs that run at once, and
// cost the host more.
const (
	TurnsFine   Turns = "fine"   // rounds of at most 122 us; "" is the same
	TurnsFinest Turns = "finest" // of at most 11 us
	TurnsNone   Turns = "none"   // as the guest's own timers cut it, for what happens on one CPU
)

// Check refuses what is none of them.
func (t Turns) Check() error {
	switch t {
	case "", TurnsFine, TurnsFinest, TurnsNone:
		return nil
	}
	return fmt.Errorf("turns %q: must be %s, %s or %s", string(t), TurnsFine, TurnsFinest, TurnsNone)
}

// turnEvent is one of a timer's of the board, in ticks of 10 ns since the period of 122 us began.
type turnEvent struct {
	timer int
	at    uint64
}

// events are those of the timers that make the turns: pairs, whose gaps decide which CPU
// begins a round (interleave_amd64.go). Timer 0 is the kernel's, and every board has two more.
func (t Turns) events() []turnEvent {
	switch t {
	case TurnsNone:
		return nil
	case TurnsFinest:
		return finest()
	}
	return []turnEvent{{2, 0}, {1, 2}} // now one, now the other: 28, 24, 26 and 22 % of the instructions
}

// finest are as many pairs as the registers of the HPET have timers for. CPU 0 begins seven times,
// CPU 2 four times.
func finest() (events []turnEvent) {
	const pairs, apart = 11, 1110
	for i := range pairs {
		at, gap := uint64(apart*i), uint64(34)
		if i%3 == 1 {
			gap = 3
		}
		events = append(events, turnEvent{2*i + 1, at}, turnEvent{2*i + 2, at + gap})
	}
	return events
}

// EventTimers is how many timers the board must have for them; 0 = those it has anyway.
func (t Turns) EventTimers() int {
	if t == TurnsFinest {
		return 1 + len(t.events())
	}
	return 0
}
