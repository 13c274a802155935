package guest

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

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
