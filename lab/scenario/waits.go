package scenario

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"rota/lab/guest"
	"rota/lab/scenario/output"
)

// stormWaits are the waits of one run: forty seeds make a million.
const stormWaits = 25_000

const waitsConfig = `classes:
  - {name: high, tier: priority}
  - {name: low, tier: background}
rules:
  - {match: {comm: waits-high}, class: high}
  - {match: {comm: waits-low}, class: low}
`

// waitsClasses are the classes of the names of the load's threads.
func waitsClasses() map[string]string {
	return map[string]string{"waits-high": "high", "waits-mid": "default", "waits-low": "low"}
}

// waits makes a storm of waits of all kinds, in which owners, waiters and servers die,
// and then looks for boosts that have not ended.
func waits() Scenario {
	return Scenario{
		Name:     "waits",
		Title:    "A storm of waits",
		Question: "Does every boost that has begun end, and keeps everybody his class, when waits end by answers, limits, signals and deaths?",
		Rows: []Row{
			{Name: rowKernel, Scheduler: "kernel"},
			{Name: rowClasses, Scheduler: "rota", Config: waitsConfig},
		},
		Metrics: waitsMetrics(),
		Loads:   []string{"waits"},
		Kernel:  binderKernel,
		Modules: []string{binderModule},
		Limit:   300 * time.Second,
		Run:     runWaits,
	}
}

// waitsKinds are the words of the load, and what each kind is.
func waitsKinds() []struct{ name, words string } {
	return []struct{ name, words string }{
		{"mutex", "a mutex of glibc"},
		{"pi", "a mutex with PTHREAD_PRIO_INHERIT"},
		{"shared", "a robust mutex of several processes"},
		{"pipe", "an answer through a pipe"},
		{"file", "a lock in the kernel"},
		{"binder", "an answer over binder"},
	}
}

// waitsEvents is what else the load counts.
func waitsEvents() []struct{ name, words string } {
	return []struct{ name, words string }{
		{"timeouts", "limits that passed"},
		{"signals", "answers that a signal delayed"},
		{"deaths", "owners and servers that died with what was waited for"},
		{"kills", "processes that were killed in the midst of it"},
	}
}

func waitsMetrics() []Metric {
	const (
		made   = "waits that were made"
		ends   = "and what happened"
		boosts = "boosts"
	)
	metrics := []Metric{{Name: "storm_all_waits", Group: made, Label: "all", Bounds: []Bound{{Row: rowClasses, AtLeast: stormWaits}}}}
	for _, k := range waitsKinds() {
		metrics = append(metrics, Metric{Name: "storm_" + k.name + "_waits", Group: made, Label: "for " + k.words,
			Bounds: []Bound{{Row: rowClasses, AtLeast: 1}}})
	}
	for _, e := range waitsEvents() {
		metrics = append(metrics, Metric{Name: "storm_" + e.name, Group: ends, Label: e.words,
			Bounds: []Bound{{Row: rowClasses, AtLeast: 1}}})
	}
	none := []Bound{{Row: rowClasses, AtMost: 0.5}}
	return append(metrics,
		Metric{Name: "storm_begun_boosts", Group: boosts, Label: "begun", Bounds: []Bound{{Row: rowClasses, AtLeast: 1000}}},
		Metric{Name: "storm_ended_boosts", Group: boosts, Label: "ended"},
		Metric{Name: "storm_left_boosts", Group: boosts, Label: "left", Better: -1, Bounds: none},
		Metric{Name: "storm_survivors_tasks", Group: boosts, Label: "tasks that have survived", Bounds: []Bound{{Row: rowClasses, AtLeast: 1}}},
		Metric{Name: "storm_boosted_tasks", Group: boosts, Label: "of these, still boosted, or giving a boost", Better: -1, Bounds: none},
		Metric{Name: "storm_moved_tasks", Group: boosts, Label: "of these, in another class than before", Better: -1, Bounds: none},
	)
}

func runWaits(g *guest.Guest) error {
	p, err := g.Start(guest.Cmd{Path: "waits", Args: []string{strconv.Itoa(stormWaits), strconv.FormatUint(uint64(g.Seed)%1000000, 10)}})
	if err != nil {
		return err
	}
	defer p.Kill()
	for !strings.Contains(p.Output().Stdout, "\n") {
		if !p.Running() {
			_, err := p.Wait()
			return cmp.Or(err, errors.New("waits: ended before all was quiet"))
		}
		g.Sleep(50 * time.Millisecond)
	}
	all := 0.0
	counts, err := output.Pairs(p.Output().Stdout)
	if err != nil {
		return err
	}
	for _, k := range waitsKinds() {
		all += counts[k.name]
		g.Metric("storm_"+k.name+"_waits", counts[k.name])
	}
	for _, e := range waitsEvents() {
		g.Metric("storm_"+e.name, counts[e.name])
	}
	g.Metric("storm_all_waits", all)
	if !isRota(g) {
		return nil
	}
	g.Sleep(time.Second) // the last who died has been seen
	return errors.Join(boostsEnded(g), survivorsUnchanged(g, p.Pid))
}

