package scenario

import (
	"errors"
	"math"
	"strconv"
	"time"

	"rota/lab/guest"
	"rota/lab/scenario/output"
)

// looksPerSecond are those at the work of tasks of different weights.
const looksPerSecond = 10

// weighed is a task of a program and of this nice value.
type weighed struct {
	program
	nice int
}

// startWeighed starts tasks as the row wants them. The caller calls end, also to learn what
// went wrong meanwhile.
func startWeighed(s *stage, machine *slowMachine, tasks []weighed) (end func() error, err error) {
	row := frequencyRowOf(s.g.Row.Name)
	for _, t := range tasks {
		args := []string{strconv.Itoa(t.bound), speedFile, strconv.Itoa(row.seen)}
		if _, err := s.startCounting(guest.Cmd{Path: "/bin/" + t.name, Args: args, Nice: t.nice, CPUs: "1"}, 1); err != nil {
			return nil, err
		}
	}
	if !row.tsf {
		return func() error { return nil }, nil
	}
	epochs, err := startEpochs(s, machine, tasks)
	if err != nil {
		return nil, err
	}
	return epochs.stop, nil
}

// weighedWork is how far tasks of different weights are, at most, from their share of the
// work of a second, in percent: guarantee G2 where the CPU is slow. Seconds begin at every look.
func weighedWork(g *guest.Guest, machine *slowMachine) (worst float64, err error) {
	s := newStage(g, "weights")
	defer s.stop()
	var tasks []weighed
	var weights []float64
	for _, nice := range []int{-5, 0, 5, 10} {
		for _, p := range programPairs()[2] {
			tasks = append(tasks, weighed{p, nice})
			weights = append(weights, niceWeight(nice))
		}
	}
	end, err := startWeighed(s, machine, tasks)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, end()) }()
	if err := machine.set(1200); err != nil {
		return 0, err
	}
	g.Sleep(2 * frequencySettle)
	var looks [][]output.Slot
	for range 3 * looksPerSecond {
		slots, err := s.read()
		if err != nil {
			return 0, err
		}
		looks = append(looks, slots[:s.slots])
		g.Sleep(time.Second / looksPerSecond)
	}
	for i, before := range looks[:len(looks)-looksPerSecond] {
		worst = max(worst, workError(weights, before, looks[i+looksPerSecond]))
	}
	return worst, nil
}

// workError is how far one is from its share of the work between two looks, in percent of it.
func workError(weights []float64, before, after []output.Slot) (worst float64) {
	var work, weight float64
	for i := range weights {
		work += float64(after[i].Loops - before[i].Loops)
		weight += weights[i]
	}
	for i := range weights {
		worst = max(worst, 100*math.Abs(float64(after[i].Loops-before[i].Loops)/work-weights[i]/weight))
	}
	return worst
}
