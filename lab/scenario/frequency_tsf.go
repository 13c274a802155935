package scenario

import (
	"errors"
	"fmt"
	"math"
	"time"

	"rota/lab/guest"
	"rota/lab/scenario/output"
)

const (
	// epoch is how long the weights of the last one hold: 4 ms for each task of a pair.
	epoch = 2 * frequencyTasks * 4 * time.Millisecond
	// weightOne is cpu.weight of a task of nice 0 that loses nothing.
	weightOne = 1000
)

// epochs gives each task the weight that the paper does: w * TSF, TSF = 1/P, from what was
// counted of the task in the last epoch and from the frequency at its end. A cgroup of its own
// carries it, because nice values are 25 % apart.
type epochs struct {
	stage   *stage
	machine *slowMachine
	tasks   []epochTask
	quit    chan struct{}
	ended   chan error
}

// epochTask is a task, and what its counters were at the end of the last epoch.
type epochTask struct {
	group  guest.Cgroup
	weight float64 // at full speed
	last   output.Slot
}

// startEpochs begins with the tasks of a stage as they are at full speed. They are those that it
// has started, and have its first slots.
func startEpochs(s *stage, machine *slowMachine, tasks []weighed) (*epochs, error) {
	e := &epochs{s, machine, nil, make(chan struct{}), make(chan error, 1)}
	for i, p := range s.procs {
		group, err := s.g.Cgroup(fmt.Sprintf("epochs/%d", i))
		if err != nil {
			return nil, err
		}
		weight := weightOne * niceWeight(tasks[i].nice) / niceWeight(0)
		if err := errors.Join(group.SetWeight(int(math.Round(weight))), group.Add(p.Pid)); err != nil {
			return nil, err
		}
		e.tasks = append(e.tasks, epochTask{group: group, weight: weight})
	}
	go e.run()
	return e, nil
}

func (e *epochs) run() {
	var err error
	for err == nil {
		select {
		case <-e.quit:
			e.ended <- nil
			return
		case <-time.After(epoch):
			err = e.turn()
		}
	}
	e.ended <- err
}

// turn ends an epoch. Who did not run in it keeps its weight.
func (e *epochs) turn() error {
	speed, err := e.machine.speed()
	if err != nil {
		return err
	}
	slots, err := e.stage.read()
	if err != nil {
		return err
	}
	for i := range e.tasks {
		t, now := &e.tasks[i], slots[i]
		waits, all := now.Waits-t.last.Waits, now.Units-t.last.Units
		t.last = now
		if all == 0 {
			continue
		}
		if err := t.group.SetWeight(epochWeight(t.weight, float64(waits)/float64(all), speed)); err != nil {
			return err
		}
	}
	return nil
}

// epochWeight is the weight of who waited for memory this part of its cycles on a CPU of this
// speed, both 0 to 1: weight/P, where P = phi + (1 - phi) * f / fmax is eq. 5 of the paper.
func epochWeight(weight, phi, speed float64) int {
	return int(math.Round(weight / (phi + (1-phi)*speed)))
}

// stop ends it, and says what went wrong.
func (e *epochs) stop() error {
	close(e.quit)
	return <-e.ended
}
