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
// wake-ups across CPUs would carry several hundred us of noise. Timers of the
// HPET that nothing else uses make events between. Their interrupts stay off, so the
// guest spends nothing on them.
//
// An event kicks all virtual CPUs: each of them, when its turn comes, has the time that
// is left divided anew, so who is first gets most. Of four CPUs that is CPU 0 if
// nothing was left of the division before, with 33, 27, 22 and 18 % of the instructions,
// else CPU 2: 14, 14, 39 and 33 %. A second timer shortly behind decides which, by what its
// gap leaves: 340 ns always CPU 0, 30 ns always CPU 2, 20 ns now one, now the other. With
// CPU 0 first in about two rounds of three it is 26, 22, 28 and 24 %; nothing makes them equal. Two CPUs
// get the same. With three, or more than four, the parts differ more, and an idle CPU's part
// goes to the next busy one.
const (
	hpetBase   = 0xfed00000
	hpetConfig = 0x10
	hpetCount  = 0xf0
	hpetTimer0 = 0x100
	hpetTimers = 0x20 // from one timer to the next

	hpetEnabled  = 1 << 0 // of the configuration
	hpetCan      = 1 << 4 // of a timer: it can be periodic
	hpetPeriodic = 1 << 3
	hpetSet      = 1 << 6 // the next value written is the first event

	// In ticks of the HPET, 10 ns.
	interleavePeriod = 12210
	interleaveStart  = 100000 // from now: all are set by then
)

// interleave starts the timers.
func interleave(turns Turns) error {
	events := turns.events()
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
	if h.read(hpetConfig)&hpetEnabled == 0 {
		return errors.New("the HPET does not run; boot without hpet=disable")
	}
	for _, e := range events {
		if h.read(hpetTimer0+e.timer*hpetTimers)&hpetCan == 0 {
			return fmt.Errorf("timer %d of the HPET: not there, or never periodic", e.timer)
		}
	}
	first := h.read(hpetCount) + interleaveStart
	for _, e := range events {
		h.start(hpetTimer0+e.timer*hpetTimers, first+e.at)
	}
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
