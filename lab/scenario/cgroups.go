package scenario

import (
	"fmt"
	"time"

	"rota/lab/guest"
	"rota/lab/scenario/output"
)

// Words of the groups of figures.
const (
	groupsByWeight = "cgroups, CPU time of one CPU"
	groupsByLimit  = "cpu.max, CPU time against the limit"
)

// groupsSettle is how long groups run before they are measured: averages of
// their activity must have settled.
const groupsSettle = 500 * time.Millisecond

// cgroups measures whether cgroups get the shares of cpu.weight, level by
// level, and no more than cpu.max.
func cgroups() Scenario {
	atMost := func(limit float64) []Bound {
		return []Bound{{Row: rowRota, AtMost: limit}, {Row: rowClasses, AtMost: limit}}
	}
	return Scenario{
		Name:     "cgroups",
		Title:    "Weights and limits of cgroups",
		Question: "Do whole cgroups get the shares of cpu.weight, level by level, and no more than cpu.max?",
		Rows:     rowsWithoutFifo(sharesConfig),
		Metrics: []Metric{
			{Name: "group_error_pct", Group: groupsByWeight, Label: "3 hogs against 1, both of weight 100: error", Better: -1, Bounds: atMost(2)},
			{Name: "group_weight_error_pct", Group: groupsByWeight, Label: "3 hogs of weight 100 against 1 of 300: error", Better: -1, Bounds: atMost(2)},
			{Name: "group_nested_error_pct", Group: groupsByWeight, Label: "three levels, 100:300 in each: greatest error", Better: -1, Bounds: atMost(2)},
			{Name: "group_spread_error_pct", Group: "cgroups, 4 CPUs", Label: "2 hogs of weight 100 against 8 of 100: error", Better: -1, Bounds: atMost(3)},
			{Name: "limit_one_error_pct", Group: groupsByLimit, Label: "10 % of a CPU, 1 hog beside a free one: error", Better: -1, Bounds: atMost(5)},
			{Name: "limit_four_error_pct", Group: groupsByLimit, Label: "50 % of a CPU, 4 hogs: error", Better: -1, Bounds: atMost(5)},
			{Name: "limit_wide_error_pct", Group: groupsByLimit, Label: "250 %, 8 hogs: error", Better: -1, Bounds: atMost(5)},
			{Name: "limit_nested_error_pct", Group: groupsByLimit, Label: "30 % inside of 50 %: error", Better: -1, Bounds: atMost(5)},
			{Name: "limit_inner_pct", Group: groupsByLimit, Label: "30 % inside of 50 %: the inner one, %", Better: 0, Bounds: atMost(31.5)},
			{Name: "limit_inside_ratio", Group: groupsByLimit, Label: "weights 300:100 inside of 10 %: ratio", Better: 0},
			{Name: "limit_longest_wait_ms", Group: groupsByLimit, Label: "16 hogs in 2 %: longest wait", Better: 0},
		},
		Loads: []string{"hog", "gap"},
		Limit: 120 * time.Second,
		Run:   runCgroups,
	}
}

func runCgroups(g *guest.Guest) error {
	for _, measure := range []func(*guest.Guest) error{
		groupCrowds, groupWeights, groupLevels, groupSpread,
		limitAlone("limit_one", 0.1, tenant{hogs: 1, cmd: onCPU1}, tenant{path: "free", hogs: 1, cmd: onCPU1}),
		limitAlone("limit_four", 0.5, tenant{hogs: 4}),
		limitAlone("limit_wide", 2.5, tenant{hogs: 8}),
		limitNested, limitInside, limitWait,
	} {
		if err := measure(g); err != nil {
			return err
		}
	}
	return nil
}

// A tenant is a cgroup and what runs in it.
type tenant struct {
	path   string
	weight int           // cpu.weight, 0: the default
	limit  time.Duration // cpu.max of 100 ms, 0: none
	hogs   int
	cmd    guest.Cmd
}

