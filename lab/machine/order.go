package machine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// QEMU counts instructions on one thread and lets idle time pass on another, its main loop, which
// also runs timers that it finds due, and then the virtual CPUs take their turns otherwise than
// when the first one does. Each timer wakes the main loop. When it comes late it comes at any
// moment, and what the guest does then depends on the host's load: docs/decisions/0027-order.md.
//
// So both have one CPU of the host, and the main loop always goes first: it runs when the other
// has woken it, as part of what that did, and never beside it.

// mainLoopPriority is that of SCHED_FIFO: before what is fair, behind all else.
const mainLoopPriority = 1

// threadsInterval is how often QEMU's threads are looked for until all are there.
const threadsInterval = 5 * time.Millisecond

// threadsOfQEMU are its main loop, the one that frees memory, and the one that counts.
const threadsOfQEMU = 3

// cpuNames are those of the sockets that say which CPUs have a machine.
const cpuNames = "@rota-lab/cpu/%d"

// hostCPU is one that a machine has.
type hostCPU struct {
	number int
	taken  net.Listener // nil = all were taken, and it is shared
}

// takeCPU takes a CPU that this thread may use and no other machine has. A socket's name says that
// it is taken, also to other processes: the kernel gives it back whatever becomes of us.
func takeCPU(names string) (hostCPU, error) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return hostCPU{}, fmt.Errorf("machine: which CPUs of the host: %w", err)
	}
	var cpus []int
	for cpu := len(allowed)*strconv.IntSize - 1; cpu >= 0; cpu-- { // the first ones serve most interrupts
		if allowed.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	for _, cpu := range cpus {
		if taken, err := net.Listen("unix", fmt.Sprintf(names, cpu)); err == nil {
			return hostCPU{cpu, taken}, nil
		}
	}
	return hostCPU{number: cpus[rand.IntN(len(cpus))]}, nil
}

func (c hostCPU) give() {
	if c.taken != nil {
		c.taken.Close()
	}
}

// start starts cmd where it and all its threads have no other CPU.
func (c hostCPU) start(cmd *exec.Cmd) error {
	var before, one unix.CPUSet
	one.Set(c.number)
	if err := errors.Join(unix.SchedGetaffinity(0, &before), unix.SchedSetaffinity(0, &one)); err != nil {
		return fmt.Errorf("CPU %d of the host: %w", c.number, err)
	}
	return errors.Join(cmd.Start(), unix.SchedSetaffinity(0, &before))
}

// mainLoopFirst lets QEMU's first thread run before its others until ended is closed. Who may not
// have SCHED_FIFO has the others step behind: then all other work of this CPU goes before them, too.
func mainLoopFirst(pid int, ended <-chan struct{}) error {
	first := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: mainLoopPriority, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	err := unix.SchedSetAttr(pid, &first, 0)
	if err == nil || errors.Is(err, unix.ESRCH) {
		return nil
	}
	if !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("QEMU's main loop under SCHED_FIFO: %w", err)
	}
	go stepBehind(pid, ended)
	return nil
}

// stepBehind gives all threads but the first SCHED_IDLE, once they are there.
func stepBehind(pid int, ended <-chan struct{}) {
	last := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}
	for {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return // it has ended
		}
		for _, thread := range threads {
			if tid, err := strconv.Atoi(thread.Name()); err == nil && tid != pid {
				unix.SchedSetAttr(tid, &last, 0) // fails only for a thread that has ended
			}
		}
		if len(threads) >= threadsOfQEMU {
			return
		}
		select {
		case <-ended:
			return
		case <-time.After(threadsInterval):
		}
	}
}

// startInOrder starts QEMU for a machine that counts, and bounds what it writes before it comes
// first. The calling goroutine has its thread for itself. release gives back what was taken for
// QEMU, once it has ended.
func startInOrder(cmd *exec.Cmd) (release func(), err error) {
	cpu, err := takeCPU(cpuNames)
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	release = func() { close(ended); cpu.give() }
	err = cpu.start(cmd)
	if err == nil {
		err = boundPorts(cmd.Process.Pid)
	}
	if err == nil {
		err = mainLoopFirst(cmd.Process.Pid, ended)
	}
	return release, err
}
