package oracle

import "fmt"

const (
	// trailBefore and trailAfter are how many events that concern the first fault are
	// shown around it, and trailReach how far they are looked for.
	trailBefore = 40
	trailAfter  = 10
	trailReach  = 1 << 17
)

// trail is what happened to the queue of e around it, and to its task and another one
// elsewhere, 0: none: where the first fault came from.
func (r *replay) trail(e *Event, other uint32) (lines []string) {
	concerns := func(o *Event) bool {
		return o.CPU == e.CPU && o.Tier == e.Tier || o.TID != 0 && (o.TID == e.TID || o.TID == other)
	}
	first := r.at
	for n := 0; first > 0 && r.at-first < trailReach && n < trailBefore; {
		if first--; concerns(r.events[first]) {
			n++
		}
	}
	for i, after := first, 0; i < len(r.events) && i-r.at < trailReach && after < trailAfter; i++ {
		o := r.events[i]
		if !concerns(o) {
			continue
		}
		if i > r.at {
			after++
		}
		lines = append(lines, o.String())
	}
	return lines
}

// String is the event as it was written, on one line; fields of 0 are left out.
func (e *Event) String() string {
	kind := fmt.Sprintf("kind %d", e.Kind)
	if int(e.Kind) < len(kindNames) && kindNames[e.Kind] != "" {
		kind = kindNames[e.Kind]
	}
	text := fmt.Sprintf("%d.%09d CPU %d tier %d, by CPU %d: %s", e.Time/1e9, e.Time%1e9, e.CPU, e.Tier, e.Writer, kind)
	for _, field := range []struct {
		name  string
		value uint64
	}{
		{"how", uint64(e.How)}, {"task", uint64(e.TID)}, {"weight", uint64(e.Weight)}, {"request", uint64(e.Request)},
		{"v", e.V}, {"deadline", e.Deadline}, {"V", e.NowV}, {"span", e.Span},
	} {
		if field.value != 0 {
			text += fmt.Sprintf(" %s %d", field.name, field.value)
		}
	}
	return text
}
