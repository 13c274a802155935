package dedicate

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"rota/internal/cpulist"
	"rota/internal/kernfile"
)

const (
	cpuDir = "sys/devices/system/cpu"
)

// Read reads what a choice depends on, from root ("/" of the machine), for classes that
// name these devices. Cache domains are left to the caller.
func Read(root fs.FS, devices []string) (Machine, error) {
	text, err := kernfile.Read(root, cpuDir+"/online")
	if err != nil {
		return Machine{}, fmt.Errorf("online CPUs: %w", err)
	}
	m := Machine{Core: map[int]int{}, Domain: map[int]int{}, Interrupts: map[string][]int{}}
	if m.Online, err = cpulist.Parse(text); err != nil {
		return Machine{}, fmt.Errorf("online CPUs: %w", err)
	}
	for _, cpu := range m.Online {
		m.Core[cpu] = core(root, cpu)
	}
	for _, device := range devices {
		if cpus, found := interrupts(root, device); found && device != "" {
			m.Interrupts[device] = cpus
		}
	}
	m.Bound = bound(root, m.Online)
	return m, nil
}

// Watched is what makes a new choice necessary when it changes: which CPUs are online,
// and which serve the devices.
func Watched(root fs.FS, devices []string) string {
	text, _ := kernfile.Read(root, cpuDir+"/online")
	for _, device := range devices {
		cpus, _ := interrupts(root, device)
		text += " " + device + "=" + cpulist.String(cpus)
	}
	return text
}

// core is the first CPU of the core of a CPU; itself where the kernel does not say.
func core(root fs.FS, cpu int) int {
	for _, name := range []string{"core_cpus_list", "thread_siblings_list"} {
		if list := readList(root, fmt.Sprintf("%s/cpu%d/topology/%s", cpuDir, cpu, name)); len(list) > 0 {
			return list[0]
		}
	}
	return cpu
}

// interrupts are the CPUs that serve a device: a network interface, or a name as in
// /proc/interrupts.
func interrupts(root fs.FS, device string) (cpus []int, found bool) {
	numbers, alias := messageInterrupts(root, device), handler(root, device)
	text, _ := kernfile.Read(root, "proc/interrupts")
	for line := range strings.Lines(text) {
		number, rest, isLine := strings.Cut(strings.TrimSpace(line), ":")
		if isLine && (names(rest, device) || names(rest, alias)) {
			numbers = append(numbers, number)
		}
	}
	for _, number := range numbers {
		if _, err := strconv.ParseUint(number, 10, 32); err != nil {
			continue
		}
		if list := servers(root, number); len(list) > 0 {
			cpus, found = append(cpus, list...), true
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), found
}

// servers are the CPUs that will serve the next interrupt of this number. One that was moved is served where it was
// until it has come once more, which it may not for long.
func servers(root fs.FS, number string) []int {
	now, allowed := readList(root, "proc/irq/"+number+"/effective_affinity_list"), readList(root, "proc/irq/"+number+"/smp_affinity_list")
	if len(now) == 0 || len(allowed) > 0 && len(without(now, allowed)) > 0 {
		return allowed
	}
	return now
}

// messageInterrupts are those of the PCI device of a network interface.
func messageInterrupts(root fs.FS, device string) (numbers []string) {
	entries, _ := fs.ReadDir(root, path.Join("sys/class/net", device, "device/msi_irqs"))
	for _, entry := range entries {
		numbers = append(numbers, entry.Name())
	}
	return numbers
}

// handler is the name that a network interface's handlers have, as virtio0 for eth0.
func handler(root fs.FS, device string) string {
	link, err := fs.ReadLink(root, path.Join("sys/class/net", device, "device"))
	if err != nil {
		return device
	}
	return path.Base(link)
}

// names tells whether the last words of a line of /proc/interrupts, which are the names
// of its handlers, name the device or a part of it, as eth0-rx-1 and virtio3-input.0.
func names(line, device string) bool {
	for word := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' || r == '\n' }) {
		if word == device || strings.HasPrefix(word, device+"-") {
			return true
		}
	}
	return false
}

// bound are the tasks of user space that may not run on every online CPU.
func bound(root fs.FS, online []int) (out []Bound) {
	tasks, _ := fs.Glob(root, "proc/[0-9]*/task/[0-9]*/status")
	for _, file := range tasks {
		text, err := kernfile.Read(root, file)
		if err != nil {
			continue // it has ended
		}
		b, ofUser := parseStatus(text)
		pid, err := strconv.Atoi(path.Base(path.Dir(file)))
		if err != nil || !ofUser || len(without(online, b.CPUs)) == 0 {
			continue
		}
		b.PID = pid
		out = append(out, b)
	}
	return out
}

// parseStatus reads name and CPUs of a task; false: a thread of the kernel, which has
// no memory of its own, or one that ends.
func parseStatus(text string) (b Bound, ofUser bool) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\n"), ":")
		value = strings.TrimSpace(value)
		switch key {
		case "Name":
			b.Name = value
		case "VmSize":
			ofUser = true
		case "Cpus_allowed_list":
			b.CPUs, _ = cpulist.Parse(value) // of no list nothing is known
		}
	}
	return b, ofUser
}

// readList reads a list of CPUs; nil when there is none.
func readList(root fs.FS, name string) []int {
	text, err := kernfile.Read(root, name)
	if err != nil {
		return nil
	}
	list, _ := cpulist.Parse(text)
	return list
}
