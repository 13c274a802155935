// Package frequency reads how fast each CPU runs, compared with the fastest one at its
// top frequency, from what the kernel says about frequencies (cpufreq) and about cores
// of different strength (capacity).
//
// It sets nothing. Package daemon asks it a few times a second and tells the scheduler.
package frequency

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"syscall"

	"rota/internal/kernfile"
)

const (
	policies = "sys/devices/system/cpu/cpufreq/policy*"
	cpus     = "sys/devices/system/cpu/cpu*"
	maxCPU   = 1023
	maxKHz   = 1 << 40
)

// ErrUnknown is that this machine does not say how fast its CPUs run.
var ErrUnknown = errors.New("the kernel has no frequencies (/sys/devices/system/cpu/cpufreq is empty): a virtual machine, or no driver for these CPUs")

// Read returns for each CPU how fast it runs now, more than 0 to 1 = as fast as the
// fastest one at its top frequency. With capacity, cores of less strength count for less
// (cpu_capacity, which some kernels know); without it each core is compared with its own
// top. root is "/" of the machine. CPUs that are not in the answer are not known: offline, or
// the error says which of their files is wrong; it is ErrUnknown where no CPU is known.
func Read(root fs.FS, capacity bool) (speeds map[int]float64, fault error) {
	speeds = map[int]float64{}
	found, _ := fs.Glob(root, policies)
	for _, policy := range found {
		speed, members, err := readPolicy(root, policy)
		// Of a policy whose CPUs are all offline no file can be read.
		if err != nil && !errors.Is(err, syscall.EBUSY) && !errors.Is(err, fs.ErrNotExist) {
			fault = err
		}
		for _, cpu := range members {
			speeds[cpu] = speed
		}
	}
	if len(speeds) == 0 {
		return nil, cmp.Or(fault, ErrUnknown)
	}
	if capacity {
		weaken(root, speeds)
	}
	return speeds, fault
}

// Tops returns for each CPU at how many kHz it would be as fast as Read calls 1: its own top
// frequency, with capacity that of a core of its strength which is as fast as the fastest
// one. CPUs that are not in the answer are not known.
func Tops(root fs.FS, capacity bool) map[int]uint64 {
	tops, worth := map[int]uint64{}, map[int]float64{}
	found, _ := fs.Glob(root, policies)
	for _, policy := range found {
		members, err := readMembers(root, policy)
		if err != nil {
			continue
		}
		top, err := frequencyOf(root, path.Join(policy, "cpuinfo_max_freq"))
		if err != nil {
			continue
		}
		for _, cpu := range members {
			tops[cpu], worth[cpu] = uint64(top), 1
		}
	}
	if capacity {
		weaken(root, worth)
	}
	for cpu, top := range tops {
		tops[cpu] = uint64(float64(top) / worth[cpu])
	}
	return tops
}

// readPolicy reads the CPUs that share a frequency, and that frequency over the top one.
func readPolicy(root fs.FS, policy string) (speed float64, members []int, err error) {
	members, err = readMembers(root, policy)
	if err != nil || len(members) == 0 { // all of them are offline
		return 0, nil, err
	}
	top, err := frequencyOf(root, path.Join(policy, "cpuinfo_max_freq"))
	if err != nil {
		return 0, nil, err
	}
	// The first is what the CPU had; the second, where the first is missing, may be
	// what was asked for.
	now, err := frequencyOf(root, path.Join(policy, "cpuinfo_avg_freq"))
	if err != nil {
		now, err = frequencyOf(root, path.Join(policy, "scaling_cur_freq"))
	}
	if err != nil {
		return 0, nil, err
	}
	return min(now/top, 1), members, nil
}

// readMembers reads which CPUs share a frequency, and are online.
func readMembers(root fs.FS, policy string) (members []int, err error) {
	text, err := kernfile.Read(root, path.Join(policy, "affected_cpus"))
	if err != nil {
		return nil, err
	}
	for _, word := range strings.Fields(text) {
		cpu, err := strconv.Atoi(word)
		if err != nil || cpu < 0 || cpu > maxCPU {
			return nil, fmt.Errorf("/%s/affected_cpus: %q is not a CPU", policy, word)
		}
		members = append(members, cpu)
	}
	return members, nil
}

// weaken multiplies speeds by what the cores are worth, where the kernel knows it.
func weaken(root fs.FS, speeds map[int]float64) {
	found, _ := fs.Glob(root, cpus)
	worth, most := map[int]float64{}, 0.0
	for _, dir := range found {
		cpu, err := strconv.Atoi(strings.TrimPrefix(path.Base(dir), "cpu"))
		if err != nil {
			continue // cpufreq, cpuidle
		}
		if n, err := frequencyOf(root, path.Join(dir, "cpu_capacity")); err == nil {
			worth[cpu], most = n, max(most, n)
		}
	}
	for cpu := range speeds {
		if n, known := worth[cpu]; known {
			speeds[cpu] *= n / most
		}
	}
}

// Table is speeds by the number of the CPU in 1024ths, 0: not known.
func Table(speeds map[int]float64) []uint32 {
	last := -1
	for cpu := range speeds {
		last = max(last, cpu)
	}
	table := make([]uint32, last+1)
	for cpu, speed := range speeds {
		table[cpu] = max(1, uint32(speed*1024+0.5))
	}
	return table
}

// frequencyOf reads a frequency in kHz, or a capacity.
func frequencyOf(root fs.FS, name string) (float64, error) {
	n, err := kernfile.Number(root, name, 1, maxKHz)
	return float64(n), err
}
