package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stageArg makes the binary become another program: /init exec JSON PATH ARGS.
const stageArg = "exec"

// faultFd is where the stage says why it could not become the program.
const faultFd = 3

// stage is what the re-exec sets before it becomes the program.
type stage struct {
	Policy   string        `json:"policy,omitempty"`
	Priority int           `json:"priority,omitempty"`
	Nice     int           `json:"nice,omitempty"`
	Slice    time.Duration `json:"slice,omitempty"`
	CPUs     string        `json:"cpus,omitempty"`
	Cgroup   string        `json:"cgroup,omitempty"`
	Netns    string        `json:"netns,omitempty"`
}

func stageOf(c Cmd) stage {
	return stage{Policy: c.Policy, Priority: c.Priority, Nice: c.Nice, Slice: c.Slice, CPUs: c.CPUs, Cgroup: c.Cgroup, Netns: c.Netns}
}

// IsStage reports whether the program was started as a stage of Cmd; main
// must then call RunStage at once.
func IsStage(args []string) bool {
	return len(args) >= 4 && args[0] == "/init" && args[1] == stageArg
}

// RunStage sets the attributes and becomes the program; it does not return.
func RunStage(args []string) {
	// The attributes are the calling thread's, and execve keeps them.
	runtime.LockOSThread()
	unix.CloseOnExec(faultFd)
	err := errors.New("stage: bad attributes")
	var s stage
	if json.Unmarshal([]byte(args[2]), &s) == nil {
		if err = s.apply(); err == nil {
			err = syscall.Exec(args[3], args[3:], os.Environ())
		}
	}
	unix.Write(faultFd, []byte(err.Error()))
	os.Exit(127)
}

func (s stage) apply() error {
	if s.Netns != "" {
		if err := enterNetns(s.Netns); err != nil {
			return err
		}
	}
	if s.Cgroup != "" {
		procs := filepath.Join(cgroupRoot, s.Cgroup, "cgroup.procs")
		if err := os.WriteFile(procs, []byte("0"), 0); err != nil {
			return fmt.Errorf("join cgroup %q: %w", s.Cgroup, err)
		}
	}
	return errors.Join(setAffinity(0, s.CPUs), s.setPolicy())
}

// setAffinity says where a task may run, 0 for the calling one; nothing changes for an empty list.
func setAffinity(tid int, cpus string) error {
	if cpus == "" {
		return nil
	}
	set, err := parseCPUs(cpus)
	if err != nil {
		return err
	}
	if err := unix.SchedSetaffinity(tid, &set); err != nil {
		return fmt.Errorf("set affinity %q: %w", cpus, err)
	}
	return nil
}

// policies are the numbers of linux/sched.h.
func policyNumber(name string) (uint32, error) {
	switch name {
	case "", "other":
		return 0, nil
	case "fifo":
		return 1, nil
	case "rr":
		return 2, nil
	case "batch":
		return 3, nil
	case "idle":
		return 5, nil
	case "ext":
		return 7, nil
	}
	return 0, fmt.Errorf("policy %q: must be other, batch, idle, fifo, rr or ext", name)
}

func (s stage) setPolicy() error {
	number, err := policyNumber(s.Policy)
	if err != nil {
		return err
	}
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: number}
	if number == 1 || number == 2 {
		attr.Priority = uint32(s.Priority)
	} else {
		attr.Nice = int32(s.Nice)
		attr.Runtime = uint64(s.Slice)
	}
	if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
		return fmt.Errorf("set policy %q, priority %d, nice %d: %w", s.Policy, s.Priority, s.Nice, err)
	}
	return nil
}

// maxCPU is the last that an affinity can name.
const maxCPU = 1023

// parseCPUs reads a list as in cpuset files: "0-2,5".
func parseCPUs(list string) (unix.CPUSet, error) {
	var set unix.CPUSet
	for _, part := range strings.Split(list, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		a, err1 := strconv.Atoi(low)
		b, err2 := strconv.Atoi(high)
		if err1 != nil || err2 != nil || a < 0 || b < a || b > maxCPU {
			return set, fmt.Errorf("CPUs %q: must be a list such as \"0-2,5\"", list)
		}
		for ; a <= b; a++ {
			set.Set(a)
		}
	}
	return set, nil
}
