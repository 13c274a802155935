// Package machine boots a kernel in QEMU with instruction-counted virtual
// time: one instruction takes one nanosecond, nothing of the host's clock or
// load gets in, and the same inputs give the same bytes out.
//
// It knows a kernel file, an initramfs and QEMU's parameters, each a named
// field. It does not know what the guest does. lab/cell calls it.
package machine

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"rota/lab/arch"
)

// Machine is one virtual machine. The zero values of all fields but Kernel
// and Initramfs are usable.
type Machine struct {
	Arch      arch.Arch // the zero value = amd64
	QEMU      string    // program; "" = the architecture's in PATH
	Kernel    string    // bzImage, the ELF kernel with a PVH entry, or the Image of arm64
	Initramfs string    // newc archive

	CPUs     int // virtual CPUs; 0 = 4
	Sockets  int // the topology's product must be CPUs; 0 = 1 socket,
	Cores    int // 0 = CPUs / (Sockets x Threads) cores,
	Threads  int // 0 = 1 thread
	MemoryMB int // 0 = 1024

	Append []string // kernel parameters on top of ours

	// NICs are models of network cards, as e1000e, all on one wire that leads nowhere else.
	NICs []string

	// EventTimers are those of the board (on a PC the HPET's) that a guest can set; 0 = as
	// many as QEMU gives it.
	EventTimers int

	// RealIdle lets idle time pass at the host's pace, for a person at the
	// console. Without it an idle machine jumps to its next timer.
	RealIdle bool
	// Realtime gives up counted instructions for the host's clock: KVM where
	// /dev/kvm can be opened. Results then differ from run to run.
	Realtime bool

	// Watch receives the console while the machine runs; nil = nobody watches.
	Watch io.Writer

	HostLimit time.Duration // host time after which QEMU is ended; 0 = none
}

// Defaults of the fields above.
const (
	DefaultCPUs     = 4
	DefaultMemoryMB = 1024
	maxCPUs         = 255 // QEMU's pc machine; virt can do more
)

// bootDate is when every guest believes it was booted.
const bootDate = "2026-01-01"

// kernelParameters are what every guest is booted with, by reason.
func kernelParameters(a arch.Arch) []string {
	return strings.Fields(
		// One console, which says little.
		"console=" + a.Console + " quiet " +
			// Repeatable: addresses and random numbers depend on instructions only.
			"nokaslr random.trust_cpu=off " +
			// An end instead of a reboot, and at the first oops.
			"panic=-1 oops=panic " +
			// Nice values count across sessions.
			"noautogroup " +
			// No work of the kernel's own into the measurement: self-tests of
			// ciphers run for seconds after boot, DAMON samples memory.
			"cryptomgr.notests=1 damon_stat.enabled=N " +
			a.Parameters)
}

func (m Machine) withDefaults() Machine {
	fill := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	if m.Arch.Name == "" {
		m.Arch = arch.AMD64()
	}
	fill(&m.CPUs, DefaultCPUs)
	fill(&m.MemoryMB, DefaultMemoryMB)
	fill(&m.Sockets, 1)
	fill(&m.Threads, 1)
	fill(&m.Cores, max(1, m.CPUs/m.Sockets/m.Threads)) // a product may overflow, even to 0
	return m
}

// Check refuses a size or a topology that no machine can have, for who would know so before the
// first of many runs. Zero values stand for their defaults.
func (m Machine) Check() error {
	m = m.withDefaults()
	if m.CPUs < 1 || m.CPUs > maxCPUs {
		return fmt.Errorf("machine: %d CPUs: must be 1..%d", m.CPUs, maxCPUs)
	}
	for _, part := range []struct {
		word string
		n    int
	}{{"sockets", m.Sockets}, {"cores per socket", m.Cores}, {"threads per core", m.Threads}} {
		if part.n < 1 || part.n > maxCPUs { // also before they are multiplied
			return fmt.Errorf("machine: %d %s: must be 1..%d", part.n, part.word, maxCPUs)
		}
	}
	if m.Sockets*m.Cores*m.Threads != m.CPUs {
		return fmt.Errorf("machine: %d sockets x %d cores x %d threads: must be %d CPUs", m.Sockets, m.Cores, m.Threads, m.CPUs)
	}
	if m.MemoryMB < 128 || m.MemoryMB > 1<<20 {
		return fmt.Errorf("machine: %d MB of memory: must be 128..%d", m.MemoryMB, 1<<20)
	}
	return nil
}

// check refuses what QEMU would refuse less clearly.
func (m Machine) check() error {
	if err := m.Check(); err != nil {
		return err
	}
	for _, model := range m.NICs {
		if !nicModel.MatchString(model) {
			return fmt.Errorf("machine: network card %q: is no model of QEMU's: take e1000e, virtio-net-pci or another of: %s -device help", model, m.Arch.QEMU)
		}
	}
	for _, file := range []string{m.Kernel, m.Initramfs} {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("machine: %w", err)
		}
	}
	return nil
}

// nicModel is what a model of QEMU's looks like, without properties of it.
var nicModel = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)

// arguments are QEMU's, for character devices called console and results.
func (m Machine) arguments(console, results string) []string {
	args := []string{
		"-nodefaults", "-no-user-config", "-no-reboot",
		"-display", "none", "-nic", "none",
		"-machine", m.Arch.Machine,
		"-smp", fmt.Sprintf("cpus=%d,sockets=%d,cores=%d,threads=%d", m.CPUs, m.Sockets, m.Cores, m.Threads),
		"-m", strconv.Itoa(m.MemoryMB),
		"-kernel", m.Kernel,
		"-initrd", m.Initramfs,
		"-append", strings.Join(append(kernelParameters(m.Arch), m.Append...), " "),
		"-chardev", console, "-serial", "chardev:console",
		"-chardev", results,
	}
	args = append(args, strings.Fields(m.Arch.ResultsPort)...)
	for i, model := range m.NICs {
		args = append(args, "-netdev", fmt.Sprintf("hubport,id=port%d,hubid=0", i), "-device", fmt.Sprintf("%s,netdev=port%d", model, i))
	}
	if m.EventTimers > 0 && m.Arch.EventTimers != "" {
		args = append(args, "-global", fmt.Sprintf("%s=%d", m.Arch.EventTimers, m.EventTimers))
	}
	return append(args, m.clock()...)
}

// clock are the arguments that decide what time is.
func (m Machine) clock() []string {
	switch {
	case m.Realtime && m.Arch.Name == arch.Own().Name && canOpenKVM():
		return []string{"-accel", "kvm", "-cpu", "host"}
	case m.Realtime:
		// Several host threads would patch the kernel's code under its feet.
		return []string{"-accel", "tcg,thread=single", "-cpu", "max"}
	}
	sleep := "off"
	if m.RealIdle {
		sleep = "on"
	}
	return []string{
		"-accel", "tcg,thread=single",
		"-icount", "shift=0,sleep=" + sleep,
		"-rtc", "base=" + bootDate + ",clock=vm",
		"-cpu", m.Arch.CPU,
	}
}

func canOpenKVM() bool {
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err == nil {
		f.Close()
	}
	return err == nil
}

// escape doubles commas: they end a value in QEMU's arguments.
func escape(path string) string { return strings.ReplaceAll(path, ",", ",,") }
