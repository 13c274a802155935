// Package cpufreq holds the CPUs of a machine at a frequency, and puts back what was set
// before, by what the kernel calls a policy: CPUs that share a frequency.
//
// It is for measurements: package fairness asks it. What it reads is the kernel's, and is
// bounded and checked as anything else.
package cpufreq

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"rota/internal/kernfile"
)

// Dir is where the kernel has its policies.
const Dir = "/sys/devices/system/cpu/cpufreq"

const (
	maxCPU  = 1023
	minFile = "scaling_min_freq"
	maxFile = "scaling_max_freq"
)

// ErrNone is that this machine has no frequencies to set.
var ErrNone = errors.New("the kernel has no frequencies to set: a virtual machine, or no driver for these CPUs: measure on the machine itself")

// Policy is the CPUs that share a frequency. All frequencies are in kHz.
type Policy struct {
	Name        string // as the kernel has it: policy0
	CPUs        []int  // that are online, ascending
	Top, Bottom int    // the highest and the lowest frequency of the hardware

	dir       string
	lock      *os.File
	low, high int // what was set before
	write     func(path, text string) error
}

// Open takes the policy of a CPU for this process alone. dir is Dir. It fails where there is
// no policy (ErrNone) or its frequency must not be set. It sets nothing yet.
func Open(dir string, cpu int) (*Policy, error) {
	found, _ := filepath.Glob(filepath.Join(dir, "policy*"))
	for _, path := range found {
		p := &Policy{Name: filepath.Base(path), dir: path, write: write}
		err := p.readCPUs()
		// Of a policy whose CPUs are all offline no file can be read.
		if errors.Is(err, unix.EBUSY) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if slices.Contains(p.CPUs, cpu) {
			if err := p.open(); err != nil {
				return nil, err
			}
			return p, nil
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s is empty: %w", dir, ErrNone)
	}
	return nil, fmt.Errorf("CPU %d: no policy of %s has it: it is offline, or has no driver: choose another one", cpu, dir)
}

// OpenLast is Open for the last of these CPUs, which are ascending, for which that works.
func OpenLast(dir string, cpus []int) (p *Policy, cpu int, err error) {
	err = errors.New("no CPU may be used")
	for _, cpu := range slices.Backward(cpus) {
		var fault error
		if p, fault = Open(dir, cpu); fault == nil {
			return p, cpu, nil
		}
		err = fault
	}
	return nil, 0, err
}

// open reads what is set, sees that it may be set, and keeps others of this kind away.
func (p *Policy) open() (err error) {
	for _, one := range []struct {
		name string
		into *int
	}{{"cpuinfo_max_freq", &p.Top}, {"cpuinfo_min_freq", &p.Bottom}, {minFile, &p.low}, {maxFile, &p.high}} {
		if *one.into, err = p.number(one.name); err != nil {
			return err
		}
	}
	if p.Bottom > p.Top || p.low > p.high {
		return fmt.Errorf("%s: frequencies %d..%d kHz, set to %d..%d: the driver contradicts itself: report it to its maintainers", p.Name, p.Bottom, p.Top, p.low, p.high)
	}
	for _, name := range []string{minFile, maxFile} {
		f, err := os.OpenFile(filepath.Join(p.dir, name), os.O_WRONLY, 0)
		if err != nil {
			return p.refused(name, err)
		}
		f.Close()
	}
	if p.lock, err = os.Open(p.dir); err != nil {
		return p.refused("", err)
	}
	if err := unix.Flock(int(p.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		p.lock.Close()
		return fmt.Errorf("%s: another measurement sets it: wait for its end", p.Name)
	}
	return nil
}

// Hold keeps the CPUs at a frequency; Restore ends that.
func (p *Policy) Hold(khz int) error {
	if khz < p.Bottom || khz > p.Top {
		return fmt.Errorf("%s: %d MHz: must be %d..%d", p.Name, khz/1000, p.Bottom/1000, p.Top/1000)
	}
	return p.set(khz, khz)
}

// Restore puts back what was set when the policy was opened: as the kernel had it then, with
// what heat or power took from it.
func (p *Policy) Restore() error {
	if err := p.set(p.low, p.high); err != nil {
		return fmt.Errorf("%w; what was set before must be put back by hand: %s", err, p.ByHand())
	}
	return nil
}

// Limited says what limits the frequency already, which need not be what somebody set:
// Restore makes it last. "": nothing does.
func (p *Policy) Limited() string {
	if p.high == p.Top {
		return ""
	}
	return fmt.Sprintf("%s: limited to %d of %d MHz, and will be again at the end; if heat or power limits it now, that limit will last: then stop this and begin on a cool machine", p.Name, p.high/1000, p.Top/1000)
}

// Close lets go of the policy.
func (p *Policy) Close() { p.lock.Close() }

// ByHand is the command that puts back what was set before.
func (p *Policy) ByHand() string {
	low, high := filepath.Join(p.dir, minFile), filepath.Join(p.dir, maxFile)
	return fmt.Sprintf("echo %d > %s; echo %d > %s; echo %d > %s", p.high, high, p.low, low, p.high, high)
}

// set sets both limits, in an order in which the lower one is never above the higher.
func (p *Policy) set(low, high int) error {
	now, err := p.number(minFile)
	if err != nil {
		return err
	}
	order := []string{maxFile, minFile}
	if high < now {
		order = []string{minFile, maxFile}
	}
	for _, name := range order {
		khz := high
		if name == minFile {
			khz = low
		}
		if err := p.write(filepath.Join(p.dir, name), strconv.Itoa(khz)+"\n"); err != nil {
			return fmt.Errorf("%d MHz: %w", khz/1000, p.refused(name, err))
		}
	}
	return nil
}

// write writes a file that is there. The kernel's have no length; what stands for them may.
func write(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// Now is the frequency that the CPUs have.
func (p *Policy) Now() (khz int, err error) {
	// The first is what the CPU had; the second, where the first is missing, may be
	// what was asked for.
	if khz, err = p.number("cpuinfo_avg_freq"); err != nil {
		khz, err = p.number("scaling_cur_freq")
	}
	return khz, err
}

func (p *Policy) readCPUs() error {
	text, err := p.read("affected_cpus")
	if err != nil {
		return err
	}
	for _, word := range strings.Fields(text) {
		cpu, err := strconv.Atoi(word)
		if err != nil || cpu < 0 || cpu > maxCPU {
			return fmt.Errorf("%s: affected_cpus: %q is not a CPU", p.Name, kernfile.Clip(word))
		}
		p.CPUs = append(p.CPUs, cpu)
	}
	slices.Sort(p.CPUs)
	return nil
}

// number reads a frequency, 1 kHz to 1 THz.
func (p *Policy) number(name string) (int, error) {
	n, err := kernfile.Number(os.DirFS("/"), p.path(name), 1, 1e9)
	var path *fs.PathError
	if errors.As(err, &path) {
		return 0, p.refused(name, err)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: frequency in kHz: %w", p.Name, err)
	}
	return int(n), nil
}

func (p *Policy) read(name string) (string, error) {
	return kernfile.Read(os.DirFS("/"), p.path(name))
}

// path is a file of the policy as os.DirFS("/") wants it.
func (p *Policy) path(name string) string {
	return strings.TrimPrefix(filepath.Join(p.dir, name), "/")
}

// refused says what to do about an error of one of the policy's files.
func (p *Policy) refused(name string, err error) error {
	fix := ""
	switch {
	case errors.Is(err, unix.EROFS):
		fix = ": the kernel's files are read-only here, as in a container: run it on the machine itself"
	case errors.Is(err, fs.ErrPermission):
		fix = ": run as root"
	case errors.Is(err, unix.EINVAL):
		fix = ": the driver refuses this frequency: name others"
	case errors.Is(err, fs.ErrNotExist):
		fix = ": the driver of this CPU does not let it be set: choose another CPU"
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("%s: %s: %w%s", p.Name, name, err, fix)
}
