// Package arch says what the lab's machines of one processor architecture have of
// their own: QEMU's words for them, the kernel's parameters, the guest's ports.
// Everything else of a machine is the same for all and in lab/machine.
//
// It runs nothing and looks at nothing. lab/kernels tells by an image which
// architecture a kernel is for; lab/machine, lab/guest and lab/cell obey.
package arch

import (
	"debug/elf"
	"runtime"
	"strings"
)

// Arch is one architecture.
type Arch struct {
	Name string      // as Go and Debian call it
	ELF  elf.Machine // what its programs are marked with

	QEMU    string // the program
	Package string // that has it, in Debian and Ubuntu
	Machine string // of QEMU's, without anything random in it
	CPU     string // for counted time: without instructions that give random numbers
	// ResultsPort makes the guest's second serial port of the character device
	// "results"; the first one is the console.
	ResultsPort string

	// EventTimers is the property of the board that says how many timers it has; "" = none.
	EventTimers string

	Parameters string // of the kernel, on top of those of all machines
	Console    string // the guest's name of the first port, below /dev
	Results    string // and of the second
}

// AMD64 is a PC.
func AMD64() Arch {
	return Arch{
		Name: "amd64", ELF: elf.EM_X86_64,
		QEMU: "qemu-system-x86_64", Package: "qemu-system-x86",
		Machine: "pc",
		// Nothing random, and no fast string instructions: docs/decisions/0016-strings.md.
		CPU:         "max,-rdrand,-rdseed,-erms,-fsrm,-fsrs,-fsrc,-fzrm",
		ResultsPort: "-serial chardev:results",
		EventTimers: "hpet.timers",
		// No waits for CPUs of the last century; lab/guest may set the HPET's free
		// timers.
		Parameters: "cpu_init_udelay=0 iomem=relaxed",
		Console:    "ttyS0", Results: "ttyS1",
	}
}

// ARM64 is QEMU's board for no real machine. The CPU is the newest of QEMU 8.1
// whose instructions give no random numbers, and has counters (PMUv3). The board
// has a second port of its own only since QEMU 9.1, so a card is plugged in.
func ARM64() Arch {
	return Arch{
		Name: "arm64", ELF: elf.EM_AARCH64,
		QEMU: "qemu-system-aarch64", Package: "qemu-system-arm",
		Machine:     "virt,gic-version=3,dtb-randomness=off",
		CPU:         "neoverse-n1",
		ResultsPort: "-device pci-serial,chardev=results",
		Console:     "ttyAMA0", Results: "ttyS0",
	}
}

// Of finds an architecture by its name.
func Of(name string) (Arch, bool) {
	for _, a := range []Arch{AMD64(), ARM64()} {
		if a.Name == name {
			return a, true
		}
	}
	return Arch{}, false
}

// OfELF finds an architecture by the mark of its programs.
func OfELF(machine elf.Machine) (Arch, bool) {
	for _, a := range []Arch{AMD64(), ARM64()} {
		if a.ELF == machine {
			return a, true
		}
	}
	return Arch{}, false
}

// Own is the architecture that this program was built for; in a guest it is the
// machine's. The zero value is of one that the lab has no machines of.
func Own() Arch {
	a, _ := Of(runtime.GOARCH)
	return a
}

// OfFlavour finds the architecture of a Debian kernel by its flavour, as
// "cloud-arm64".
func OfFlavour(flavour string) (Arch, bool) {
	return Of(flavour[strings.LastIndexByte(flavour, '-')+1:])
}
