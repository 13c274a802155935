package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"rota/lab/guest"
	"rota/lab/scenario/output"
)

// rowRota700 is rota with a slice that is shorter than a tick.
const rowRota700 = "rota-700us"

// rowRotaLazy is rota where whom a task wakes does not end a turn that has just begun.
const rowRotaLazy = "rota-lazy"

// sliceExact is how far a mean turn may be from the slice, as a share of it,
// where rota ends it by a timer.
const sliceExact = 0.05

// turns measures whether they have the length that was asked for, and whether
// asking changes a task's share.
func turns() Scenario {
	return Scenario{
		Name:     "slices",
		Title:    "Turns and slices",
		Question: "Do turns have the length that was asked for, and does everybody keep his share whatever he asks for?",
		Rows: []Row{
			{Name: rowKernel, Scheduler: "kernel"},
			{Name: rowRota, Scheduler: "rota"},
			{Name: rowRota700, Scheduler: "rota", Config: "scheduler: {slice: 700us}\n"},
			{Name: rowRotaLazy, Scheduler: "rota", Config: "scheduler: {fair: {lazyPreemption: true}}\n"},
		},
		Metrics: sliceMetrics(),
		Loads:   []string{"bell", "turns"},
		Turns:   guest.TurnsNone,
		Limit:   60 * time.Second,
		Run:     runSlices,
	}
}

// kernelSlice is that of the kernel, and of rota, on a machine of four CPUs.
const kernelSlice = 2100 * time.Microsecond

// sliceCase is a crowd of always runnable tasks on one CPU, and the slice that
// each has asked for; 0: none.
type sliceCase struct {
	name, group string
	slices      []time.Duration
	bounds      map[time.Duration][]Bound // of mean turns, in us
	nice        int                       // of the last one, whose turns are measured then, and no shares; of all others 0
}

func sliceCases() []sliceCase {
	const us, ms = time.Microsecond, time.Millisecond
	exact := func(slice time.Duration, rows ...string) []Bound {
		var bounds []Bound
		for _, row := range rows {
			length := float64(slice) / float64(us)
			bounds = append(bounds, Bound{Row: row, AtLeast: length * (1 - sliceExact), AtMost: length * (1 + sliceExact)})
		}
		return bounds
	}
	return []sliceCase{
		{name: "default", group: "two that ask for nothing", slices: []time.Duration{0, 0},
			bounds: map[time.Duration][]Bound{0: exact(700*us, rowRota700)}},
		{name: "light", group: "nice 5 beside nice 0, neither asks for anything", slices: []time.Duration{0, 0}, nice: 5,
			bounds: map[time.Duration][]Bound{0: append(exact(kernelSlice, rowRota), exact(700*us, rowRota700)...)}},
		{name: "short", group: "two that ask for 100 us", slices: []time.Duration{100 * us, 100 * us},
			bounds: map[time.Duration][]Bound{100 * us: exact(100*us, rowRota, rowRota700)}},
		{name: "pair", group: "100 us beside 100 ms", slices: []time.Duration{100 * us, 100 * ms}},
		{name: "many", group: "twelve from 100 us to 100 ms", slices: []time.Duration{100 * us, 200 * us, 400 * us, 700 * us,
			1 * ms, 2 * ms, 4 * ms, 7 * ms, 10 * ms, 20 * ms, 50 * ms, 100 * ms},
			// The shortest may be picked twice in a row, which is one turn to a load.
			bounds: map[time.Duration][]Bound{200 * us: exact(200*us, rowRota, rowRota700), 400 * us: exact(400*us, rowRota, rowRota700),
				700 * us: exact(700*us, rowRota, rowRota700), ms: exact(ms, rowRota, rowRota700)}},
	}
}

// distinct returns the slices of a case, each once, in order.
func (c sliceCase) distinct() []time.Duration {
	var list []time.Duration
	for i, slice := range c.slices {
		if i == 0 || slice != c.slices[i-1] {
			list = append(list, slice)
		}
	}
	return list
}

// metric names a figure of those who asked for a slice.
func (c sliceCase) metric(slice time.Duration, figure string) string {
	name := "turns_" + c.name
	if len(c.distinct()) > 1 {
		name += "_" + sliceName(slice)
	}
	return name + "_" + figure
}

// sliceName is a slice as the configuration writes it.
func sliceName(slice time.Duration) string { return strings.Replace(slice.String(), "µ", "u", 1) }

