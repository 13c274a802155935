package scenario

import (
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"rota/lab/guest"
)

// shareWindow is the time over which shares are promised, and sharePct the
// promise: how far a task may be from what it is due, in percent of the window.
const (
	shareWindow = time.Second
	sharePct    = 1
	// freePct is the same where shares are even over CPUs only because who has less changes.
	freePct = 10
)

// How a crowd is measured: windows begin at every look, so that no phase of
// the turns is left out.
const (
	crowdWarmUp = 600 * time.Millisecond
	crowdTime   = 1300 * time.Millisecond
	crowdLook   = 50 * time.Millisecond
	crowdSwap   = 2 // looks between two moves
)

// crowdCase is a number of tasks of many nice values that compete for one CPU, or
// for each of two.
type crowdCase struct {
	name, group string
	size        int  // per CPU
	level       bool // all are of nice 0
	naps        bool // every other one sleeps
	moves       bool // two CPUs with the same crowd, every other task and its twin change places
	free        int  // everybody may run on so many CPUs; 0: on one that is chosen for him
	bound       bool // but for the first, who may run on the first of them only
}

func crowdCases() []crowdCase {
	return []crowdCase{
		{name: "2", group: "2 hogs of nice -20 to 19, one CPU", size: 2},
		{name: "8", group: "8 hogs of nice -20 to 19, one CPU", size: 8},
		{name: "32", group: "32 hogs of nice -20 to 19, one CPU", size: 32},
		{name: "64", group: "64 hogs of nice -20 to 19, one CPU", size: 64},
		{name: "naps_8", group: "4 hogs, 4 that sleep, nice -20 to 19, one CPU", size: 8, naps: true},
		{name: "naps_64", group: "32 hogs, 32 that sleep, nice -20 to 19, one CPU", size: 64, naps: true},
		{name: "moves_8", group: "8 hogs of nice -20 to 19 on each of two CPUs, 4 change places", size: 8, moves: true},
		{name: "moves_32", group: "32 hogs of nice -20 to 19 on each of two CPUs, 16 change places", size: 32, moves: true},
		{name: "free", group: "3 hogs of nice 0 on two CPUs", size: 3, level: true, free: 2},
		{name: "free_bound", group: "3 hogs of nice 0 on two CPUs, one bound to one of them", size: 3, level: true, free: 2, bound: true},
		{name: "free_4", group: "5 hogs of nice 0 on four CPUs", size: 5, level: true, free: 4},
	}
}

func (c crowdCase) metric(figure string) string { return "crowd_" + c.name + "_" + figure }

// cpus is how many CPUs the crowd has.
func (c crowdCase) cpus() int {
	switch {
	case c.free > 0:
		return c.free
	case c.moves:
		return 2
	}
	return 1
}

// promise is how far a share over a second may be off, in percent of a CPU.
func (c crowdCase) promise() float64 {
	if c.free > 0 {
		return freePct
	}
	return sharePct
}

// crowds measures whether many that compete get what their weights promise.
func crowds() Scenario {
	return Scenario{
		Name:     "crowds",
		Title:    "Fair shares in a crowd",
		Question: "Does each of 2 to 64 tasks of a CPU get its share within every second, also when some sleep or move?",
		Rows:     append(rowsWithoutFifo(sharesConfig), Row{Name: rowRotaLatency, Scheduler: "rota", Config: latencyPreset}),
		Metrics:  crowdMetrics(),
		Loads:    []string{"hog", "nap"},
		Limit:    120 * time.Second,
		Run:      runCrowds,
	}
}

func crowdMetrics() []Metric {
	var metrics []Metric
	for _, c := range crowdCases() {
		worst := Metric{Name: c.metric("error_pct"), Group: c.group, Label: "greatest error of a share over 1 s", Better: -1}
		for _, row := range []string{rowRota, rowClasses, rowRotaLatency} {
			worst.Bounds = append(worst.Bounds, Bound{Row: row, AtMost: c.promise()})
		}
		metrics = append(metrics, worst, Metric{Name: c.metric("mean_pct"), Group: c.group, Label: "mean error", Better: -1})
		if c.naps {
			metrics = append(metrics, Metric{Name: c.metric("least_pct"), Group: c.group,
				Label: "least that a sleeper had of what it wanted", Better: 1})
		}
	}
	return metrics
}

