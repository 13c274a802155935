package output

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

const (
	maxWaiters   = 1 << 16 // tasks that one trace may name
	maxTraceLine = 64 << 10
)

var (
	traceEvent   = regexp.MustCompile(` (\d{1,12})\.(\d{6}): (sched_\w+): (.*)$`)
	traceEntries = regexp.MustCompile(`^# entries-in-buffer/entries-written: (\d+)/(\d+) `)
	traceSwitch  = regexp.MustCompile(`^prev_comm=(.*) prev_pid=(\d{1,10}) prev_prio=-?\d+ prev_state=(\S+) ==> next_comm=(.*) next_pid=(\d{1,10}) next_prio=-?\d+$`)
	traceWakeup  = regexp.MustCompile(`^comm=(.*) pid=(\d{1,10}) prio=-?\d+ target_cpu=\d+$`)
)

// waiter is a task of a trace.
type waiter struct {
	running bool
	since   int64 // us: runnable since then; 0: it is not, or nobody knows
}

// waits follows the tasks of a trace.
type waits struct {
	wanted func(comm string) bool
	tasks  map[string]*waiter // by pid
	us     Samples
}

// Waits reads for how many us each time a task was runnable before it ran, from the
// text of the kernel's trace of sched_switch, sched_wakeup and sched_wakeup_new;
// wanted says by its name whether a task counts. A trace that has lost events is an
// error.
func Waits(trace io.Reader, wanted func(comm string) bool) (Samples, error) {
	w := waits{wanted: wanted, tasks: map[string]*waiter{}}
	lines := bufio.NewScanner(trace)
	lines.Buffer(nil, maxTraceLine)
	for lines.Scan() {
		if err := w.take(lines.Text()); err != nil {
			return nil, err
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	if len(w.us) == 0 {
		return nil, fmt.Errorf("trace: nobody waited in it, among %d tasks", len(w.tasks))
	}
	return w.us, nil
}

func (w *waits) take(line string) error {
	if strings.HasPrefix(line, "#") {
		if m := traceEntries.FindStringSubmatch(line); m != nil && m[1] != m[2] {
			return fmt.Errorf("trace: holds %s of %s events: its buffer is too small", m[1], m[2])
		}
		return nil
	}
	if strings.HasPrefix(line, "CPU:") && strings.Contains(line, "LOST") {
		return fmt.Errorf("trace: %q", clip(line))
	}
	m := traceEvent.FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	us, err := strconv.ParseInt(m[1]+m[2], 10, 64)
	if err != nil {
		return fmt.Errorf("trace: %q: %w", clip(line), err)
	}
	if len(w.tasks) > maxWaiters {
		return fmt.Errorf("trace: more than %d tasks", maxWaiters)
	}
	return w.event(us, m[3], m[4], line)
}

func (w *waits) event(us int64, event, rest, line string) error {
	switch event {
	case "sched_switch":
		m := traceSwitch.FindStringSubmatch(rest)
		if m == nil {
			return fmt.Errorf("trace: %q: must name two tasks", clip(line))
		}
		w.stops(us, m[1], m[2], strings.HasPrefix(m[3], "R"))
		w.runs(us, m[4], m[5])
	case "sched_wakeup", "sched_wakeup_new":
		m := traceWakeup.FindStringSubmatch(rest)
		if m == nil {
			return fmt.Errorf("trace: %q: must name a task", clip(line))
		}
		// Who is awakened before it has left its CPU waits for none.
		if t := w.task(m[1], m[2]); t != nil && !t.running && t.since == 0 {
			t.since = us
		}
	}
	return nil
}

// task finds a task, nil when it isn't wanted.
func (w *waits) task(comm, pid string) *waiter {
	if !w.wanted(comm) {
		return nil
	}
	t := w.tasks[pid]
	if t == nil {
		t = &waiter{}
		w.tasks[pid] = t
	}
	return t
}

func (w *waits) stops(us int64, comm, pid string, runnable bool) {
	t := w.task(comm, pid)
	if t == nil {
		return
	}
	t.running, t.since = false, 0
	if runnable {
		t.since = us
	}
}

func (w *waits) runs(us int64, comm, pid string) {
	t := w.task(comm, pid)
	if t == nil {
		return
	}
	if !t.running && t.since > 0 && us >= t.since {
		w.us = append(w.us, float64(us-t.since))
	}
	t.running, t.since = true, 0
}