func sliceMetrics() []Metric {
	var metrics []Metric
	for _, c := range sliceCases() {
		for _, slice := range c.distinct() {
			label := "mean turn"
			if len(c.distinct()) > 1 {
				label = "asked for " + sliceName(slice) + ": mean turn"
			}
			if c.nice != 0 {
				label = "mean turn of the lighter"
			}
			metrics = append(metrics, Metric{Name: c.metric(slice, "mean_us"), Group: c.group + ", one CPU", Label: label, Bounds: c.bounds[slice]})
		}
		if c.nice != 0 {
			continue
		}
		metrics = append(metrics,
			Metric{Name: "turns_" + c.name + "_share_error_pct", Group: c.group + ", one CPU", Label: "greatest error of a share", Better: -1},
			Metric{Name: "turns_" + c.name + "_lag_ms", Group: c.group + ", one CPU", Label: "greatest lag", Better: -1})
	}
	return append(metrics, wokenMetrics()...)
}

// Who is woken by what runs there has the CPU at once, or with lazyPreemption when that one's
// turn has lasted 2 ms, and after those who were woken before (docs/decisions/0020).
const (
	wokenTasks   = 3
	wokenRounds  = 50
	meanWoken    = 150  // us: each round of 50 in which they wait for a turn adds 42
	longestWoken = 2500 // us
)

func wokenMetrics() []Metric {
	const group = "three that hardly work, woken one by one by one that works on for 8 ms, one CPU"
	return []Metric{
		{Name: "woken_mean_us", Group: group, Label: "they wait, mean", Better: -1, Bounds: []Bound{{Row: rowRota, AtMost: meanWoken}}},
		{Name: "woken_max_us", Group: group, Label: "they wait, longest", Better: -1, Bounds: []Bound{{Row: rowRotaLazy, AtMost: longestWoken}}},
	}
}

func runSlices(g *guest.Guest) error {
	if g.Row.Name == rowRotaLazy {
		return measureWoken(g) // of all others this switch says nothing
	}
	for _, c := range sliceCases() {
		if err := takeTurns(g, c); err != nil {
			return fmt.Errorf("%s: %w", c.group, err)
		}
	}
	return measureWoken(g)
}

func measureWoken(g *guest.Guest) error {
	return measureWaits(g, "woken", guest.Cmd{Path: "bell", Args: []string{strconv.Itoa(wokenTasks), strconv.Itoa(wokenRounds)}, CPUs: "1"})
}

// Each case runs for 20 turns of its longest slice, and long enough for some hundreds of
// the kernel's turns.
const (
	turnsOfLongest = 20
	leastTurnsTime = time.Second
)

func (c sliceCase) time() time.Duration {
	return max(leastTurnsTime, turnsOfLongest*slices.Max(c.slices))
}

func takeTurns(g *guest.Guest, c sliceCase) error {
	s := newStage(g, "turns_"+c.name)
	defer s.stop()
	members := strconv.Itoa(len(c.slices))
	for i, slice := range c.slices {
		cmd := guest.Cmd{Path: "turns", Args: []string{members, strconv.Itoa(i)}, CPUs: "1", Slice: slice}
		if i == len(c.slices)-1 {
			cmd.Nice = c.nice
		}
		if _, err := s.startCounting(cmd, output.TurnsSlots); err != nil {
			return err
		}
	}
	g.Sleep(c.time())
	data, err := s.boardBytes()
	if err != nil {
		return err
	}
	turns, err := output.ReadTurns(data, len(c.slices))
	if err != nil {
		return err
	}
	for i, slice := range c.distinct() {
		of := turns[i]
		if c.nice != 0 {
			of = turns[len(turns)-1]
		} else if len(c.distinct()) == 1 {
			of = output.JoinTurns(turns)
		}
		g.Metric(c.metric(slice, "mean_us"), of.MeanUs())
		g.Histogram(c.metric(slice, "us"), turnBuckets(of))
	}
	if c.nice != 0 {
		return nil
	}
	words := ""
	for i, of := range turns {
		words += fmt.Sprintf(" %s:%d/%.0f", sliceName(c.slices[i]), of.Count, of.CPUNs/1e6)
	}
	g.Event("turns_"+c.name, "slice:turns/CPU ms of each:"+words)
	g.Metric("turns_"+c.name+"_share_error_pct", output.ShareErrorPct(turns))
	g.Metric("turns_"+c.name+"_lag_ms", output.JoinTurns(turns).LagNs/1e6)
	return nil
}

// turnBuckets leaves out what nobody fell into, and is in us.
func turnBuckets(t output.Turns) []guest.Bucket {
	var list []guest.Bucket
	for _, b := range t.Buckets {
		if b.Count > 0 {
			list = append(list, guest.Bucket{Low: b.LowNs / 1000, High: b.HighNs / 1000, Count: b.Count})
		}
	}
	return list
}
