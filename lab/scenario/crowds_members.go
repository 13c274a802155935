package scenario

import (
	"fmt"
	"math/rand"
	"time"

	"golang.org/x/sys/unix"
)

// What those who sleep want: half of their share, in at least napWork so that
// the cost of waking is a small part of it.
const (
	napPart   = 0.5
	napWork   = 100 * time.Microsecond
	napPeriod = 50 * time.Millisecond
)

// member is one task of a crowd and what it is due.
type member struct {
	claim
	nice, cpu    int
	work, period time.Duration // of those who sleep
	moves        bool
	bound        bool // of those who may choose their CPU: may not
	pid          int
}

// members draws a crowd: one nice value out of each of size equal parts of
// -20..19, the lightest first.
func (c crowdCase) members(random *rand.Rand) []member {
	var list []member
	for i := range c.size {
		nice := 0
		if !c.level {
			nice = 19 - (40*i+random.Intn(40))/c.size
		}
		m := member{claim: claim{weight: niceWeight(nice)}, nice: nice, cpu: 1, moves: c.moves && i%2 == 1, bound: c.bound && i == 0}
		list = append(list, m)
		if c.moves {
			m.cpu = 2
			list = append(list, m)
		}
	}
	if c.naps {
		doze(list)
	}
	return list
}

// doze makes sleepers of every other member, from the heaviest on.
func doze(list []member) {
	weights := 0.0
	for _, m := range list {
		weights += m.weight
	}
	for i := len(list) - 1; i >= 0; i -= 2 {
		m := &list[i]
		part := napPart * m.weight / weights
		m.period = max(napPeriod, time.Duration(float64(napWork)/part)).Round(time.Microsecond)
		m.work = time.Duration(part * float64(m.period)).Round(time.Microsecond)
		m.want = float64(m.work) / float64(m.period)
	}
}

// swap sends who moves to the other CPU, each and then its twin, which has the
// same weight: both CPUs always have the same crowd.
func swap(members []member) error {
	for i := range members {
		m := &members[i]
		if !m.moves {
			continue
		}
		var set unix.CPUSet
		m.cpu = otherCPU(m.cpu)
		set.Set(m.cpu)
		if err := unix.SchedSetaffinity(m.pid, &set); err != nil {
			return fmt.Errorf("move pid %d to CPU %d: %w", m.pid, m.cpu, err)
		}
	}
	return nil
}

// otherCPU is where a task on CPU 1 or 2 moves to.
func otherCPU(cpu int) int { return 3 - cpu }