// groupTimes runs the tenants for d and returns the CPU time of each in ms.
func groupTimes(g *guest.Guest, name string, d time.Duration, tenants ...tenant) (output.Samples, error) {
	s := newStage(g, name)
	defer s.stop()
	var owners []int
	for i, t := range tenants {
		group, err := g.Cgroup(name + "/" + t.path)
		if err != nil {
			return nil, err
		}
		if err := t.set(group); err != nil {
			return nil, err
		}
		cmd := t.cmd
		cmd.Cgroup = group.Path
		if _, err := s.startHogs(t.hogs, cmd); err != nil {
			return nil, err
		}
		for range t.hogs {
			owners = append(owners, i)
		}
	}
	g.Sleep(groupsSettle)
	done, err := s.progress(d)
	if err != nil {
		return nil, err
	}
	times := make(output.Samples, len(tenants))
	for slot, owner := range owners {
		times[owner] += float64(done[slot].CPUNs) / 1e6
	}
	g.Event(name, fmt.Sprintf("CPU ms of each cgroup: %.0f", times))
	return times, nil
}

// set gives the group the weight and the limit of its tenant.
func (t tenant) set(group guest.Cgroup) error {
	if t.weight > 0 {
		if err := group.SetWeight(t.weight); err != nil {
			return err
		}
	}
	if t.limit > 0 {
		return group.SetMax(t.limit)
	}
	return nil
}

// shareError reports the greatest error of a share, in percent of that share.
func shareError(g *guest.Guest, metric string, times output.Samples, due ...float64) error {
	var all, dueOfAll, worst float64
	for i, t := range times {
		all += t
		dueOfAll += due[i]
	}
	if all <= 0 {
		return fmt.Errorf("%s: nobody had any CPU time", metric)
	}
	for i, t := range times {
		worst = max(worst, errorPct(t/all, due[i]/dueOfAll))
	}
	g.Metric(metric, worst)
	return nil
}

var onCPU1 = guest.Cmd{CPUs: "1"}

func groupCrowds(g *guest.Guest) error {
	times, err := groupTimes(g, "crowds", 2*time.Second,
		tenant{path: "many", hogs: 3, cmd: onCPU1}, tenant{path: "one", hogs: 1, cmd: onCPU1})
	if err != nil {
		return err
	}
	return shareError(g, "group_error_pct", times, 1, 1)
}

func groupWeights(g *guest.Guest) error {
	times, err := groupTimes(g, "weights", 2*time.Second,
		tenant{path: "many", hogs: 3, cmd: onCPU1}, tenant{path: "one", weight: 300, hogs: 1, cmd: onCPU1})
	if err != nil {
		return err
	}
	return shareError(g, "group_weight_error_pct", times, 1, 3)
}

// groupLevels has a heavy and a light half in each of three levels; the heavy
// halves hold the next level.
func groupLevels(g *guest.Guest) error {
	times, err := groupTimes(g, "levels", 4*time.Second,
		tenant{path: "heavy", weight: 300},
		tenant{path: "light", weight: 100, hogs: 2, cmd: onCPU1},
		tenant{path: "heavy/heavy", weight: 300},
		tenant{path: "heavy/light", weight: 100, hogs: 3, cmd: onCPU1},
		tenant{path: "heavy/heavy/heavy", weight: 300, hogs: 1, cmd: onCPU1},
		tenant{path: "heavy/heavy/light", weight: 100, hogs: 2, cmd: onCPU1})
	if err != nil {
		return err
	}
	return shareError(g, "group_nested_error_pct", output.Samples{times[1], times[3], times[4], times[5]}, 16, 12, 27, 9)
}

func groupSpread(g *guest.Guest) error {
	times, err := groupTimes(g, "spread", 4*time.Second,
		tenant{path: "few", hogs: 2}, tenant{path: "many", hogs: 8})
	if err != nil {
		return err
	}
	return shareError(g, "group_spread_error_pct", times, 1, 1)
}