func runCrowds(g *guest.Guest) error {
	for _, c := range crowdCases() {
		if err := c.measure(g); err != nil {
			return fmt.Errorf("%s: %w", c.group, err)
		}
	}
	return nil
}

func (c crowdCase) measure(g *guest.Guest) error {
	s := newStage(g, "crowd_"+c.name)
	defer s.stop()
	members := c.members(s.random)
	claims := make([]claim, len(members))
	for i := range members {
		if err := c.start(s, &members[i]); err != nil {
			return err
		}
		claims[i] = members[i].claim
	}
	s.resume()
	if _, err := c.watch(s, members, crowdWarmUp); err != nil {
		return err
	}
	looks, err := c.watch(s, members, crowdTime)
	if err != nil {
		return err
	}
	e, err := errorsOf(claims, looks, shareWindow, c.cpus())
	if err != nil {
		return err
	}
	g.Metric(c.metric("error_pct"), e.maxPct)
	g.Metric(c.metric("mean_pct"), e.meanPct)
	if c.naps {
		g.Metric(c.metric("least_pct"), e.leastPct)
	}
	g.Event(c.metric("members"), describe(members, looks, e))
	return nil
}

// start starts one member on its CPU and stops it as soon as it counts: the next
// one needs the CPU, and what it took to start is not to be seen in a window.
func (c crowdCase) start(s *stage, m *member) error {
	cmd := guest.Cmd{Path: "hog", Nice: m.nice, CPUs: strconv.Itoa(m.cpu)}
	if first := s.g.CPUs - c.free; m.bound {
		cmd.CPUs = strconv.Itoa(first)
	} else if c.free > 0 {
		cmd.CPUs = fmt.Sprintf("%d-%d", first, s.g.CPUs-1)
	}
	if m.want > 0 {
		cmd.Path = "nap"
		cmd.Args = []string{strconv.FormatInt(m.work.Microseconds(), 10), strconv.FormatInt(m.period.Microseconds(), 10)}
	}
	slot, err := s.startCounting(cmd, 1)
	if err != nil {
		return err
	}
	m.pid = s.procs[len(s.procs)-1].Pid
	if err := s.awaitCount(slot); err != nil {
		return err
	}
	if err := unix.Kill(m.pid, unix.SIGSTOP); err != nil {
		return fmt.Errorf("stop pid %d: %w", m.pid, err)
	}
	return nil
}

// awaitCount waits until the load with this slot counts.
func (s *stage) awaitCount(slot int) error {
	for range 1000 {
		// Before the first load has opened it there is no board.
		if slots, err := s.read(); err == nil && slots[slot].CPUNs > 0 {
			return nil
		}
		s.g.Sleep(time.Millisecond)
	}
	return fmt.Errorf("slot %d of %s: no count after a second", slot, s.board)
}

// watch looks at the board all the time and lets change places who moves.
func (c crowdCase) watch(s *stage, members []member, d time.Duration) ([]look, error) {
	var looks []look
	for n := 0; ; n++ {
		at := monotonic()
		slots, err := s.read()
		if err != nil {
			return nil, err
		}
		l := look{atNs: at, cpuNs: make([]uint64, len(members))}
		for i := range members {
			l.cpuNs[i] = slots[i].CPUNs
		}
		looks = append(looks, l)
		if at-looks[0].atNs > uint64(d) {
			return looks, nil
		}
		if n%crowdSwap == crowdSwap-1 {
			if err := swap(members); err != nil {
				return nil, err
			}
		}
		s.g.Sleep(crowdLook)
	}
}

// describe says what everybody had in all the time, for who looks for a cause.
func describe(members []member, looks []look, e shareErrors) string {
	first, last := looks[0], looks[len(looks)-1]
	text := fmt.Sprintf("%d windows, worst %d of nice %d; nice:CPU ms of each:", e.windows, e.worst, members[e.worst].nice)
	for i, m := range members {
		text += fmt.Sprintf(" %d:%.1f", m.nice, float64(last.cpuNs[i]-first.cpuNs[i])/1e6)
	}
	return text
}
