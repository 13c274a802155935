package oracle

import (
	"cmp"
	"slices"
)

// disperse lets all ghosts go without a word, where nobody else is.
func (q *simQueue) disperse() {
	for _, t := range q.all {
		t.ghost = nil
	}
	q.all = nil
}

// only says whether nobody but a task is here, ghosts left out.
func (q *simQueue) only(t *simTask) bool {
	for _, o := range q.all {
		if o != t && o.ghost == nil {
			return false
		}
	}
	return len(q.gone) == 0
}

// due is a ghost that comes before the best; nil if there is none. Where nobody is
// eligible, all do that V has passed.
func (q *simQueue) due(v uint64, best *simTask) *simTask {
	for _, t := range q.all {
		if t.ghost != nil && int64(t.v-v) <= 0 && (best == nil || int64(t.d-best.d) < 0) {
			return t
		}
	}
	return nil
}

// release lets the ghosts go that come before who is next; it says whether it left
// one that does, to cheat.
func (s *sim) release(q *simQueue) (late bool) {
	v, _ := q.now()
	if g := q.early(v); g != nil && s.does("early") {
		s.end(q, g)
	}
	for {
		v, _ = q.now()
		best, other := q.best(v)
		g := q.due(v, best)
		if g == nil {
			return false
		}
		if other != nil && best != q.running && s.does("late") {
			return true
		}
		s.end(q, g)
	}
}

// early is a ghost that V has not passed; nil if there is none.
func (q *simQueue) early(v uint64) *simTask {
	for _, t := range q.all {
		if t.ghost != nil && int64(t.v-v) > 1000 {
			return t
		}
	}
	return nil
}

// end lets a ghost go.
func (s *sim) end(q *simQueue, g *simTask) {
	v, _ := q.now()
	s.write(q.cpu, q, g, Event{Kind: Release, NowV: v})
	g.ghost = nil
	q.remove(g)
}

// makeRoom lets all ghosts go that V has passed where there are as many as may be, or
// else the first.
func (s *sim) makeRoom(q *simQueue) {
	var ghosts []*simTask
	for _, t := range q.all {
		if t.ghost != nil {
			ghosts = append(ghosts, t)
		}
	}
	if len(ghosts) < maxGhosts || s.does("room") {
		return
	}
	v, _ := q.now()
	slices.SortStableFunc(ghosts, func(a, b *simTask) int { return cmp.Compare(int64(a.v-v), int64(b.v-v)) })
	passed := slices.DeleteFunc(slices.Clone(ghosts), func(t *simTask) bool { return int64(t.v-v) > 0 })
	if len(passed) == 0 {
		passed = ghosts[:1]
	}
	if s.does("last") {
		passed = ghosts[maxGhosts-1:]
	}
	for _, t := range passed {
		s.end(q, t)
	}
}
