package where

import (
	"cmp"
	"slices"
	"strings"
)

// The keys of a match, as a rule of the configuration has them.
const (
	KeyCgroup = "cgroup"
	KeyExe    = "exe"
	KeyComm   = "comm"
)

// rareShare is the share of the calls in tasks below which a match is left out.
const rareShare = 0.01

// Match is something that tasks have in common by which a rule can find them again.
type Match struct {
	Key, Value string // the value is no pattern yet
	Count      uint64 // calls
	Tasks      []Task
}

// Matches says how the tasks that were seen can be found again: by their cgroup, or
// else by their program; kernel threads by their name. Never by a number, which
// means somebody else tomorrow. Tasks of process self are left out, as are those that
// hardly ever called; nameless are the calls of tasks that nothing can find again.
func (r Report) Matches(self uint32) (matches []Match, nameless uint64) {
	var total uint64
	for _, e := range r.Executors {
		if e.Context != InTask || e.Task.TGID == self {
			continue
		}
		total += e.Count
		key, value := e.Task.handle()
		if key == "" {
			nameless += e.Count
			continue
		}
		i := slices.IndexFunc(matches, func(m Match) bool { return m.Key == key && m.Value == value })
		if i < 0 {
			i = len(matches)
			matches = append(matches, Match{Key: key, Value: value})
		}
		matches[i].Count += e.Count
		matches[i].Tasks = append(matches[i].Tasks, e.Task)
	}
	matches = slices.DeleteFunc(inner(matches), func(m Match) bool { return float64(m.Count) < rareShare*float64(total) })
	slices.SortStableFunc(matches, func(a, b Match) int { return cmp.Compare(b.Count, a.Count) })
	return matches, nameless
}

// handle is what a task can be found by, empty when there is nothing.
func (t Task) handle() (key, value string) {
	switch {
	case t.TID == 0: // an idle CPU
	case t.KernelThread && t.Comm != "":
		return KeyComm, t.Comm
	case t.Cgroup != "" && t.Cgroup != "/":
		return KeyCgroup, t.Cgroup
	case t.Exe != "":
		return KeyExe, t.Exe
	}
	return "", ""
}

// inner puts cgroups into those above them, which a rule on these matches as well.
func inner(matches []Match) (kept []Match) {
	slices.SortStableFunc(matches, func(a, b Match) int { return len(a.Value) - len(b.Value) })
	for _, m := range matches {
		above := slices.IndexFunc(kept, func(o Match) bool {
			return m.Key == KeyCgroup && o.Key == KeyCgroup && strings.HasPrefix(m.Value, o.Value+"/")
		})
		if above < 0 {
			kept = append(kept, m)
			continue
		}
		kept[above].Count += m.Count
		kept[above].Tasks = append(kept[above].Tasks, m.Tasks...)
	}
	return kept
}
