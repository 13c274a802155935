package guest

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// outb writes one byte to an I/O port.
func outb(port uint16, value byte)

// Registers of the MC146818 clock and what we put there.
const (
	rtcIndex, rtcData = 0x70, 0x71

	rtcRegisterA = 0x0a
	rtcRate8192  = 0x23 // 32.768 kHz time base, periodic rate 3: 8192 Hz

	rtcRegisterB = 0x0b
	rtcPeriodic  = 0x42 // periodic interrupt on, 24 hour form
)

// interleave makes the virtual CPUs take turns often. An instruction-counted
// machine runs one virtual CPU until the next timer event of the machine, up
// to a whole tick; a periodic timer of 8192 Hz brings that to 122 us divided
// by the number of CPUs. Its interrupt is masked (the machine boots the
// kernel without a driver for the clock) and stays pending (register C is never
// read), so the guest spends nothing on it.
func interleave() error {
	// The permission is the thread's; the thread is given up with it.
	failed := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := unix.Ioperm(rtcIndex, 2, 1); err != nil {
			failed <- fmt.Errorf("ask for the clock's ports: %w", err)
			return
		}
		outb(rtcIndex, rtcRegisterA)
		outb(rtcData, rtcRate8192)
		outb(rtcIndex, rtcRegisterB)
		outb(rtcData, rtcPeriodic)
		failed <- nil
	}()
	return <-failed
}
