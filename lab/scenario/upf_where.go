package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"time"

	"rota/lab/guest"
)

// upfFunction is the function that sends a packet into the tunnel: for each request through
// the module's tunnel it is called twice, through the gateway's once.
const upfFunction = "gtp_dev_xmit"

// upfWhereSpan is how long requests are counted to see what a look costs: in a second they
// vary by half a percent.
const upfWhereSpan = 2 * time.Second

func upfWhereMetrics() []Metric {
	const group = "while rota where " + upfFunction + " looks on, on the idle machine"
	return []Metric{
		{Name: "where_found", Group: group, Label: "within a second it has found who sends the packets (1 = yes)", Bounds: []Bound{{Row: rowIdle, AtLeast: 1}}},
		{Name: "where_module_asks_pct", Group: group, Label: "of the requests without it, two calls each", Better: 1},
		{Name: "where_gateway_asks_pct", Group: group, Label: "of the requests without it, one call each", Better: 1, Bounds: []Bound{{Row: rowIdle, AtLeast: 99}}},
	}
}

// where counts requests with and without somebody who looks who executes the function that
// each of them executes.
func (r *upfRun) where() error {
	before, err := r.whereAsks()
	if err != nil {
		return err
	}
	if err := r.whereFinds(upfTunnels()[0]); err != nil {
		return err
	}
	watch, err := r.g.Start(guest.Cmd{Path: "rota", Args: []string{"where", upfFunction, "--module", "gtp", "--for", "1h", "--json"}})
	if err != nil {
		return err
	}
	defer watch.Kill()
	r.g.Sleep(5 * time.Second) // by then it has read the kernel's types, and has looked once
	during, err := r.whereAsks()
	if err != nil {
		return err
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
	after, err := r.whereAsks()
	if err != nil {
		return err
	}
	calls := 2*during["module"] + during["gateway"]
	if count, err := whereCount(saw.Stdout); err != nil || count < calls {
		return fmt.Errorf("rota where %s: saw %v of %v calls: %w", upfFunction, count, calls, err)
	}
	for name, asks := range during {
		r.g.Metric("where_"+name+"_asks_pct", 100*asks/((before[name]+after[name])/2))
	}
	return nil
}

// whereAsks counts requests through each tunnel.
func (r *upfRun) whereAsks() (map[string]float64, error) {
	asks := map[string]float64{}
	for _, tunnel := range upfTunnels() {
		s := newStage(r.g, "where_"+tunnel.name)
		var answers []float64
		err := r.startAsking(s, tunnel, "")
		if err == nil {
			answers, err = s.work(upfWhereSpan)
		}
		s.stop()
		if err == nil && answers[0] == 0 {
			err = errors.New("nobody answers")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", tunnel.words, err)
		}
		asks[tunnel.name] = answers[0]
	}
	return asks, nil
}

// whereFinds holds that a second is enough to find who sends the packets.
func (r *upfRun) whereFinds(tunnel upfTunnel) error {
	s := newStage(r.g, "where_found")
	defer s.stop()
	if err := r.startAsking(s, tunnel, ""); err != nil {
		return err
	}
	found, err := r.g.Run(guest.Cmd{Path: "rota", Args: []string{"where", upfFunction, "--module", "gtp", "--for", "1s", "--json"}})
	if err != nil {
		return err
	}
	yes, err := whereFound(found.Stdout, "ask")
	r.g.Metric("where_found", truth(yes))
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
