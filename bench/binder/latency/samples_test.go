package latency

import (
	"testing"
	"time"

	"rota/bench/binder"
	"rota/bench/level"
)

// TestAdd: what a call is kept as, and how long it took to the server: from the beginning of
// its ioctl on.
func TestAdd(t *testing.T) {
	highest := level.Level{Priority: level.MaxPriority}
	for name, test := range map[string]struct {
		server    level.Level
		cpu       uint32
		exchanges int
		want      byte
	}{
		"as the caller":  {highest, 2, 1, atMaxPriority},
		"ordinary":       {level.Level{}, 2, 1, otherPriority},
		"another CPU":    {highest, 3, 1, atMaxPriority | otherCPU},
		"two ioctls":     {highest, 2, 2, atMaxPriority | moreIoctls},
		"all of it":      {level.Level{Priority: 1}, 0, 3, otherPriority | otherCPU | moreIoctls},
		"nice is no bit": {level.Level{Priority: level.MaxPriority, Nice: 5}, 2, 1, atMaxPriority},
	} {
		var s Series
		called := &binder.Thread{Began: 10 * time.Microsecond, Span: 7 * time.Microsecond, Exchanges: test.exchanges}
		s.add(called, reply{received: 12_500, level: test.server, cpu: test.cpu}, highest, 2)
		if len(s.Seen) != 1 || s.Seen[0] != test.want || s.Spans[0] != 7000 || s.Deliveries[0] != 2500 {
			t.Errorf("%s: %+v, want bits %b, 7000 and 2500 ns", name, s, test.want)
		}
	}
}
