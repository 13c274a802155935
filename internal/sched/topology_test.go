package sched

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// machine is a /sys/devices/system/cpu; files maps names to contents.
func machine(possible string, files map[string]string) fstest.MapFS {
	sys := fstest.MapFS{"possible": {Data: []byte(possible + "\n")}}
	for name, text := range files {
		sys[name] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
	return sys
}

// caches gives each CPU its own first-level cache and the last level that
// its place in shared says; "" is a CPU that tells nothing.
func caches(shared ...string) map[string]string {
	files := make(map[string]string)
	for cpu, list := range shared {
		if list == "" {
			continue
		}
		files[fmt.Sprintf("cpu%d/cache/index0/shared_cpu_list", cpu)] = fmt.Sprint(cpu)
		files[fmt.Sprintf("cpu%d/cache/index1/shared_cpu_list", cpu)] = fmt.Sprint(cpu)
		files[fmt.Sprintf("cpu%d/cache/index2/shared_cpu_list", cpu)] = fmt.Sprint(cpu)
		files[fmt.Sprintf("cpu%d/cache/index3/shared_cpu_list", cpu)] = list
		files[fmt.Sprintf("cpu%d/topology/physical_package_id", cpu)] = "9"
	}
	return files
}

func TestReadTopology(t *testing.T) {
	tests := map[string]struct {
		possible string
		files    map[string]string
		want     topology
	}{
		"one cache": {"0-3", caches("0-3", "0-3", "0-3", "0-3"), topology{
			cpus: 4, llcOf: []uint32{0, 0, 0, 0}, order: []uint32{0, 1, 2, 3},
			first: []uint32{0}, size: []uint32{4}, shared: []string{"0-3"},
		}},
		"two caches, interleaved": {"0-4", caches("0,2,4", "1,3", "0,2,4", "1,3", "0,2,4"), topology{
			cpus: 5, llcOf: []uint32{0, 1, 0, 1, 0}, order: []uint32{0, 2, 4, 1, 3},
			first: []uint32{0, 3}, size: []uint32{3, 2}, shared: []string{"0,2,4", "1,3"},
		}},
		"the second level is the last": {"0-1", map[string]string{
			"cpu0/cache/index2/shared_cpu_list": "0", "cpu1/cache/index2/shared_cpu_list": "1",
		}, topology{
			cpus: 2, llcOf: []uint32{0, 1}, order: []uint32{0, 1},
			first: []uint32{0, 1}, size: []uint32{1, 1}, shared: []string{"0", "1"},
		}},
		"only first levels": {"0-1", map[string]string{
			"cpu0/cache/index1/shared_cpu_list": "0", "cpu1/cache/index1/shared_cpu_list": "1",
		}, topology{
			cpus: 2, llcOf: []uint32{0, 0}, order: []uint32{0, 1},
			first: []uint32{0}, size: []uint32{2}, shared: []string{"package 0"},
		}},
		"no caches, two packages": {"0-2", map[string]string{
			"cpu0/topology/physical_package_id": "0", "cpu1/topology/physical_package_id": "1",
			"cpu2/topology/physical_package_id": "0",
		}, topology{
			cpus: 3, llcOf: []uint32{0, 1, 0}, order: []uint32{0, 2, 1},
			first: []uint32{0, 2}, size: []uint32{2, 1}, shared: []string{"package 0", "package 1"},
		}},
		"nothing known": {"0-1", nil, topology{
			cpus: 2, llcOf: []uint32{0, 0}, order: []uint32{0, 1},
			first: []uint32{0}, size: []uint32{2}, shared: []string{"package 0"},
		}},
		"offline CPUs": {"0-3", caches("0,2", "", "0,2", ""), topology{
			cpus: 4, llcOf: []uint32{0, 1, 0, 1}, order: []uint32{0, 2, 1, 3},
			first: []uint32{0, 2}, size: []uint32{2, 2}, shared: []string{"0,2", "package 0"},
		}},
		"a gap in the numbers": {"0,2", caches("0,2", "", "0,2"), topology{
			cpus: 3, llcOf: []uint32{0, 1, 0}, order: []uint32{0, 2, 1},
			first: []uint32{0, 2}, size: []uint32{2, 1}, shared: []string{"0,2", "package 0"},
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := readTopology(machine(test.possible, test.files))
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("%+v, %v\nwant %+v", got, err, test.want)
			}
		})
	}
}

// alone gives each of n CPUs a last-level cache of its own.
func alone(n int) map[string]string {
	files := make(map[string]string)
	for cpu := range n {
		files[fmt.Sprintf("cpu%d/cache/index3/shared_cpu_list", cpu)] = fmt.Sprint(cpu)
	}
	return files
}

func TestReadTopologyLimits(t *testing.T) {
	tests := map[string]struct {
		sys  fstest.MapFS
		want string // "" means that it fits
	}{
		"as many CPUs as fit":   {machine("0-1023", nil), ""},
		"one CPU too many":      {machine("0-1024", nil), "1025 CPUs: rota supports 1024"},
		"as many caches as fit": {machine("0-255", alone(256)), ""},
		"one cache too many":    {machine("0-256", alone(257)), "257 cache domains: rota supports 256"},
		"no list":               {fstest.MapFS{}, "possible CPUs"},
		"empty list":            {machine("", nil), "possible CPUs"},
		"no list of CPUs":       {machine("all", nil), `"all"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := readTopology(test.sys)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// A CPU looks at all the others of its domain, wherever its number would put it.
func TestPlaces(t *testing.T) {
	// As where siblings have the numbers of the second half, and two caches.
	list := []string{"0-1,4-5", "0-1,4-5", "2-3,6-7", "2-3,6-7", "0-1,4-5", "0-1,4-5", "2-3,6-7", "2-3,6-7"}
	got, err := readTopology(machine("0-7", caches(list...)))
	if err != nil {
		t.Fatal(err)
	}
	if want := []uint32{0, 1, 0, 1, 2, 3, 2, 3}; !slices.Equal(got.places(), want) {
		t.Errorf("places %v, want %v", got.places(), want)
	}
}
