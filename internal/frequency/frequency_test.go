package frequency

import (
	"errors"
	"io/fs"
	"maps"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
)

func machine(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range files {
		out["sys/devices/system/cpu/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// two is a machine with cores of two kinds.
func two() map[string]string {
	return map[string]string{
		"cpufreq/policy0/affected_cpus": "0 1\n", "cpufreq/policy0/cpuinfo_max_freq": "2000000\n", "cpufreq/policy0/scaling_cur_freq": "1000000\n",
		"cpufreq/policy2/affected_cpus": "2\n", "cpufreq/policy2/cpuinfo_max_freq": "3000000\n", "cpufreq/policy2/scaling_cur_freq": "900000\n",
		"cpufreq/policy2/cpuinfo_avg_freq": "3100000\n",
		"cpufreq/policy3/affected_cpus":    "\n",
		"cpu0/cpu_capacity":                "512\n", "cpu1/cpu_capacity": "512\n", "cpu2/cpu_capacity": "1024\n", "cpuidle/x": "",
	}
}

func TestRead(t *testing.T) {
	for capacity, want := range map[bool]map[int]float64{
		false: {0: 0.5, 1: 0.5, 2: 1},
		true:  {0: 0.25, 1: 0.25, 2: 1},
	} {
		got, err := Read(machine(two()), capacity)
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("capacity %v: %v, %v, want %v", capacity, got, err, want)
		}
	}
	if _, err := Read(machine(nil), true); !errors.Is(err, ErrUnknown) {
		t.Errorf("without frequencies: %v", err)
	}
}

func TestTops(t *testing.T) {
	for capacity, want := range map[bool]map[int]uint64{
		false: {0: 2000000, 1: 2000000, 2: 3000000},
		true:  {0: 4000000, 1: 4000000, 2: 3000000},
	} {
		if got := Tops(machine(two()), capacity); !maps.Equal(got, want) {
			t.Errorf("capacity %v: %v, want %v", capacity, got, want)
		}
	}
	odd := two()
	odd["cpufreq/policy0/cpuinfo_max_freq"] = "none"
	if got := Tops(machine(odd), false); !maps.Equal(got, map[int]uint64{2: 3000000}) {
		t.Errorf("one that can't be read: %v", got)
	}
}

func TestReadRefuses(t *testing.T) {
	for file, text := range map[string]string{
		"cpufreq/policy0/affected_cpus": "0 x", "cpufreq/policy0/cpuinfo_max_freq": "0", "cpufreq/policy2/affected_cpus": "1024",
		"cpufreq/policy0/scaling_cur_freq": "<unsupported>",
	} {
		files := two()
		files[file] = text
		speeds, err := Read(machine(files), false)
		if err == nil || !strings.Contains(err.Error(), file) || len(speeds) == 0 {
			t.Errorf("%s %q: %v, %v", file, text, speeds, err)
		}
	}
}

func TestTable(t *testing.T) {
	if got := Table(map[int]float64{0: 0.5, 2: 1, 3: 0.0001}); !reflect.DeepEqual(got, []uint32{512, 0, 1024, 1}) {
		t.Error(got)
	}
	if got := Table(nil); len(got) != 0 {
		t.Error(got)
	}
}

// offline is a machine of whose policies one cannot be read, as when its CPUs are offline.
type offline struct{ fstest.MapFS }

func (m offline) Open(name string) (fs.File, error) {
	if strings.Contains(name, "policy2/") {
		return nil, syscall.EBUSY
	}
	return m.MapFS.Open(name)
}

func TestReadOffline(t *testing.T) {
	got, err := Read(offline{machine(two())}, false)
	if want := (map[int]float64{0: 0.5, 1: 0.5}); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

// FuzzRead: whatever the files hold, a speed is above 0 and at most 1.
func FuzzRead(f *testing.F) {
	f.Add("0 1", "2000000", "1000000", "512")
	f.Add("0\n", "1", "0", "-1")
	f.Fuzz(func(t *testing.T, members, top, now, capacity string) {
		speeds, err := Read(machine(map[string]string{
			"cpufreq/policy0/affected_cpus": members, "cpufreq/policy0/cpuinfo_max_freq": top, "cpufreq/policy0/scaling_cur_freq": now,
			"cpu0/cpu_capacity": capacity,
		}), true)
		for cpu, speed := range speeds {
			if !(speed > 0 && speed <= 1) || cpu < 0 || cpu > maxCPU {
				t.Errorf("CPU %d at %v, error %v", cpu, speed, err)
			}
		}
		Table(speeds)
	})
}
