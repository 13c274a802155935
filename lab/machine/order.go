package machine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// QEMU counts instructions on one thread and lets idle time pass on another, its main loop, which
// also runs timers that it finds due, and then the virtual CPUs take their turns otherwise than
// when the first one does. Each timer wakes the main loop. When it comes late it comes at any
// moment, and what the guest does then depends on the host's load: docs/decisions/0027-order.md.
//
// So both have one CPU of the host, and the main loop always goes first: it runs when the other
// has woken it, as part of what that did, and never beside it.

// mainLoopFirst is how QEMU's first thread runs: before what is fair, behind all else. Its other
// threads do not get that from it.
var mainLoopFirst = unix.SchedAttr{
	Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK,
}

const (
	// cpuNames are of the sockets that say which CPUs have a machine: a CPU's number, and which
	// of its machines it is, from 0 on.
	cpuNames   = "@rota-lab/cpu/%d/%d"
	mostPerCPU = 64
	mostCPUs   = 1 << 16 // that a kernel can have
)

// Ordered says why QEMU's threads have no order here, nil if they have one. Without CAP_SYS_NICE
// (or a limit of real-time priority, ulimit -r) it is EPERM, and on a busy host the same run may then
// give other results.
func Ordered() error {
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this function
		first := mainLoopFirst
		failed <- unix.SchedSetAttr(0, &first, 0)
	}()
	return <-failed
}

// hostCPU is a CPU of the host that a machine has.
type hostCPU struct {
	number int
	taken  net.Listener // nil = nothing says that it is taken
}

// takeCPU takes one of the CPUs that this thread may use, one without a machine if there is one,
// else one with few. A socket's name says that it is taken, also to other processes of the same
// network namespace: the kernel gives it back whatever becomes of us.
func takeCPU(names string) (hostCPU, error) {
	allowed, err := allowedCPUs()
	if err != nil {
		return hostCPU{}, err
	}
	var cpus []int
	for cpu := range mostCPUs {
		if allowed.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	// Machines that do not see each other's sockets are not all to begin with the same one.
	rand.Shuffle(len(cpus), func(i, j int) { cpus[i], cpus[j] = cpus[j], cpus[i] })
	for nth := range mostPerCPU {
		for _, cpu := range cpus {
			taken, err := net.Listen("unix", fmt.Sprintf(names, cpu, nth))
			if err == nil || !errors.Is(err, unix.EADDRINUSE) {
				return hostCPU{cpu, taken}, nil
			}
		}
	}
	return hostCPU{number: cpus[0]}, nil
}

// allowedCPUs are those that this thread may use, in a set that has room for all of the host.
func allowedCPUs() (unix.CPUSetDynamic, error) {
	for room := 1024; ; room *= 2 {
		set := unix.NewCPUSet(room)
		err := unix.SchedGetaffinityDynamic(0, set)
		if err == nil || room >= mostCPUs || !errors.Is(err, unix.EINVAL) {
			return set, err
		}
	}
}

func (c hostCPU) release() {
	if c.taken != nil {
		c.taken.Close()
	}
}

// start starts cmd where it and all its threads have no other CPU. The calling goroutine has its
// thread for itself.
func (c hostCPU) start(cmd *exec.Cmd) error {
	before, err := allowedCPUs()
	if err != nil {
		return err
	}
	one := unix.NewCPUSet(c.number + 1)
	one.Set(c.number)
	if err := unix.SchedSetaffinityDynamic(0, one); err != nil {
		return fmt.Errorf("run on CPU %d of the host: %w", c.number, err)
	}
	err = cmd.Start()
	if again := unix.SchedSetaffinityDynamic(0, before); again != nil {
		runtime.LockOSThread() // once more than it is unlocked: nobody else may get this thread
		err = errors.Join(err, fmt.Errorf("go back from CPU %d of the host: %w", c.number, again))
	}
	return err
}

// startInOrder starts QEMU for a machine that counts, and bounds what it writes before it comes
// first. release ends what was taken for QEMU, once that has ended.
func startInOrder(cmd *exec.Cmd) (release func(), err error) {
	cpu, err := takeCPU(cpuNames)
	if err != nil {
		return nil, fmt.Errorf("which CPUs of the host: %w", err)
	}
	err = cpu.start(cmd)
	if err == nil {
		err = boundPorts(cmd.Process.Pid)
	}
	if err == nil {
		first := mainLoopFirst
		err = unix.SchedSetAttr(cmd.Process.Pid, &first, 0)
	}
	if errors.Is(err, unix.ESRCH) {
		err = nil // it has ended already, and says why itself
	}
	return cpu.release, err
}
