package guest

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// shellPriority is the FIFO priority of everything of ours in the guest: no
// scheduler under test can keep the measuring shell from running.
const shellPriority = 80

// workerArg starts the half that works: /init guest.
const workerArg = "guest"

// consolePort has the kernel's words; the protocol has a port of its own.
const consolePort = "/dev/console"

// Functions finds what a scenario does in the guest, by name.
type Functions func(scenario string) (func(*Guest) error, bool)

// Main is the guest: PID 1 and the worker that it starts. Main of the program
// calls it when the process is PID 1 or IsWorker. It does not return.
func Main(find Functions) {
	if os.Getpid() != 1 {
		work(find)
		os.Exit(0)
	}
	if err := becomeFifo(); err != nil {
		powerOff("init: " + err.Error())
	}
	if err := mountAll(); err != nil {
		powerOff("init: " + err.Error())
	}
	if err := seedRandom(); err != nil {
		powerOff("init: " + err.Error())
	}
	if err := restKhugepaged(); err != nil {
		powerOff("init: " + err.Error())
	}
	unix.Sethostname([]byte("rota-lab"))
	plan, err := readPlan()
	if err != nil {
		powerOff("init: " + err.Error())
	}
	powerOff(supervise(plan))
}

// IsWorker reports whether the program is the worker started by PID 1.
func IsWorker(args []string) bool {
	return len(args) == 2 && args[0] == "/init" && args[1] == workerArg
}

// becomeFifo makes every thread of this process SCHED_FIFO: it sets the
// policy of one thread and becomes itself again from there, so that all
// threads that the new runtime makes inherit it.
func becomeFifo() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	now, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return fmt.Errorf("read own policy: %w", err)
	}
	if now.Policy == 1 {
		return nil
	}
	if err := (stage{Policy: "fifo", Priority: shellPriority}).setPolicy(); err != nil {
		return err
	}
	return syscall.Exec("/init", []string{"/init"}, baseEnv())
}

// khugepagedSleep is for how many ms khugepaged sleeps after each pass.
const khugepagedSleep = "/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs"

// restKhugepaged lets the kernel's thread that looks for huge pages sleep for longer than any
// run. It takes the lock of a program's memory and then, of nice 19, waits for a CPU behind
// the hogs: a measuring program that needs the lock meanwhile stands still for up to seconds.
func restKhugepaged() error {
	err := os.WriteFile(khugepagedSleep, []byte("1000000000"), 0)
	if errors.Is(err, os.ErrNotExist) { // a kernel without huge pages
		return nil
	}
	return err
}

// supervise starts the worker, reaps orphans until it ends, and returns what
// went wrong with it, or "". It ends the worker when the plan's virtual time
// is over.
func supervise(plan Plan) string {
	console, err := os.OpenFile(consolePort, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return "init: " + err.Error()
	}
	worker, err := os.StartProcess("/init", []string{"/init", workerArg}, &os.ProcAttr{
		Dir: "/", Env: baseEnv(), Files: []*os.File{console, console, console},
	})
	if err != nil {
		return "init: start the worker: " + err.Error()
	}
	var expired <-chan time.Time
	if plan.Limit > 0 {
		expired = time.After(plan.Limit - sinceBoot())
	}
	ended := make(chan string, 1)
	go func() { ended <- reap(worker.Pid) }()
	select {
	case fault := <-ended:
		return fault
	case <-expired:
		syscall.Kill(worker.Pid, syscall.SIGKILL)
		return fmt.Sprintf("not finished after %v of virtual time; running: %s", plan.Limit, runningTasks())
	}
}

// reap waits for all children, adopted ones too, until the worker has ended.
func reap(worker int) string {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return "init: wait: " + err.Error()
		case pid != worker:
		case status.Signaled():
			return "the guest program was ended by signal " + status.Signal().String()
		case status.ExitStatus() != 0:
			return fmt.Sprintf("the guest program ended with exit code %d; the console has its last words", status.ExitStatus())
		default:
			return ""
		}
	}
}

// powerOff reports a fault, if any, lets the ports drain and ends the machine.
func powerOff(fault string) {
	if fault != "" {
		fmt.Fprintln(os.Stderr, "rota-lab:", fault)
		if port, err := openResults(); err == nil {
			// A worker that was ended in mid-line leaves a stump.
			port.Write([]byte("\n"))
			w := newWriter(port)
			w.fail(fault)
			w.end(1)
			drain(port)
		}
	}
	unix.Sync()
	go unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	// The orderly way waits for every CPU that is going offline; one that
	// hangs there would keep the machine. A reset ends it too (-no-reboot).
	time.Sleep(5 * time.Second)
	os.WriteFile("/proc/sysrq-trigger", []byte("b"), 0)
	select {}
}

// sinceBoot is the virtual time spent, boot included.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return time.Duration(ts.Nano())
}
