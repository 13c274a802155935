package scenario

import (
	"encoding/json"
	"fmt"
	"syscall"
	"time"

	"rota/lab/guest"
)

// upfFunction is the function that sends a packet into the tunnel.
const upfFunction = "gtp_dev_xmit"

func upfWhereMetrics() []Metric {
	const group = "while rota where " + upfFunction + " looks on, on the idle machine"
	return []Metric{
		{Name: "where_found", Group: group, Label: "within a second it has found who sends the packets (1 = yes)", Bounds: []Bound{{Row: rowIdle, AtLeast: 1}}},
		{Name: "where_asks_pct", Group: group, Label: "of the requests without it", Better: 1, Bounds: []Bound{{Row: rowIdle, AtLeast: 99}}},
	}
}

// where counts requests with and without somebody who looks who executes the function that
// each of them executes.
func (r *upfRun) where(tunnel upfTunnel) error {
	s := newStage(r.g, "where")
	defer s.stop()
	if _, err := s.startCounting(guest.Cmd{Path: "ask", Args: []string{upfServer, "7"}, Netns: tunnel.netns}, 1); err != nil {
		return err
	}
	r.g.Sleep(100 * time.Millisecond)
	before, err := s.work(upfAsks)
	if err != nil {
		return err
	}
	found, err := r.g.Run(guest.Cmd{Path: "rota", Args: []string{"where", upfFunction, "--module", "gtp", "--for", "1s", "--json"}})
	if err != nil {
		return err
	}
	watch, err := r.g.Start(guest.Cmd{Path: "rota", Args: []string{"where", upfFunction, "--module", "gtp", "--for", "1h", "--json"}})
	if err != nil {
		return err
	}
	defer watch.Kill()
	r.g.Sleep(4 * time.Second) // it must have read the kernel's types by then
	during, err := s.work(upfAsks)
	if err != nil {
		return err
	}
	if before[0] == 0 {
		return fmt.Errorf("nobody answers")
	}
	if !watch.Running() {
		return fmt.Errorf("rota where %s: ended while it was to look on", upfFunction)
	}
	if err := watch.Signal(syscall.SIGINT); err != nil {
		return err
	}
	saw, err := watch.Wait()
	if err != nil {
		return err
	}
	if count, err := whereCount(saw.Stdout); err != nil || count < during[0] {
		return fmt.Errorf("rota where %s: saw %v calls in %v requests: %w", upfFunction, count, during[0], err)
	}
	yes, err := whereFound(found.Stdout, "ask")
	r.g.Metric("where_found", truth(yes))
	r.g.Metric("where_asks_pct", 100*during[0]/before[0])
	return err
}

// whereCount is how many calls rota where has counted.
func whereCount(answer string) (float64, error) {
	var seen struct{ Count float64 }
	err := json.Unmarshal([]byte(answer), &seen)
	return seen.Count, err
}

// whereFound says whether the answer of rota where names a task as the most frequent of
// those who executed the function.
func whereFound(answer, comm string) (bool, error) {
	var seen struct {
		Executors []struct{ Context, Comm string }
	}
	if err := json.Unmarshal([]byte(answer), &seen); err != nil {
		return false, fmt.Errorf("rota where: %w in %q", err, answer)
	}
	for _, e := range seen.Executors {
		if e.Context == "task" {
			return e.Comm == comm, nil
		}
	}
	return false, nil
}
