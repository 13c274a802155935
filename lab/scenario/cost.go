package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"rota/lab/guest"
	"rota/lab/scenario/output"
)

// costCrowds are the numbers of tasks that become ready together, and of which
// each is then picked in turn.
func costCrowds() []int { return []int{2, 8, 32, 128, 512} }

// A figure is the median of costParts measurements of costTurns turns each,
// whatever the crowd: what else happens on the machine now and then (a timer of
// the kernel, the daemon's own second) then falls into one of them alone. Of crowds it is
// the least: in one of twelve measurements they fall into step otherwise, for a fifth more.
const (
	costTurns = 8192
	costParts = 3
	pipeTurns = 4 * costTurns // that figure is compared most closely
	visitTime = 500 * time.Millisecond
)

// cost counts what a turn takes. One instruction takes one nanosecond, and all
// happens on one CPU, so the figures are instructions, exact, and the same on
// every machine: docs/cost.json keeps them.
func cost() Scenario {
	return Scenario{
		Name:     "cost",
		Title:    "Cost of a turn",
		Question: "How many instructions does it take to wake a task, to switch, and to pick one of many?",
		Rows: append([]Row{
			{Name: rowKernel, Scheduler: "kernel"},
			{Name: rowRota, Scheduler: "rota"},
		}, inheritRows(costConfig)...),
		Metrics: costMetrics(),
		Bench:   true,
		Tools:   []string{"perf"},
		Loads:   []string{"barrier", "hog", "lent", "nap"},
		Turns:   guest.TurnsNone,
		Limit:   60 * time.Second,
		Run:     runCost,
	}
}

// costConfig puts the one that asks into a class, and one that waits for a lock; who answers
// and who has the lock inherits, or does not.
func costConfig(inherit string) string {
	return callerConfig("asks", "bench-switch", inherit) + "  - {match: {comm: important}, class: asks}\n"
}

// What a switch may take with inheritance, of what it takes without: where nobody is
// boosted, and where somebody is.
const (
	maxIdleInherit = 1.01
	maxBusyInherit = 1.03
)

func costMetrics() []Metric {
	inherits := func(atMost float64) []Bound {
		return []Bound{{Row: rowClasses, Against: rowAlone, AtMost: atMost}}
	}
	const alike, mixed = "a turn of one in a crowd of nice 0, meeting on one CPU", "a turn of one in a crowd of nice 0 and 5, meeting on one CPU"
	metrics := []Metric{{Name: "wake_switch_ns", Group: "perf bench sched pipe, one CPU",
		Label: "a wake-up and a switch, instructions", Better: -1, Bounds: inherits(maxIdleInherit)},
		{Name: "asked_switch_ns", Group: "rota bench switch, one CPU",
			Label: "a wake-up and a switch, instructions, between one that asks and one that answers", Better: -1, Bounds: inherits(maxBusyInherit)},
		{Name: "lent_switch_ns", Group: "a message to and fro on one CPU",
			Label: "a wake-up and a switch, instructions, of one that is boosted all the time and of who answers it", Better: -1, Bounds: inherits(maxBusyInherit)},
		{Name: "visit_ns", Group: "a hog, and a task that wakes five times in 1 ms and hardly works, on one CPU",
			Label: "what a wake-up takes from the hog, instructions", Better: -1},
	}
	for _, group := range []struct{ name, title string }{{"alike", alike}, {"mixed", mixed}} {
		for _, n := range costCrowds() {
			metrics = append(metrics, Metric{Name: fmt.Sprintf("turn_%s_%d_ns", group.name, n), Group: group.title,
				Label: fmt.Sprintf("%d tasks, instructions", n), Better: -1})
		}
		// From 2 to 512 tasks log n grows by a factor of 9.
		metrics = append(metrics, Metric{Name: "turn_" + group.name + "_growth_ratio", Group: group.title,
			Label: "512 tasks over 2", Better: -1, Bounds: []Bound{{Row: rowRota, AtMost: 2}}})
	}
	return metrics
}