// boostsEnded compares the boosts that have begun with those that have ended: nobody of
// a priority class waits any more. It is an error if they differ, so that one seed in
// many is seen.
func boostsEnded(g *guest.Guest) error {
	out, err := g.Rota("status", "--json")
	if err != nil {
		return err
	}
	begun, ended, err := readBoosts(out.Stdout)
	if err != nil {
		return err
	}
	g.Metric("storm_begun_boosts", begun)
	g.Metric("storm_ended_boosts", ended)
	g.Metric("storm_left_boosts", max(begun-ended, ended-begun))
	if begun != ended {
		return fmt.Errorf("waits: %.0f boosts have begun and %.0f have ended", begun, ended)
	}
	return nil
}

// readBoosts reads from `rota status --json` how many boosts have begun and ended.
func readBoosts(text string) (begun, ended float64, err error) {
	var status struct {
		Boosts *struct{ Futex, Locks, Wakeups, Binder, Ended float64 }
	}
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		return 0, 0, fmt.Errorf("rota status --json: %w", err)
	}
	b := status.Boosts
	if b == nil {
		return 0, 0, errors.New("rota status --json: no boosts in it")
	}
	return b.Futex + b.Locks + b.Wakeups + b.Binder, b.Ended, nil
}

// survivor is what rota says of a thread that is left.
type survivor struct {
	TID         int
	Name, Class string
	Level       string
	Givers      []struct{ TID int }
	WaitsFor    []struct{ Gives bool }
}

// boosted tells whether somebody's boost, or its own, has not ended.
func (s survivor) boosted() bool {
	return s.Level != s.Class || len(s.Givers) > 0 || len(s.WaitsFor) > 0 && s.WaitsFor[0].Gives
}

// survivorsUnchanged looks at each thread of the load that is left.
func survivorsUnchanged(g *guest.Guest, chief int) error {
	pids, err := waitsProcesses("/proc", chief)
	if err != nil {
		return err
	}
	var seen, boosted, moved int
	for _, pid := range pids {
		out, err := g.Rota("explain", strconv.Itoa(pid), "--json")
		if err != nil {
			return err
		}
		threads, err := readSurvivors(out.Stdout)
		if err != nil {
			return err
		}
		for _, t := range threads {
			seen++
			if t.boosted() {
				boosted++
			}
			if t.Class != waitsClasses()[t.Name] {
				moved++
				g.Event("moved", fmt.Sprintf("task %d of process %d, %s, has class %s", t.TID, pid, t.Name, t.Class))
			}
		}
	}
	g.Metric("storm_survivors_tasks", float64(seen))
	g.Metric("storm_boosted_tasks", float64(boosted))
	g.Metric("storm_moved_tasks", float64(moved))
	if boosted+moved > 0 {
		return fmt.Errorf("waits: of %d tasks %d are still boosted and %d have another class", seen, boosted, moved)
	}
	return nil
}

// waitsProcesses are the processes below proc that have a name of the load, without the
// real-time one that steers it.
func waitsProcesses(proc string, chief int) (pids []int, err error) {
	names, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "comm"))
	for _, name := range names {
		comm, err := os.ReadFile(name)
		pid, err2 := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err == nil && err2 == nil && pid != chief && strings.HasPrefix(string(comm), "waits-") {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// readSurvivors reads what `rota explain --json` says of the threads of a process.
func readSurvivors(text string) ([]survivor, error) {
	var explanation struct{ Threads []survivor }
	if err := json.Unmarshal([]byte(text), &explanation); err != nil {
		return nil, fmt.Errorf("rota explain --json: %w", err)
	}
	for _, t := range explanation.Threads {
		if t.TID == 0 || t.Class == "" || t.Level == "" {
			return nil, fmt.Errorf("rota explain --json: no tid, class or level in %.120q", text)
		}
	}
	if len(explanation.Threads) == 0 {
		return nil, errors.New("rota explain --json: no threads in it")
	}
	return explanation.Threads, nil
}
