package dedicate

import (
	"io/fs"
	"reflect"
	"testing"
	"testing/fstest"
)

const interruptTable = `            CPU0       CPU1       CPU2
   1:          9          0          0   IO-APIC   1-edge      i8042
  24:          0          7          0   PCI-MSIX-0000:00:03.0   0-edge      virtio1-config
  25:          0          7          0   PCI-MSIX-0000:00:03.0   1-edge      virtio1-input.0, other
  26:          0          0          3   PCI-MSIX-0000:00:04.0   0-edge      enp7s0-rx-0
 LOC:       1000       1000       1000   Local timer interrupts
`

func status(name, memory, cpus string) string {
	return "Name:\t" + name + "\nState:\tS (sleeping)\n" + memory + "Cpus_allowed_list:\t" + cpus + "\n"
}

func machine() fstest.MapFS {
	const user = "VmSize:\t  100 kB\n"
	files := map[string]string{
		"sys/devices/system/cpu/online":                             "0-2\n",
		"sys/devices/system/cpu/cpu0/topology/core_cpus_list":       "0-1\n",
		"sys/devices/system/cpu/cpu1/topology/core_cpus_list":       "0-1\n",
		"sys/devices/system/cpu/cpu2/topology/thread_siblings_list": "2\n",
		"proc/interrupts":                       interruptTable,
		"proc/irq/24/effective_affinity_list":   "1\n",
		"proc/irq/25/effective_affinity_list":   "\n",
		"proc/irq/25/smp_affinity_list":         "0,2\n",
		"proc/irq/26/effective_affinity_list":   "2\n",
		"proc/irq/30/effective_affinity_list":   "0\n",
		"sys/class/net/pci0/device/msi_irqs/30": "msi\n",
		"proc/1/task/1/status":                  status("init", user, "0-2"),
		"proc/7/task/7/status":                  status("db: \\n1", user, "2"),
		"proc/7/task/8/status":                  status("wide", user, "0-1023"),
		"proc/9/task/9/status":                  status("kworker/1", "", "1"),
		"proc/12/task/12/status":                "nonsense",
	}
	out := fstest.MapFS{}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	out["sys/class/net/eth0/device"] = &fstest.MapFile{Data: []byte("../../../virtio1"), Mode: fs.ModeSymlink}
	return out
}

func TestRead(t *testing.T) {
	m, err := Read(machine(), []string{"eth0", "enp7s0", "pci0", "none"})
	want := Machine{
		Online: []int{0, 1, 2}, Core: map[int]int{0: 0, 1: 0, 2: 2}, Domain: map[int]int{},
		Interrupts: map[string][]int{"eth0": {0, 1, 2}, "enp7s0": {2}, "pci0": {0}},
		Bound:      []Bound{{PID: 7, Name: `db: \n1`, CPUs: []int{2}}},
	}
	if err != nil || !reflect.DeepEqual(m, want) {
		t.Errorf("got %+v, %v, want %+v", m, err, want)
	}
}

func TestReadWithoutCPUs(t *testing.T) {
	for name, tree := range map[string]fstest.MapFS{
		"no file":  {},
		"no list":  {"sys/devices/system/cpu/online": {Data: []byte("three\n")}},
		"too much": {"sys/devices/system/cpu/online": {Data: []byte("0-99999999\n")}},
	} {
		if m, err := Read(tree, nil); err == nil {
			t.Errorf("%s: got %+v, want an error", name, m)
		}
	}
}

func TestWatched(t *testing.T) {
	tree := machine()
	before := Watched(tree, []string{"enp7s0"})
	if again := Watched(tree, []string{"enp7s0"}); again != before {
		t.Errorf("nothing changed: %q became %q", before, again)
	}
	tree["proc/irq/26/effective_affinity_list"] = &fstest.MapFile{Data: []byte("0\n")}
	moved := Watched(tree, []string{"enp7s0"})
	if moved == before {
		t.Errorf("the interrupt moved: still %q", before)
	}
	// It was told to move to CPU 1, and has not come since.
	tree["proc/irq/26/smp_affinity_list"] = &fstest.MapFile{Data: []byte("1\n")}
	if cpus, found := interrupts(tree, "enp7s0"); !found || !reflect.DeepEqual(cpus, []int{1}) {
		t.Errorf("an interrupt that was told to move is served by %v, must be 1", cpus)
	}
	tree["proc/irq/26/smp_affinity_list"] = &fstest.MapFile{Data: []byte("0-2\n")}
	tree["sys/devices/system/cpu/online"] = &fstest.MapFile{Data: []byte("0-1\n")}
	if gone := Watched(tree, []string{"enp7s0"}); gone == moved {
		t.Errorf("a CPU went: still %q", moved)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0-3,8")
	f.Add(interruptTable)
	f.Add(status("x", "VmSize: 1\n", "0-1"))
	f.Fuzz(func(t *testing.T, text string) {
		parseStatus(text)
		interrupts(fstest.MapFS{"proc/interrupts": {Data: []byte(text)}}, "eth0")
	})
}
