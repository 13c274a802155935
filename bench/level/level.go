// Package level is the level at which the kernel schedules a thread: policy,
// real-time priority and nice. The benches read it and set it; it costs one
// system call each way and nothing is kept.
package level

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Level is how the kernel schedules one thread.
type Level struct {
	Policy   uint32
	Nice     int32
	Priority uint32 // of a real-time policy, else 0
}

// Policies of linux/sched.h.
const (
	Other = 0
	Fifo  = 1
	RR    = 2
)

// MaxPriority is the highest of SCHED_FIFO.
const MaxPriority = 99

// names of the policies, by number.
var names = [...]string{"SCHED_OTHER", "SCHED_FIFO", "SCHED_RR", "SCHED_BATCH", "SCHED_ISO", "SCHED_IDLE", "SCHED_DEADLINE", "SCHED_EXT"}

// Name is the policy's name.
func (l Level) Name() string {
	if int(l.Policy) < len(names) {
		return names[l.Policy]
	}
	return fmt.Sprintf("policy %d", l.Policy)
}

// Mine is the level of the calling thread. It does not tell Go's scheduler of
// its system call, so that a measured span holds nothing else.
func Mine() (Level, error) {
	attr := unix.SchedAttr{}
	_, _, errno := unix.RawSyscall6(unix.SYS_SCHED_GETATTR, 0, uintptr(unsafe.Pointer(&attr)), unix.SizeofSchedAttr, 0, 0, 0)
	if errno != 0 {
		return Level{}, fmt.Errorf("read the own policy: %w", errno)
	}
	return Level{Policy: attr.Policy, Nice: attr.Nice, Priority: attr.Priority}, nil
}

// Set gives the calling thread a level.
func (l Level) Set() error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: l.Policy, Priority: l.Priority, Nice: l.Nice}
	if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
		return fmt.Errorf("set %s, priority %d, nice %d: %w; run as root", l.Name(), l.Priority, l.Nice, err)
	}
	return nil
}

// CPU is the CPU that the calling thread runs on.
func CPU() uint32 {
	var cpu uint32
	unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0)
	return cpu
}
