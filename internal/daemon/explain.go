package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strconv"

	"rota/internal/api"
	"rota/internal/class"
	"rota/internal/sched"
)

// maxChain is how far a chain of waits is followed, as the scheduler does.
const maxChain = 8

// Explain says of a thread, or of all threads of a process, why each runs as it does.
func (d *Daemon) Explain(ctx context.Context, pid int) (api.Explanation, error) {
	d.explaining.Lock() // one at a time: each looks at all tasks
	defer d.explaining.Unlock()
	s := d.current()
	if s == nil {
		return api.Explanation{}, notAttached()
	}
	d.mu.Lock()
	path := d.force.path
	d.mu.Unlock()
	e := explainer{s: s, plan: s.plan(), path: path, tasks: map[uint32]sched.Task{}, waiters: map[uint32][]uint32{}}
	tids, err := e.scan(ctx, uint32(pid))
	switch {
	case errors.Is(err, fs.ErrClosed):
		return api.Explanation{}, notAttached()
	case err != nil:
		return api.Explanation{}, unexplained(err)
	}
	out := api.Explanation{PID: pid, Threads: []api.Thread{}}
	for _, tid := range tids {
		if err := ctx.Err(); err != nil {
			return api.Explanation{}, unexplained(err) // not some of them as if they were all
		}
		if t, known := e.tasks[tid]; known {
			out.Threads = append(out.Threads, e.thread(tid, t))
		}
	}
	if len(out.Threads) == 0 {
		return out, &api.Error{Code: http.StatusNotFound, Fault: fmt.Sprintf("task %d: no such task", pid), Fix: "look for it with: ps -eLo pid,tid,comm"}
	}
	return out, nil
}

func unexplained(err error) *api.Error {
	return &api.Error{Code: http.StatusServiceUnavailable, Fault: "not looked at all tasks: " + err.Error(), Fix: "try later"}
}

func notAttached() *api.Error {
	return &api.Error{Code: http.StatusServiceUnavailable, Fault: "the scheduler is not attached", Fix: "see: rota status"}
}

// explainer looks at all tasks once: who waits for whom is known only to those who wait.
type explainer struct {
	s       *session
	plan    *plan
	path    string // of the configuration
	tasks   map[uint32]sched.Task
	waiters map[uint32][]uint32 // those who wait for a task and give it their level
}

// scan looks at every task, and returns the threads that pid means.
func (e *explainer) scan(ctx context.Context, pid uint32) (tids []uint32, err error) {
	threads, err := e.s.tasks.proc.everyThread()
	if err != nil {
		return nil, err
	}
	for p, tid := range threads {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if p == pid {
			tids = append(tids, tid)
		}
		t, err := e.s.explain(tid)
		switch {
		case err == nil:
			e.tasks[tid] = t
			if t.Waits.Gives {
				e.waiters[t.Waits.TID] = append(e.waiters[t.Waits.TID], tid)
			}
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	if len(tids) == 0 {
		tids = []uint32{pid}
	}
	slices.Sort(tids)
	return tids, nil
}

func (e *explainer) thread(tid uint32, t sched.Task) api.Thread {
	own, givers := e.class(t.Class), []api.Giver{}
	if own.Tier != sched.Priority { // who has that level already is given none
		givers = e.givers(tid, nil)
	}
	return api.Thread{
		TID: int(tid), Name: e.name(tid), Class: own.Name, Rule: e.rule(tid, t.Class), Tier: own.Tier.String(),
		Level: e.class(t.Level).Name, State: state(t), CPU: t.CPU, Weight: t.Weight, SliceMicros: t.Slice.Microseconds(), LagMicros: t.Lag.Microseconds(),
		ReadyMicros: t.Ready.Microseconds(), Boosted: t.Level != t.Class, Spent: t.Spent, BoostedMicros: t.Boosted.Microseconds(),
		Givers: givers, WaitsFor: e.waitsFor(t), Calls: api.Calls(t.Calls),
	}
}

func state(t sched.Task) string {
	switch {
	case t.RealTime:
		return "real-time, not rota's"
	case t.Running:
		return "runs"
	case t.Ready > 0:
		return "waits for a CPU"
	}
	return "sleeps"
}

// class is the class with this index; a slot may have been given up meanwhile.
func (e *explainer) class(index int) sched.Class {
	if index < 0 || index >= len(e.plan.slots) {
		return sched.Class{Name: freeSlot, Tier: sched.Fair}
	}
	return e.plan.slots[index].class
}

// name is a task's own choice, or empty when it has ended.
func (e *explainer) name(tid uint32) string {
	name, err := e.s.tasks.proc.comm(tid)
	if err != nil {
		return ""
	}
	return name
}

// rule is where the rule stands that gives a task this class.
func (e *explainer) rule(tid uint32, index int) string {
	w, err := e.s.tasks.gather(tid)
	if err != nil {
		return ""
	}
	given, rule := e.plan.rules.Classify(w)
	if rule == class.NoRule || given != index {
		return ""
	}
	return e.path + ":" + strconv.Itoa(e.plan.config.Rules[rule].Line)
}

func (e *explainer) link(w sched.Wait) api.Link {
	return api.Link{TID: int(w.TID), Name: e.name(w.TID), Reason: w.Reason, Gives: w.Gives, AgeMicros: w.For.Microseconds()}
}

// waitsFor follows the waits of a task from one to the next.
func (e *explainer) waitsFor(t sched.Task) []api.Link {
	chain := []api.Link{}
	for range maxChain {
		if t.Waits.TID == 0 {
			break
		}
		chain = append(chain, e.link(t.Waits))
		t = e.tasks[t.Waits.TID]
	}
	return chain
}

// givers are those from whom a boost comes to a task by way of below, which begins
// with the one that the task waits for.
func (e *explainer) givers(tid uint32, below []api.Link) []api.Giver {
	found := []api.Giver{}
	if len(below) >= maxChain {
		return found
	}
	for _, above := range slices.Sorted(slices.Values(e.waiters[tid])) {
		t := e.tasks[above]
		chain := append([]api.Link{e.link(t.Waits)}, below...)
		if own := e.class(t.Class); own.Tier == sched.Priority {
			found = append(found, api.Giver{TID: int(above), Name: e.name(above), Class: own.Name, Chain: chain})
			continue
		}
		found = append(found, e.givers(above, chain)...)
	}
	return found
}

// explain asks the scheduler, unless it is gone.
func (s *session) explain(tid uint32) (sched.Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return sched.Task{}, fs.ErrClosed
	}
	return s.scheduler.Explain(tid)
}

// gather is workload for who does not hold looking.
func (t *tasks) gather(tid uint32) (class.Workload, error) {
	t.looking.Lock()
	defer t.looking.Unlock()
	return t.workload(tid)
}
