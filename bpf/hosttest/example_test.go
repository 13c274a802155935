package hosttest

import (
	"math/big"
	"testing"
)

// A client asks for the CPU again and again: of two that are eligible the one
// with the earlier deadline gets it.
type client struct {
	v, deadline, request *big.Rat
}

func (c *client) run(virtual *big.Rat) {
	c.v = new(big.Rat).Add(c.v, virtual)
	if c.v.Cmp(c.deadline) >= 0 {
		c.deadline = new(big.Rat).Add(c.v, c.request)
	}
}

// pick is the client that runs next at this V; the second wins a tie.
func pick(now *big.Rat, clients []*client) int {
	best := -1
	for i, c := range clients {
		eligible := c.v.Cmp(now) <= 0
		if eligible && (best < 0 || c.deadline.Cmp(clients[best].deadline) <= 0) {
			best = i
		}
	}
	return best
}

// The example of the paper that EEVDF comes from (Stoica and Abdel-Wahab
// 1995): weights 2 and 2, requests of 2 and 1 quanta; the first client comes
// at 0, the second at 1. The values follow from the paper's equations 5, 7
// and 8.
func TestWorkedExample(t *testing.T) {
	const quantumNs, w = 1000, 2
	unit := new(big.Rat).Mul(virtual(quantumNs, w), big.NewRat(w, 1)) // of the paper's virtual time
	steps := []struct {
		now  *big.Rat // V before the quantum
		runs int
	}{
		{big.NewRat(0, 1), 0},
		{big.NewRat(1, 2), 1},
		{big.NewRat(3, 4), 0},
		{big.NewRat(1, 1), 1},
		{big.NewRat(5, 4), 0},
		{big.NewRat(3, 2), 1},
		{big.NewRat(7, 4), 0},
		{big.NewRat(2, 1), 1},
	}
	commands := []command{{"start", 0, 0}, {"place", 0, w}, {"join", w, 0}}
	at := []int{2} // the answer that shows V before each step
	for i, step := range steps {
		commands = append(commands, command{"run", uint64(step.runs), quantumNs})
		if i == 0 {
			commands = append(commands, command{"place", 0, w}, command{"join", w, 0})
		}
		at = append(at, len(commands)-1)
	}
	answers := build(t).run(t, commands)
	clients := []*client{{v: new(big.Rat), deadline: big.NewRat(1, 1), request: big.NewRat(1, 1)}}
	for i, step := range steps {
		now := weight(answers[at[i]].now)
		now.Quo(now, unit)
		if i == 1 {
			clients = append(clients, &client{v: now, deadline: new(big.Rat).Add(now, big.NewRat(1, 2)), request: big.NewRat(1, 2)})
		}
		if now.Cmp(step.now) != 0 {
			t.Errorf("at %d: V is %s, want %s", i, now.RatString(), step.now.RatString())
		}
		if got := pick(now, clients); got != step.runs {
			t.Errorf("at %d: client %d runs, want %d", i, got+1, step.runs+1)
		}
		clients[step.runs].run(big.NewRat(1, 2))
	}
}
