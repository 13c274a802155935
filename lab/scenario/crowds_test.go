package scenario

import (
	"math"
	"math/rand"
	"testing"
	"time"
)

func TestCrowdMembers(t *testing.T) {
	for _, c := range crowdCases() {
		for seed := range int64(20) {
			list := c.members(rand.New(rand.NewSource(seed)))
			if want := c.size * c.cpusOfMembers(); len(list) != want || want > 64 {
				t.Fatalf("%s: %d members, want %d, and a board has room for 64", c.name, len(list), want)
			}
			lightest, heaviest := list[0].nice, list[len(list)-1].nice
			if !c.level && (lightest < 19-40/c.size || heaviest > -21+40/c.size+1 || lightest > 19 || heaviest < -20) {
				t.Errorf("%s: from nice %d to %d: must spread over -20..19", c.name, lightest, heaviest)
			}
			for i, m := range list {
				if i > 0 && m.nice > list[i-1].nice {
					t.Errorf("%s: nice %d after %d: must begin with the lightest", c.name, m.nice, list[i-1].nice)
				}
			}
		}
	}
}

// cpusOfMembers is on how many CPUs members are counted.
func (c crowdCase) cpusOfMembers() int {
	if c.moves {
		return 2
	}
	return 1
}

// TestCrowdMoves holds that both CPUs have the same crowd before and after a
// move, which is what makes the dues of a task that moves known.
func TestCrowdMoves(t *testing.T) {
	moving := 0
	for _, c := range crowdCases() {
		if !c.moves {
			continue
		}
		list := c.members(rand.New(rand.NewSource(1)))
		for range 2 {
			var on [3][]int
			for i := range list {
				m := &list[i]
				on[m.cpu] = append(on[m.cpu], m.nice)
				if m.moves {
					m.cpu = otherCPU(m.cpu)
					moving++
				}
			}
			if len(on[1]) != c.size || len(on[2]) != c.size {
				t.Fatalf("%s: %d and %d members, want %d each", c.name, len(on[1]), len(on[2]), c.size)
			}
			for i := range on[1] {
				if on[1][i] != on[2][i] {
					t.Errorf("%s: nice %d here and %d there", c.name, on[1][i], on[2][i])
				}
			}
		}
	}
	if moving == 0 {
		t.Error("nobody moves")
	}
}

// TestDoze holds that sleepers want half of their share, the work of a wake-up
// is worth one, and hogs are left.
func TestDoze(t *testing.T) {
	for _, c := range crowdCases() {
		if !c.naps {
			continue
		}
		for seed := range int64(20) {
			list := c.members(rand.New(rand.NewSource(seed)))
			weights, sleepers := 0.0, 0
			for _, m := range list {
				weights += m.weight
			}
			for _, m := range list {
				if m.want == 0 {
					continue
				}
				sleepers++
				if half := m.weight / weights / 2; math.Abs(m.want/half-1) > 0.02 {
					t.Errorf("%s: nice %d wants %v of the CPU, half of its share is %v", c.name, m.nice, m.want, half)
				}
				if m.work < 99*time.Microsecond || m.work > time.Second || m.period < napPeriod || m.period > 100*time.Second {
					t.Errorf("%s: nice %d wants %v every %v: the load refuses that, or it is too little", c.name, m.nice, m.work, m.period)
				}
			}
			if sleepers != c.size/2 {
				t.Errorf("%s: %d of %d sleep, want half", c.name, sleepers, c.size)
			}
		}
	}
}
