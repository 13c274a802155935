package scenario

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"rota/lab/guest"
	"rota/lab/scenario/output"
)

// machineFaults are changes of the machine that a scheduler must take in its stride.
func machineFaults() []fault {
	return []fault{
		{name: "hotplug", label: "CPUs taken offline and back", run: hotplug},
		{name: "readers", label: "a CPU taken offline while who waits there is in an RCU read section", run: readers},
		{name: "cpuset", label: "cpuset shrunk and widened", run: cpuset},
		{name: "limit", label: "cpu.max kept while CPUs and tasks move, then taken away", run: limits},
		{name: "affinity", label: "sched_setaffinity in mid-flight", run: affinity},
		{name: "exec", label: "exec storm", run: execStorm},
		{name: "fork", label: "fork storm", run: forkStorm},
		{name: "pinned", label: "sleeps and wakes while migration is disabled", run: pinned},
		{name: "user", label: "user changed without a new program: class follows", run: user, applies: hasClasses, classesOnly: true},
		{name: "names", label: "200 threads renamed at once: each has the class of its name", run: names, applies: hasClasses, classesOnly: true},
		{name: "suspend", label: "suspend begun and broken off", run: suspend},
	}
}

// hotplug takes each CPU but the first away and gives it back, twice.
func hotplug(r *faultRun) error {
	for range 2 {
		for cpu := r.g.CPUs - 1; cpu > 0; cpu-- {
			if err := r.replug(cpu); err != nil {
				return err
			}
		}
	}
	return r.survived()
}

// setOnline takes a CPU away ("0") or gives it back ("1").
func setOnline(cpu int, online string) error {
	file := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", cpu)
	if err := os.WriteFile(file, []byte(online), 0); err != nil {
		return fmt.Errorf("set CPU %d online to %s: %w", cpu, online, err)
	}
	return nil
}

// readerLimit is how long a CPU may take to go offline and come back. It waits for several
// grace periods, each for who reads and waits for a turn, the starvation bound at most; after
// 21 s the kernel ends the scheduler.
const readerLimit = 10 * time.Second

// readers takes a CPU away on which tasks wait that were preempted inside read sections of
// RCU: over their cap, of tier background, and bound to that CPU. The kernel waits for
// these sections before the CPU is gone, and the CPU looks at no queue any more.
func readers(r *faultRun) error {
	s := newStage(r.g, "readers")
	defer s.stop()
	last := strconv.Itoa(r.g.CPUs - 1)
	for _, c := range []guest.Cmd{{Path: "/bin/scarce-walk"}, {Path: "/bin/later-walk"}, {Path: "/bin/bound-walk", CPUs: last}} {
		if err := os.Symlink("walk", c.Path); err != nil {
			return err
		}
		if _, err := s.startHogs(2, c); err != nil {
			return err
		}
	}
	r.g.Sleep(200 * time.Millisecond) // for the class and its cap
	begin := time.Now()
	if err := r.replug(r.g.CPUs - 1); err != nil {
		return err
	}
	took := time.Since(begin).Round(time.Millisecond)
	r.g.Event("readers_replug", took.String())
	if took > readerLimit {
		return fmt.Errorf("a CPU offline and back: took %v, must be at most %v", took, readerLimit)
	}
	return r.survived()
}

// cpuset narrows the CPUs of a group of running hogs step by step.
func cpuset(r *faultRun) error {
	group, err := r.g.Cgroup("faults/box")
	if err != nil {
		return err
	}
	s := newStage(r.g, "cpuset")
	defer s.stop()
	if _, err := s.startHogs(r.g.CPUs, guest.Cmd{Cgroup: group.Path}); err != nil {
		return err
	}
	last := r.g.CPUs - 1
	for _, step := range [][2]int{{0, last}, {0, 1}, {last, last}, {1, last}, {0, 0}, {0, last}} {
		if err := group.SetCpus(fmt.Sprintf("%d-%d", step[0], step[1])); err != nil {
			return err
		}
		loops, err := s.work(500 * time.Millisecond)
		if err != nil {
			return err
		}
		for i, p := range s.procs {
			cpu, err := lastCPU(p.Pid)
			if err != nil {
				return err
			}
			if cpu < step[0] || cpu > step[1] {
				return fmt.Errorf("hog %d: runs on CPU %d half a second after its cpuset became %d-%d", i, cpu, step[0], step[1])
			}
			if loops[i] == 0 {
				return fmt.Errorf("hog %d: did no work for half a second after its cpuset became %d-%d", i, step[0], step[1])
			}
		}
	}
	return r.survived()
}

