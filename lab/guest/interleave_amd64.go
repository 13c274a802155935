package guest

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An instruction-counted machine gives each virtual CPU an equal part of the
// time to the machine's next timer event, up to a whole tick of the kernel:
// wake-ups across CPUs would carry several hundred us of noise. Two timers of
// the HPET that nothing else uses make events every 122 us. Their interrupts
// stay off, so the guest spends nothing on them.
//
// QEMU's round after an event does not start where it would have to for equal
// parts. With one timer of that period, CPUs 2 and 3 of four run 2.5 times as
// fast as CPUs 0 and 1. The second timer, 20 ns behind, makes rounds start
// differently often enough: four CPUs get 28, 23, 26 and 22 % of the
// instructions, two get the same. With three CPUs, or more than four, the
// parts differ more, and an idle CPU's part goes to the next busy one.
const (
	hpetBase   = 0xfed00000
	hpetConfig = 0x10
	hpetCount  = 0xf0
	hpetTimer1 = 0x120
	hpetTimer2 = 0x140

	hpetEnabled  = 1 << 0 // of the configuration
	hpetCan      = 1 << 4 // of a timer: it can be periodic
	hpetPeriodic = 1 << 3
	hpetSet      = 1 << 6 // the next value written is the first event

	// In ticks of the HPET, 10 ns.
	interleavePeriod = 12210
	interleaveGap    = 2
	interleaveStart  = 100000 // from now: both are set by then
)

// interleave starts the two timers.
func interleave() error {
	mem, err := os.OpenFile("/dev/mem", os.O_RDWR|os.O_SYNC, 0)
	if err != nil {
		return err
	}
	defer mem.Close()
	page, err := unix.Mmap(int(mem.Fd()), hpetBase, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map the HPET: %w", err)
	}
	defer unix.Munmap(page)
	h := hpet(page)
	if h.read(hpetConfig)&hpetEnabled == 0 || h.read(hpetTimer1)&h.read(hpetTimer2)&hpetCan == 0 {
		return errors.New("the HPET does not run; boot without hpet=disable")
	}
	first := h.read(hpetCount) + interleaveStart
	h.start(hpetTimer2, first)
	h.start(hpetTimer1, first+interleaveGap)
	return nil
}

// hpet is the register page.
type hpet []byte

func (h hpet) read(register int) uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&h[register])))
}

func (h hpet) write(register int, value uint64) {
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&h[register])), value)
}

// start makes a timer periodic, without an interrupt, from first on. The
// upper half of its configuration says what it can do and is left alone.
func (h hpet) start(timer int, first uint64) {
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&h[timer])), hpetPeriodic|hpetSet)
	h.write(timer+8, first)
	h.write(timer+8, interleavePeriod)
}
