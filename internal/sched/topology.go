package sched

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"rota/internal/cpulist"
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
	ids, err := cpulist.Parse(string(possible))
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

// places are where each CPU stands among those of its domain, by CPU.
func (t topology) places() []uint32 {
	places := make([]uint32, t.cpus)
	for llc, first := range t.first {
		for place, cpu := range t.order[first : first+t.size[llc]] {
			places[cpu] = uint32(place)
		}
	}
	return places
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
