package scenario

import (
	"time"

	"rota/lab/guest"
)

// limitFor is how long limits are measured: 20 periods.
const limitFor = 2 * time.Second

// limitError reports how far a CPU time in ms lies from the limit, a share of one
// CPU, in percent.
func limitError(g *guest.Guest, metric string, timeMs, share float64) {
	g.Metric(metric, errorPct(timeMs/(1000*limitFor.Seconds()), share))
}

// limitAlone measures one limited cgroup, with others beside it or none.
func limitAlone(name string, share float64, limited tenant, others ...tenant) func(*guest.Guest) error {
	limited.path, limited.limit = "limited", time.Duration(share*float64(100*time.Millisecond))
	return func(g *guest.Guest) error {
		times, err := groupTimes(g, name, limitFor, append([]tenant{limited}, others...)...)
		if err != nil {
			return err
		}
		limitError(g, name+"_error_pct", times[0], share)
		return nil
	}
}

func limitNested(g *guest.Guest) error {
	times, err := groupTimes(g, "limit_nested", limitFor,
		tenant{path: "outer", limit: 50 * time.Millisecond},
		tenant{path: "outer/inner", limit: 30 * time.Millisecond, hogs: 2},
		tenant{path: "outer/other", hogs: 2})
	if err != nil {
		return err
	}
	limitError(g, "limit_nested_error_pct", times[1]+times[2], 0.5)
	g.Metric("limit_inner_pct", 100*times[1]/(1000*limitFor.Seconds()))
	return nil
}

func limitInside(g *guest.Guest) error {
	times, err := groupTimes(g, "limit_inside", limitFor,
		tenant{path: "limited", limit: 10 * time.Millisecond},
		tenant{path: "limited/heavy", weight: 300, hogs: 1, cmd: onCPU1},
		tenant{path: "limited/light", weight: 100, hogs: 1, cmd: onCPU1},
		tenant{path: "free", hogs: 1, cmd: onCPU1})
	if err != nil {
		return err
	}
	ratio, err := ratioOf("limit_inside", times[1], times[2])
	if err != nil {
		return err
	}
	g.Metric("limit_inside_ratio", ratio)
	return nil
}

// limitWait is about those who have the least: 16 hogs that share 2 ms in each
// period.
func limitWait(g *guest.Guest) error {
	const hogs = 16
	s := newStage(g, "limit_wait")
	defer s.stop()
	group, err := g.Cgroup("limit_wait/limited")
	if err != nil {
		return err
	}
	slots, err := s.startHogs(hogs, guest.Cmd{Path: "gap", Cgroup: group.Path})
	if err != nil {
		return err
	}
	// Not before: starting takes time of the group too.
	if err := group.SetMax(2 * time.Millisecond); err != nil {
		return err
	}
	g.Sleep(4 * time.Second)
	longest, err := s.longestWait(slots...)
	if err != nil {
		return err
	}
	g.Metric("limit_longest_wait_ms", longest)
	return nil
}
