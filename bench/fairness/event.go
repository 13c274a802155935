package fairness

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Event is what perf_event_open calls type and config.
type Event struct {
	Kind   uint32
	Config uint64
}

// Instructions are those that a program executes outside the kernel.
func Instructions() *Event {
	return &Event{unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_INSTRUCTIONS}
}

// open counts the event in a process and those that it will start, each from its next exec
// on; what the processor counts, outside the kernel only.
func (e Event) open(pid int) (fd int, err error) {
	attr := unix.PerfEventAttr{
		Type: e.Kind, Config: e.Config, Size: unix.PERF_ATTR_SIZE_VER7,
		Read_format: unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING,
		Bits:        unix.PerfBitDisabled | unix.PerfBitInherit | unix.PerfBitEnableOnExec | unix.PerfBitExcludeHv,
	}
	if e.Kind != unix.PERF_TYPE_TRACEPOINT { // which are in the kernel
		attr.Bits |= unix.PerfBitExcludeKernel
	}
	fd, err = unix.PerfEventOpen(&attr, pid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("count the progress: %w%s", err, eventFix(err))
	}
	return fd, nil
}

func eventFix(err error) string {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENODEV):
		return ": this machine does not count that, a hypervisor may hide it: choose another --progress, such as lines"
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return ": not permitted: run as root, or choose --progress lines"
	}
	return ""
}

// readEvent is how often it happened. An event that shares a counter of the processor with
// others is extrapolated from the time that it had it.
func readEvent(fd int) (float64, error) {
	var b [24]byte
	n, err := unix.Read(fd, b[:])
	if err != nil || n != len(b) {
		return 0, fmt.Errorf("read the progress: %d bytes: %w", n, err)
	}
	count, enabled, running := binary.NativeEndian.Uint64(b[:]), binary.NativeEndian.Uint64(b[8:]), binary.NativeEndian.Uint64(b[16:])
	return scaled(count, enabled, running), nil
}

func scaled(count, enabled, running uint64) float64 {
	if running == 0 || running >= enabled {
		return float64(count)
	}
	return float64(count) * float64(enabled) / float64(running)
}