func runCost(g *guest.Guest) error {
	err := emitCost(g, "wake_switch_ns", func() (float64, error) {
		text, err1 := measured(g, "1", "perf", "bench", "sched", "pipe", "-l", strconv.Itoa(pipeTurns))
		us, err2 := output.PerfPipe(text)
		// An operation is a message there and one back: two wake-ups, two switches.
		return us * 1000 / 2, errors.Join(err1, err2)
	})
	if err != nil {
		return err
	}
	if err := emitCost(g, "asked_switch_ns", func() (float64, error) { return measureAsked(g) }); err != nil {
		return err
	}
	if err := emitCost(g, "lent_switch_ns", func() (float64, error) { return measureLent(g) }); err != nil {
		return err
	}
	if err := emitCost(g, "visit_ns", func() (float64, error) { return measureVisit(g) }); err != nil {
		return err
	}
	for _, mix := range []struct {
		name string
		nice int
	}{{"alike", 0}, {"mixed", 5}} {
		crowds, turns := costCrowds(), map[int]float64{}
		if g.Row.Name == rowAlone {
			crowds = crowds[len(crowds)-1:] // what inheritance adds is the same in all
		}
		for _, n := range crowds {
			name := fmt.Sprintf("turn_%s_%d_ns", mix.name, n)
			parts, err := takeCost(func() (float64, error) { return measureTurn(g, n, mix.nice) })
			if err != nil {
				return err
			}
			turns[n] = parts[0]
			g.Metric(name, parts[0])
		}
		if least := turns[2]; least > 0 {
			g.Metric("turn_"+mix.name+"_growth_ratio", turns[512]/least)
		}
	}
	return nil
}

// takeCost takes a figure costParts times, and returns what it found, the least first.
func takeCost(measure func() (float64, error)) ([]float64, error) {
	parts := make([]float64, costParts)
	for i := range parts {
		var err error
		if parts[i], err = measure(); err != nil {
			return nil, err
		}
	}
	slices.Sort(parts)
	return parts, nil
}

// emitCost writes the median of a figure that is taken costParts times.
func emitCost(g *guest.Guest, name string, measure func() (float64, error)) error {
	parts, err := takeCost(measure)
	if err == nil {
		g.Metric(name, parts[costParts/2])
	}
	return err
}

// measureAsked returns the ns of a wake-up and a switch between two processes, one of
// which asks and waits for the answer of the other.
func measureAsked(g *guest.Guest) (float64, error) {
	out, err := g.Run(guest.Cmd{Path: "rota", Args: []string{"bench", "switch", "--json", "--cpu", "1",
		"--iterations", strconv.Itoa(costTurns), "--repeat", "1"}})
	if err != nil {
		return 0, err
	}
	return output.BenchSwitch(out.Stdout)
}

// measureLent returns the ns of a wake-up and a switch of one that an important thread waits for.
func measureLent(g *guest.Guest) (float64, error) {
	out, err := g.Run(guest.Cmd{Path: "lent", Args: []string{strconv.Itoa(costTurns)}, CPUs: "1"})
	if err != nil {
		return 0, err
	}
	round, err := output.Figure(out.Stdout, "round_ns")
	return round / 2, err
}

// measureVisit returns what a hog loses, in ns of its own work, to one wake-up of a task that
// works for some us on its CPU.
func measureVisit(g *guest.Guest) (float64, error) {
	s := newStage(g, "visit")
	defer s.stop()
	hogs, err := s.startHogs(1, guest.Cmd{CPUs: "1"})
	if err != nil {
		return 0, err
	}
	if err := s.awaitCount(hogs[0]); err != nil {
		return 0, err
	}
	alone, err := s.work(visitTime)
	if err != nil {
		return 0, err
	}
	visitor, err := s.startCounting(guest.Cmd{Path: "nap", Args: []string{"1", "200"}, CPUs: "1"}, 1)
	if err != nil {
		return 0, err
	}
	if err := s.awaitCount(visitor); err != nil {
		return 0, err
	}
	beside, err := s.work(visitTime)
	if err != nil {
		return 0, err
	}
	lost := 1 - beside[hogs[0]]/alone[hogs[0]]
	return lost * float64(visitTime.Nanoseconds()) / beside[visitor], nil
}

// measureTurn lets n threads meet on one CPU again and again, every second of
// them nice, and returns the ns of a turn: a thread is woken, waits among the
// others that were, is picked, and sleeps again. Who comes last does not sleep.
func measureTurn(g *guest.Guest, n, nice int) (float64, error) {
	rounds := costTurns / n
	out, err := g.Run(guest.Cmd{Path: "barrier", Args: []string{strconv.Itoa(n), strconv.Itoa(rounds), strconv.Itoa(nice)}, CPUs: "1"})
	if err != nil {
		return 0, err
	}
	seconds, err := output.Figure(out.Stdout, "barrier_s")
	return seconds * 1e9 / float64((n-1)*rounds), err
}
