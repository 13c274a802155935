package guest

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Turns is how finely the virtual CPUs of an instruction-counted machine take turns.
type Turns string

// What a machine's time is cut into: finer turns come nearer to CPUs that run at once, and
// cost the host more.
const (
	TurnsFine   Turns = "fine"   // rounds of at most 122 us; "" is the same
	TurnsFinest Turns = "finest" // of at most 41 us
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

// finestTurns are the events of TurnsFinest in a period of 12210 ticks of the HPET, 10 ns: three pairs, whose
// gaps have rounds start at CPU 0 twice and once at CPU 2 (interleave_amd64.go).
var finestTurns = []uint64{0, 34, 4070, 4104, 8140, 8143}

// EventTimers is how many timers the board must have for them; 0 = those it has anyway.
func (t Turns) EventTimers() int {
	if t == TurnsFinest {
		return 1 + len(finestTurns)
	}
	return 0
}

// PlanPath is where the guest finds what it is to do.
const PlanPath = "/etc/rota-lab.json"

// Plan is the host's order to the guest. It holds nothing of the host's
// clock, paths or process numbers: the same plan is the same bytes.
type Plan struct {
	Scenario string        `json:"scenario"`
	Row      Row           `json:"row"`
	Seed     int64         `json:"seed"`
	CPUs     int           `json:"cpus"`
	Limit    time.Duration `json:"limit"`             // virtual time from boot; 0 = none
	Modules  []string      `json:"modules,omitempty"` // files with parameters, in loading order
	Command  string        `json:"command,omitempty"` // for Scenario "exec": a line for the shell
	Turns    Turns         `json:"turns,omitempty"`
	Links    bool          `json:"links,omitempty"` // busybox is there without links to its applets
}

// Encode returns the contents of the plan file.
func (p Plan) Encode() ([]byte, error) { return json.Marshal(p) }

func readPlan() (Plan, error) {
	var p Plan
	b, err := os.ReadFile(PlanPath)
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		return p, fmt.Errorf("read the plan: %w", err)
	}
	return p, nil
}
