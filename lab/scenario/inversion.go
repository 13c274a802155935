package scenario

import (
	"fmt"
	"strconv"
	"time"

	"rota/lab/guest"
	"rota/lab/scenario/output"
)

// inversionRounds are the waits of each case.
const inversionRounds = 3

// dispatchMs is what a wait may last beyond the CPU time of the work that was
// waited for, for each task of the chain: its way to a CPU, and the giver's back.
const dispatchMs = 0.5

// inversion measures whether an important task waits for more than the work that
// it waits for.
func inversion() Scenario {
	return Scenario{
		Name:     "inversion",
		Title:    "Waiting for unimportant tasks",
		Question: "How long does an important task wait for an unimportant one that has its lock, or its answer, when the machine is busy?",
		Rows: append([]Row{
			{Name: rowKernel, Scheduler: "kernel"},
		}, inheritRows(inversionConfig)...),
		Metrics: inversionMetrics(),
		Loads:   []string{"inversion"},
		Kernel:  binderKernel,
		Modules: []string{binderModule},
		Limit:   180 * time.Second,
		Run:     runInversion,
	}
}

func inversionConfig(inherit string) string {
	return `classes:
  - {name: high, tier: priority, inherit: ` + inherit + `}
  - {name: low, tier: background}
rules:
  - {match: {comm: inv-high}, class: high}
  - {match: {comm: inv-low}, class: low}
`
}

// inversionWaiters is how many wait at once in the state "three".
const inversionWaiters = 3

// inversionCase is what is waited for, what the last of so many tasks does when the
// wait begins, and how many hogs there are; the words are those of the load.
type inversionCase struct {
	kind, state string
	chain, hogs int
}

func inversionCases() (cases []inversionCase) {
	for _, kind := range []string{"mutex", "pi", "pipe"} {
		for _, chain := range []int{1, 4} {
			for _, hogs := range []int{4, 64} {
				cases = append(cases, inversionCase{kind, "queued", chain, hogs})
			}
		}
	}
	// Of all others what differs, once or twice: the test that runs this has a minute.
	return append(cases,
		inversionCase{"mutex", "running", 1, 4},
		inversionCase{"mutex", "asleep", 1, 64},
		inversionCase{"pi", "asleep", 4, 4},
		inversionCase{"mutex", "three", 1, 64},
		inversionCase{"pi", "three", 1, 4},
		inversionCase{"mutex", "behind", 1, 64},
		inversionCase{"pi", "behind", 1, 4},
		inversionCase{"mutex", "killed", 1, 4},
		inversionCase{"pi", "killed", 1, 64},
		inversionCase{"pipe", "killed", 1, 4},
		inversionCase{"binder", "queued", 1, 4},
		inversionCase{"binder", "queued", 2, 64},
	)
}

func (c inversionCase) metric(figure string) string {
	kind := c.kind
	if c.state != "queued" {
		kind += "_" + c.state
	}
	return fmt.Sprintf("inversion_%s_%d_of_%d_%s_ms", kind, c.chain, c.hogs, figure)
}

// bound is what the wait may last beyond the work: the dispatch of each task of the
// chain and of the one that waits, and of each other that has the lock before it.
func (c inversionCase) bound() float64 {
	tasks := c.chain + 1
	switch c.state {
	case "three":
		tasks += inversionWaiters - 1
	case "behind":
		tasks++
	}
	return dispatchMs * float64(tasks)
}

// label says what the case is, for the table.
func (c inversionCase) label() string {
	words := map[string]string{
		"queued":  "",
		"running": ", the owner runs",
		"asleep":  ", the owner sleeps",
		"three":   ", three wait at once",
		"behind":  ", an unimportant one is before it in line",
		"killed":  ", the other side is killed",
	}
	return fmt.Sprintf("a chain of %d beside %d hogs%s, ", c.chain, c.hogs, words[c.state])
}

func inversionMetrics() (metrics []Metric) {
	words := map[string]string{"mutex": "a mutex", "pi": "a mutex with PTHREAD_PRIO_INHERIT", "pipe": "an answer through a pipe", "binder": "an answer over binder"}
	for _, c := range inversionCases() {
		group := "wait for " + words[c.kind]
		metrics = append(metrics,
			Metric{Name: c.metric("max"), Group: group, Label: c.label() + "longest", Better: -1},
			Metric{Name: c.metric("excess"), Group: group, Label: c.label() + "beyond the work", Better: -1,
				Bounds: []Bound{{Row: rowClasses, AtMost: c.bound()}}})
	}
	return metrics
}

func runInversion(g *guest.Guest) error {
	for _, c := range inversionCases() {
		out, err := g.Run(guest.Cmd{Path: "inversion", Args: []string{
			c.kind, c.state, strconv.Itoa(c.chain), strconv.Itoa(c.hogs), strconv.Itoa(inversionRounds)}})
		if err != nil {
			return err
		}
		longest, excess, err := inversionWaits(out.Stdout)
		if err != nil {
			return err
		}
		g.Metric(c.metric("max"), longest)
		g.Metric(c.metric("excess"), excess)
	}
	return nil
}

// inversionWaits reads what the load inversion prints, in ms.
func inversionWaits(text string) (longest, excess float64, err error) {
	pairs, err := output.Pairs(text)
	if err != nil {
		return 0, 0, err
	}
	longest, ok := pairs["wait_max_ms"]
	excess, also := pairs["excess_max_ms"]
	if !ok || !also {
		return 0, 0, fmt.Errorf("inversion: no wait_max_ms or excess_max_ms in %q", text)
	}
	return longest, excess, nil
}
