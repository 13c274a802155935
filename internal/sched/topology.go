package sched

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// topology is which CPUs there are and which share a last-level cache.
type topology struct {
	cpus   int      // possible CPUs, counted from 0
	llcOf  []uint32 // by CPU
	order  []uint32 // all CPUs, domain after domain
	first  []uint32 // by domain: index into order
	size   []uint32 // by domain
	shared []string // by domain: its CPUs in the kernel's notation
}

// readTopology reads /sys/devices/system/cpu through sys, whose root is that
// directory. CPUs without cache information (virtual machines, offline CPUs)
// fall into one domain per package, or one in all.
func readTopology(sys fs.FS) (topology, error) {
	possible, err := fs.ReadFile(sys, "possible")
	if err != nil {
		return topology{}, fmt.Errorf("possible CPUs: %w", err)
	}
	ids, err := parseCPUList(strings.TrimSpace(string(possible)))
	if err != nil || len(ids) == 0 {
		return topology{}, fmt.Errorf("possible CPUs %q: %w", possible, err)
	}
	t := topology{cpus: ids[len(ids)-1] + 1}
	if t.cpus > maxCPUs {
		return topology{}, fmt.Errorf("this machine can have %d CPUs: rota supports %d", t.cpus, maxCPUs)
	}
	domains := make(map[string][]uint32)
	var names []string
	for cpu := range t.cpus {
		name := cacheDomain(sys, cpu)
		if _, ok := domains[name]; !ok {
			names = append(names, name)
		}
		domains[name] = append(domains[name], uint32(cpu))
	}
	if len(names) > maxLLCs {
		return topology{}, fmt.Errorf("this machine has %d cache domains: rota supports %d", len(names), maxLLCs)
	}
	t.llcOf = make([]uint32, t.cpus)
	for llc, name := range names {
		t.first = append(t.first, uint32(len(t.order)))
		t.size = append(t.size, uint32(len(domains[name])))
		t.shared = append(t.shared, name)
		for _, cpu := range domains[name] {
			t.llcOf[cpu] = uint32(llc)
			t.order = append(t.order, cpu)
		}
	}
	return t, nil
}

// cacheDomain names the CPUs that share the highest-level cache of a CPU.
func cacheDomain(sys fs.FS, cpu int) string {
	dir := fmt.Sprintf("cpu%d", cpu)
	for index := 9; index >= 0; index-- {
		cache := path.Join(dir, "cache", "index"+strconv.Itoa(index), "shared_cpu_list")
		if list, err := fs.ReadFile(sys, cache); err == nil && index >= 2 {
			return strings.TrimSpace(string(list))
		}
	}
	if id, err := fs.ReadFile(sys, path.Join(dir, "topology", "physical_package_id")); err == nil {
		return "package " + strings.TrimSpace(string(id))
	}
	return "package 0"
}

// parseCPUList reads the kernel's notation of CPU sets, as "0-3,8".
func parseCPUList(list string) ([]int, error) {
	var ids []int
	for part := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(low)
		if err != nil {
			return nil, fmt.Errorf("CPU list %q: %w", list, err)
		}
		to := from
		if isRange {
			if to, err = strconv.Atoi(high); err != nil {
				return nil, fmt.Errorf("CPU list %q: %w", list, err)
			}
		}
		if from < 0 || to < from || to > 1<<16 {
			return nil, fmt.Errorf("CPU list %q: range %q: want FROM-TO", list, part)
		}
		for id := from; id <= to; id++ {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
