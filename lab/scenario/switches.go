package scenario

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"rota/lab/guest"
	"rota/lab/scenario/output"
)

// switchCount counts what a load's tasks and the machine do in the windows
// between begin and end: all switches, those to which the tasks were forced,
// and rota's wake-ups that preempted. The kernel counts the first two itself,
// in /proc/stat and in each task's status, so nothing has to be traced. A nil
// count counts nothing.
type switchCount struct {
	g    *guest.Guest
	comm string // of the load's tasks
	sum  switches
	from switches
	ran  time.Duration
}

type switches struct{ all, forced, preempting float64 }

func (a switches) add(b switches, sign float64) switches {
	return switches{a.all + sign*b.all, a.forced + sign*b.forced, a.preempting + sign*b.preempting}
}

// begin and end read counters while the load is paused, so that reading them
// disturbs nothing; ran is how long it was not.
func (c *switchCount) begin() (err error) {
	if c != nil {
		c.from, err = c.read()
	}
	return err
}

func (c *switchCount) end(ran time.Duration) error {
	if c == nil {
		return nil
	}
	now, err := c.read()
	c.sum = c.sum.add(now, 1).add(c.from, -1)
	c.ran += ran
	return err
}

// report reports how many there were in a second.
func (c *switchCount) report() {
	seconds := c.ran.Seconds()
	c.g.Metric("switches_hz", c.sum.all/seconds)
	c.g.Metric("forced_hz", c.sum.forced/seconds)
	if isRota(c.g) {
		c.g.Metric("preempting_hz", c.sum.preempting/seconds)
	}
}

func (c *switchCount) read() (now switches, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return now, err
	}
	if now.all, err = output.Switches(string(text)); err != nil {
		return now, err
	}
	files, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		return now, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		comm, forced, err := output.Status(string(text))
		if err != nil {
			return now, fmt.Errorf("%s: %w", file, err)
		}
		if comm == c.comm {
			now.forced += forced
		}
	}
	if isRota(c.g) {
		now.preempting, err = rotaCount(c.g, "preemptions")
	}
	return now, err
}

// rotaCount is a counter of `rota status`, of all CPUs.
func rotaCount(g *guest.Guest, counter string) (float64, error) {
	sums, err := rotaCounts(g, counter)
	return sums[counter], err
}

// rotaCounts are several of them, by name.
func rotaCounts(g *guest.Guest, counters ...string) (map[string]float64, error) {
	out, err := g.Rota("status", "--json")
	if err != nil {
		return nil, err
	}
	sums := map[string]float64{}
	for _, name := range counters {
		if sums[name], err = sumOfCPUs([]byte(out.Stdout), name); err != nil {
			return nil, err
		}
	}
	return sums, nil
}

func sumOfCPUs(status []byte, counter string) (float64, error) {
	var s struct {
		CPUs []map[string]any `json:"cpus"`
	}
	if err := json.Unmarshal(status, &s); err != nil {
		return 0, fmt.Errorf("rota status --json: %w", err)
	}
	sum := 0.0
	for _, cpu := range s.CPUs {
		n, ok := cpu[counter].(float64)
		if !ok {
			return 0, fmt.Errorf("rota status --json: a CPU without %s", counter)
		}
		sum += n
	}
	if len(s.CPUs) == 0 {
		return 0, fmt.Errorf("rota status --json: no CPUs in it")
	}
	return sum, nil
}
