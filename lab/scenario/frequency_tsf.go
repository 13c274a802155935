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
	// epoch is how long the weights of the last one hold: 4 ms for each task.
	epoch = 2 * frequencyTasks * 4 * time.Millisecond
	// weightOne is cpu.weight of a task that loses nothing.
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
	group guest.Cgroup
	last  output.Slot
}

// startEpochs begins with all tasks of a stage alike. They have the stage's first slots.
func startEpochs(s *stage, machine *slowMachine) (*epochs, error) {
	e := &epochs{s, machine, nil, make(chan struct{}), make(chan error, 1)}
	for i, p := range s.procs {
		group, err := s.g.Cgroup(fmt.Sprintf("epochs/%d", i))
		if err != nil {
			return nil, err
		}
		if err := errors.Join(group.SetWeight(weightOne), group.Add(p.Pid)); err != nil {
			return nil, err
		}
		e.tasks = append(e.tasks, epochTask{group: group})
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
		if err := t.group.SetWeight(epochWeight(float64(waits)/float64(all), speed)); err != nil {
			return err
		}
	}
	return nil
}

// epochWeight is the weight of who waited for memory this part of its cycles on a CPU of this
// speed, both 0 to 1: 1/P, where P = phi + (1 - phi) * f / fmax is eq. 5 of the paper.
func epochWeight(phi, speed float64) int {
	return int(math.Round(weightOne / (phi + (1-phi)*speed)))
}

// stop ends it, and says what went wrong.
func (e *epochs) stop() error {
	close(e.quit)
	return <-e.ended
}
