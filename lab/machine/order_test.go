package machine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Each machine has a CPU for itself as long as there are some, and gives it back.
func TestEachMachineHasItsCPU(t *testing.T) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	names := fmt.Sprintf("@rota-test-%d/%%d", os.Getpid()) // no machine has these
	take := func() hostCPU {
		t.Helper()
		c, err := takeCPU(names)
		if err != nil {
			t.Fatal(err)
		}
		if !allowed.IsSet(c.number) {
			t.Errorf("CPU %d is not ours to use", c.number)
		}
		return c
	}
	had := map[int]bool{}
	var last hostCPU
	for range allowed.Count() {
		last = take()
		defer last.give()
		if last.taken == nil || had[last.number] {
			t.Errorf("CPU %d twice", last.number)
		}
		had[last.number] = true
	}
	if shared := take(); shared.taken != nil {
		t.Errorf("CPU %d was taken and is given again", shared.number)
	}
	last.give()
	again := take()
	defer again.give()
	if again.taken == nil || again.number != last.number {
		t.Errorf("CPU %d was not given back", last.number)
	}
}

// A counting machine's program has one CPU, and its first thread goes before what is fair, where
// that is allowed; what it starts does not. A machine on the host's clock is left alone.
func TestMainLoopGoesFirst(t *testing.T) {
	const look = `sleep 0.3
policy() { cut -d' ' -f41 /proc/$1/stat; }
sleep 1 & child=$!
cpus=$(sed -n 's/Cpus_allowed_list:[^0-9]*//p' /proc/$$/status)
echo "$(policy $$) $(policy $child) $cpus" >"$results"`
	for _, realtime := range []bool{false, true} {
		m := script(t, look)
		m.Realtime = realtime
		out, err := m.Run(context.Background())
		words := strings.Fields(string(out.Results))
		if err != nil || len(words) != 3 {
			t.Fatalf("%q, %v", out.Results, err)
		}
		policy, child, cpus := words[0], words[1], words[2]
		_, oneCPU := strconv.Atoi(cpus)
		if want := policyOfMainLoop(t, realtime); policy != strconv.Itoa(want) || child != "0" {
			t.Errorf("realtime %v: policy %s, of its child %s; want %d and 0", realtime, policy, child, want)
		}
		if !realtime && oneCPU != nil {
			t.Errorf("it has CPUs %s, not one", cpus)
		}
		if all := ownCPUs(t); realtime && cpus != all {
			t.Errorf("it has CPUs %s, not %s", cpus, all)
		}
	}
}

// policyOfMainLoop is what a machine's first thread can have here.
func policyOfMainLoop(t *testing.T, realtime bool) int {
	t.Helper()
	if realtime {
		return unix.SCHED_NORMAL
	}
	cmd := exec.Command("sleep", "100")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	if unix.SchedSetAttr(cmd.Process.Pid, &attr, 0) != nil {
		return unix.SCHED_NORMAL
	}
	return unix.SCHED_FIFO
}

func ownCPUs(t *testing.T) string {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(status), "Cpus_allowed_list:")
	list, _, _ = strings.Cut(list, "\n")
	return strings.TrimSpace(list)
}

// Where SCHED_FIFO is not allowed the other threads step behind, the first one stays.
func TestOthersStepBehind(t *testing.T) {
	if os.Getenv("ROTA_TEST_SLEEP") != "" {
		time.Sleep(time.Minute) // a program of Go has three threads and more
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestOthersStepBehind$")
	cmd.Env = append(os.Environ(), "ROTA_TEST_SLEEP=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	stepBehind(cmd.Process.Pid, make(chan struct{}))
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	behind := 0
	for _, thread := range threads {
		tid, _ := strconv.Atoi(thread.Name())
		attr, err := unix.SchedGetAttr(tid, 0)
		if err != nil {
			t.Fatal(err)
		}
		first := tid == cmd.Process.Pid
		if first && attr.Policy != unix.SCHED_NORMAL {
			t.Errorf("the first thread has policy %d", attr.Policy)
		}
		if !first && attr.Policy == unix.SCHED_IDLE {
			behind++
		}
	}
	if behind < threadsOfQEMU-1 {
		t.Errorf("%d of %d threads stepped behind", behind, len(threads))
	}
}

// Who looks for threads that never come ends with the program.
func TestStepBehindEnds(t *testing.T) {
	ended := make(chan struct{})
	close(ended)
	cmd := exec.Command("sleep", "100")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stepBehind(cmd.Process.Pid, ended)
	cmd.Process.Kill()
	cmd.Wait()
	stepBehind(cmd.Process.Pid, nil)
}
