package sched

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const sysSchedExt = "/sys/kernel/sched_ext"

// Stats reads the counters.
func (s *Scheduler) Stats() (Stats, error) {
	stats := Stats{Since: s.since, State: readLine(filepath.Join(sysSchedExt, "state"))}
	for index := range s.params.Classes {
		class, err := s.classStats(uint32(index))
		if err != nil {
			return Stats{}, err
		}
		stats.Classes = append(stats.Classes, class)
	}
	counters := make([]rotaCpuStats, maxCPUs)
	if err := s.coll.Variables["cpu_stats"].Get(counters); err != nil {
		return Stats{}, fmt.Errorf("read CPU counters: %w", err)
	}
	speeds := make([]uint32, maxCPUs)
	if err := s.coll.Variables["cpu_speed"].Get(speeds); err != nil {
		return Stats{}, fmt.Errorf("read speeds of the CPUs: %w", err)
	}
	for cpu, c := range counters[:s.topology.cpus] {
		stats.CPUs = append(stats.CPUs, CPUStats{
			CPU:      cpu,
			Speed:    speeds[cpu],
			Priority: c.Dispatches[Priority], Fair: c.Dispatches[Fair],
			Background: c.Dispatches[Background],
			Direct:     c.Direct, Handed: c.Handed, Preemptions: c.Preemptions, Steals: c.Steals,
			Rescues: c.Rescues, CapHits: c.CapHits, Limited: c.Limited,
			Bound: time.Duration(c.BoundNs), Guests: time.Duration(c.GuestNs), Stray: time.Duration(c.StrayNs),
		})
		stats.Boosts.add(c)
		stats.Answers.Asked += c.Asked
		stats.Answers.Known += c.Known
	}
	stats.Kernel = kernelEvents()
	return stats, nil
}

func (b *BoostStats) add(c rotaCpuStats) {
	b.Futex += c.Boosts[reasonFutex]
	b.Locks += c.Boosts[reasonLock]
	b.Wakeups += c.Boosts[reasonWake]
	b.Binder += c.Boosts[reasonBinder]
	b.Chained += c.Chained
	b.Fetched += c.Fetched
	b.Ended += c.Ended
	b.Spent += c.Spent
	b.Runtime += time.Duration(c.BoostedNs)
}

// classStats adds up what the CPUs counted for one class.
func (s *Scheduler) classStats(index uint32) (ClassStats, error) {
	var perCPU []rotaClassStats
	if err := s.coll.Maps["class_stats"].Lookup(index, &perCPU); err != nil {
		return ClassStats{}, fmt.Errorf("read counters of class %d: %w", index, err)
	}
	sum := ClassStats{WaitHist: make([]uint64, waitBuckets)}
	var tasks int64
	for _, c := range perCPU {
		tasks += c.Tasks
		sum.Runtime += time.Duration(c.RuntimeNs)
		sum.Progress += time.Duration(c.ProgressNs)
		sum.Waited += time.Duration(c.WaitedNs)
		sum.Counted += time.Duration(c.CountedNs)
		sum.Dispatches += c.Dispatches
		sum.Preempting += c.Preempting
		sum.Preempted += c.Preempted
		sum.CapHits += c.CapHits
		sum.Rescues += c.Rescues
		sum.Returns += c.Returns
		sum.Expected += c.Expected
		sum.WaitMax = max(sum.WaitMax, time.Duration(c.WaitMaxNs))
		for i, n := range c.WaitHist {
			sum.WaitHist[i] += n
		}
	}
	sum.Tasks = uint64(max(tasks, 0))
	return sum, nil
}

// kernelEvents reads the counters that the kernel keeps of every sched_ext
// scheduler (6.15 and later).
func kernelEvents() map[string]int64 {
	data, err := os.ReadFile(filepath.Join(sysSchedExt, "root", "events"))
	if err != nil {
		return map[string]int64{}
	}
	return parseKernelEvents(string(data))
}

// parseKernelEvents reads lines of a name and a count, and skips all others.
func parseKernelEvents(text string) map[string]int64 {
	events := make(map[string]int64)
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseInt(value, 10, 64); ok && err == nil {
			events[name] = n
		}
	}
	return events
}
