package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"rota/lab/guest"
)

const faultsConfig = `classes:
  - name: urgent
    tier: priority
  - name: later
    tier: background
  - name: scarce
    tier: priority
    cap: 1%
  - name: guests
rules:
  - match: {user: "4321"}
    class: guests
  - match: {comm: "urgent-*"}
    class: urgent
  - match: {comm: "later-*"}
    class: later
  - match: {comm: "scarce-*"}
    class: scarce
`

// faults does what a machine and its operator do to a scheduler, and checks
// after each time that every task still runs and that the promised scheduler
// is in charge.
func faults() Scenario {
	return Scenario{
		Name:     "faults",
		Title:    "Faults",
		Question: "Does every task keep running, and who schedules, when the machine changes or the daemon fails? (1 = as promised)",
		Rows:     rowsWithoutFifo(faultsConfig),
		Metrics:  faultMetrics(),
		Loads:    []string{"hog", "storm", "affinity", "names", "pinned", "walk"},
		Limit:    240 * time.Second,
		Run:      runFaults,
	}
}

// fault is one thing that is done; run returns nil when all is as promised.
type fault struct {
	name, label string
	run         func(*faultRun) error
	// applies says in which rows the fault makes sense; nil means in all.
	applies func(*guest.Guest) bool
	// classesOnly: only a row with a configuration of its own can promise it.
	classesOnly bool
}

// faultRun is the state of the scenario: tasks that must all keep running.
type faultRun struct {
	*stage
	hogs []int
	// told is how many of a daemon's lines about its scheduler's end are already
	// the fault of an earlier change.
	told map[*guest.Proc]int
}

func allFaults() []fault {
	return append(machineFaults(), daemonFaults()...)
}

func faultMetrics() []Metric {
	var metrics []Metric
	for i, f := range allFaults() {
		bounds := []Bound{{Row: rowClasses, AtLeast: 1}}
		if !f.classesOnly {
			bounds = append(bounds, Bound{Row: rowRota, AtLeast: 1})
		}
		group := "the machine changes"
		if i >= len(machineFaults()) {
			group = "the daemon fails"
		}
		metrics = append(metrics, Metric{
			Name: "ok_" + f.name, Group: group, Label: f.label,
			Bounds: bounds,
		})
	}
	return metrics
}

func runFaults(g *guest.Guest) error {
	g.ExpectDetach()
	r := &faultRun{stage: newStage(g, "faults"), told: map[*guest.Proc]int{}}
	defer r.stop()
	if err := r.populate(); err != nil {
		return err
	}
	for _, f := range allFaults() {
		if f.applies != nil && !f.applies(g) {
			continue
		}
		err := f.run(r)
		if errors.Is(err, errNotHere) {
			g.Event("skip_"+f.name, err.Error())
			continue
		}
		g.Metric("ok_"+f.name, truth(err == nil))
		if err != nil {
			g.Event("fault_"+f.name, err.Error())
		}
	}
	return nil
}

// errNotHere says that this kernel has no means to do the fault.
var errNotHere = errors.New("not possible on this kernel")

// populate starts the tasks that must survive everything: one hog per CPU that
// may run anywhere, one bound to each CPU, and one of nice 19.
func (r *faultRun) populate() error {
	cmds := []guest.Cmd{{Nice: 19}}
	for cpu := range r.g.CPUs {
		cmds = append(cmds, guest.Cmd{}, guest.Cmd{CPUs: strconv.Itoa(cpu)})
	}
	for _, c := range cmds {
		slots, err := r.startHogs(1, c)
		if err != nil {
			return err
		}
		r.hogs = append(r.hogs, slots...)
	}
	return nil
}

// aliveLimit is how long a task may take to do some work after a fault: the starvation
// bound, and as much again, because a hog of nice 19 may just have had its turn before.
const aliveLimit = 2 * time.Second

// alive waits until every hog has done some work after the fault.
func (r *faultRun) alive() error {
	const step = 100 * time.Millisecond
	waiting := slices.Clone(r.hogs)
	for waited := time.Duration(0); waited < aliveLimit; waited += step {
		loops, err := r.work(step)
		if err != nil {
			return err
		}
		waiting = slices.DeleteFunc(waiting, func(slot int) bool { return loops[slot] > 0 })
		if len(waiting) == 0 {
			return nil
		}
	}
	return fmt.Errorf("hog %d: did no work for %v after the fault", waiting[0], aliveLimit)
}

// inCharge checks that the row's scheduler has the machine and never let go of it: one
// that ended and came back has failed too.
func (r *faultRun) inCharge() error {
	daemon := r.g.Scheduler()
	if daemon == nil {
		return nil
	}
	ends := linesWith(daemon, "scheduler: ended")
	if told := r.told[daemon]; len(ends) > told {
		r.told[daemon] = len(ends)
		return fmt.Errorf("the scheduler ended: %s", strings.Join(ends[told:], "; "))
	}
	if !r.becomesAttached(true, 2*time.Second) {
		return fmt.Errorf("the scheduler is no longer attached: its daemon said last: %s", lastLine(daemon))
	}
	return nil
}

// becomesAttached waits until a scheduler is attached, or until none is.
func (r *faultRun) becomesAttached(want bool, limit time.Duration) bool {
	const step = 10 * time.Millisecond
	for waited := time.Duration(0); waited <= limit; waited += step {
		if r.g.SchedulerAttached() == want {
			return true
		}
		r.g.Sleep(step)
	}
	return false
}

// survived is alive and inCharge.
func (r *faultRun) survived() error { return errors.Join(r.alive(), r.inCharge()) }
