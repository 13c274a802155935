package sched

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/cilium/ebpf"
)

// Counters are counters of the processor, one of each kind per CPU: descriptors of
// perf events that count for the whole CPU, by its number.
type Counters struct {
	// Waits counts cycles in which the CPU waited for memory; with Latency, accesses that
	// take so long each. Empty: that is not counted.
	Waits map[int]int
	// Cycles counts all cycles: frequencies are taken from it. Empty: they are not
	// counted, and SetSpeeds says them; without Latency waits are not either.
	Cycles  map[int]int
	Latency time.Duration // 0..MaxLatency
	// FullKHz is how many cycles each CPU has in a millisecond when it is as fast as
	// SetSpeeds' FullSpeed, by its number, less than 2^32; of other CPUs the frequency is
	// not counted.
	FullKHz map[int]uint64
}

// MaxLatency is how long one access may take.
const MaxLatency = time.Millisecond

func (c *Counters) knobs() (k rotaCounters, err error) {
	if c.Latency < 0 || c.Latency > MaxLatency {
		return k, fmt.Errorf("counters of the processor: an access of %v: must be 0..%v", c.Latency, MaxLatency)
	}
	k.LatencyPs = uint64(c.Latency) * 1000
	if len(c.Cycles) > 0 {
		k.Cycles = 1
	}
	if len(c.Waits) > 0 && (c.Latency > 0 || k.Cycles == 1) {
		k.Waits = 1
	}
	return k, nil
}

// SetCounters makes the scheduler read these counters from now on, in place of those
// before; no counters at all: none. What was counted so far counts no more. The
// caller keeps the events open for as long as they are to count.
func (s *Scheduler) SetCounters(c Counters) error {
	knobs, err := c.knobs()
	if err != nil {
		return err
	}
	khz := make([]uint32, maxCPUs)
	for cpu, n := range c.FullKHz {
		if cpu < 0 || cpu >= maxCPUs || n > math.MaxUint32 {
			return fmt.Errorf("CPU %d at %d kHz: no such CPU, or too fast", cpu, n)
		}
		khz[cpu] = uint32(n)
	}
	// Between two sets nothing is counted, in an epoch of its own: what a CPU reads then
	// is compared with neither.
	s.epoch += 2
	knobs.Epoch = s.epoch
	for _, step := range []func() error{
		func() error { return s.coll.Variables["counters"].Set(rotaCounters{Epoch: s.epoch - 1}) },
		func() error { return s.coll.Variables["cpu_khz"].Set(khz) },
		func() error { return s.putEvents("counter_waits", c.Waits) },
		func() error { return s.putEvents("counter_cycles", c.Cycles) },
		func() error {
			if knobs.Waits+knobs.Cycles == 0 {
				return nil
			}
			return s.wantAlso(wantCounters)
		},
		func() error { return s.coll.Variables["counters"].Set(knobs) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("counters of the processor: %w", err)
		}
	}
	return nil
}

// Came is how often a CPU has come online since the scheduler was loaded: perf events that
// were opened on it before have ended.
func (s *Scheduler) Came() (times uint32, err error) {
	if err := s.coll.Variables["cpus_came"].Get(&times); err != nil {
		return 0, fmt.Errorf("counters of the processor: CPUs that came: %w", err)
	}
	return times, nil
}

// putEvents puts one event for each CPU into a map, and takes those of other CPUs out.
func (s *Scheduler) putEvents(name string, events map[int]int) error {
	m := s.coll.Maps[name]
	for cpu := range s.topology.cpus {
		fd, known := events[cpu]
		var err error
		if known {
			err = m.Put(uint32(cpu), uint32(fd))
		} else if err = m.Delete(uint32(cpu)); errors.Is(err, ebpf.ErrKeyNotExist) {
			err = nil
		}
		if err != nil {
			return fmt.Errorf("CPU %d: %w", cpu, err)
		}
	}
	return nil
}