// lastCPU reads the CPU on which a process runs or last ran.
func lastCPU(pid int) (int, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(data), ") ") // the name may hold blanks
	words := strings.Fields(rest)
	const processor = 39 - 3 // column in proc(5), after pid and name
	if len(words) <= processor {
		return 0, fmt.Errorf("/proc/%d/stat: %d columns: must be more than %d", pid, len(words)+2, processor)
	}
	return strconv.Atoi(words[processor])
}

// affinity changes the masks of running tasks thousands of times.
func affinity(r *faultRun) error {
	const threads = 8
	s := newStage(r.g, "affinity")
	defer s.stop()
	out, err := r.g.Run(guest.Cmd{Path: "affinity", Args: []string{
		strconv.Itoa(threads), "2000", strconv.FormatInt(r.g.Seed&0xffff, 10), s.board, "0"}})
	if err != nil {
		return err
	}
	pairs, err := output.Pairs(out.Stdout)
	if err != nil {
		return err
	}
	if pairs["changes"] < 20 || pairs["wrong_cpu"] > 0 || pairs["stalled"] > 0 {
		return fmt.Errorf("sched_setaffinity: %s: must be at least 20 changes, none on a wrong CPU, none stalled", strings.TrimSpace(out.Stdout))
	}
	return r.survived()
}

func execStorm(r *faultRun) error { return storm(r, "exec") }
func forkStorm(r *faultRun) error { return storm(r, "fork") }

// storm keeps 16 short processes alive while the hogs must go on.
func storm(r *faultRun, kind string) error {
	s := newStage(r.g, kind)
	defer s.stop()
	slot, err := s.startCounting(guest.Cmd{Path: "storm", Args: []string{kind, "16"}}, 1)
	if err != nil {
		return err
	}
	if err := r.survived(); err != nil {
		return err
	}
	board, err := s.read()
	if err != nil {
		return err
	}
	if board[slot].Loops == 0 || board[slot].Errors > 0 {
		return fmt.Errorf("%s storm: %d processes ended, %d of them badly: must be some and none", kind, board[slot].Loops, board[slot].Errors)
	}
	return nil
}

// pinned runs a task that blocks inside a section that forbids migration.
func pinned(r *faultRun) error {
	s := newStage(r.g, "pinned")
	defer s.stop()
	if _, err := s.start(guest.Cmd{Path: "pinned", Args: []string{"200", s.board, "0"}}); err != nil {
		return err
	}
	// Each round waits its turn behind the hogs twice.
	out, err := s.procs[0].WaitFor(20 * time.Second)
	if err != nil {
		return err
	}
	board, err := s.read()
	if err != nil {
		return err
	}
	if board[0].Loops != 200 || board[0].Errors > 0 {
		return fmt.Errorf("pinned: %s with %d faults that did not block: must be none", strings.TrimSpace(out.Stdout), board[0].Errors)
	}
	return r.survived()
}

// suspend begins to suspend. One task sleeps where it can't be frozen, so that
// the kernel, having told everybody and frozen all the others, gives up and
// thaws them. The virtual machine has nothing that would wake it from more.
func suspend(r *faultRun) error {
	const state, limit = "/sys/power/state", "/sys/power/pm_freeze_timeout"
	kinds, err := os.ReadFile(state)
	if err != nil || !strings.Contains(string(kinds), "freeze") {
		return fmt.Errorf("suspend: %w", errNotHere)
	}
	if err := os.WriteFile(limit, []byte("500"), 0); err != nil {
		return err
	}
	s := newStage(r.g, "suspend")
	defer s.stop()
	if _, err := s.start(guest.Cmd{Path: "pinned", Args: []string{"0", s.board, "0"}}); err != nil {
		return err
	}
	if err := waitInFault(r.g, s.procs[0].Pid); err != nil {
		return err
	}
	err = os.WriteFile(state, []byte("freeze"), 0)
	if err == nil {
		return errors.New("suspend: the kernel slept although a task could not be frozen")
	}
	r.g.Event("suspend_broken_off", err.Error())
	return r.survived()
}

// waitInFault waits until the task sleeps in the page fault that is never
// answered: its second thread has then read the fault and waits for the next.
func waitInFault(g *guest.Guest, pid int) error {
	file := fmt.Sprintf("/proc/%d/wchan", pid)
	for range 200 {
		place, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if strings.Contains(string(place), "userfault") {
			return nil
		}
		g.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("suspend: the task that can't be frozen never waited: %w", errNotHere)
}
