package scenario

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rota/lab/guest"
)

const (
	frequencyFound = 11 * time.Second // until rota has asked again on a machine that had none
	cpufreqDir     = "/sys/devices/system/cpu/cpufreq"
	speedFile      = "/tmp/speed"
)

// slowMachine is a machine whose frequency the scenario chooses. There is none in a
// virtual machine: rota reads files that look like the kernel's, in their place, and the
// programs take as long as they would.
type slowMachine struct{ cpus int }

func newSlowMachine(g *guest.Guest) (*slowMachine, error) {
	if err := unix.Mount("tmpfs", cpufreqDir, "tmpfs", 0, ""); err != nil {
		return nil, fmt.Errorf("mount over %s: %w", cpufreqDir, err)
	}
	m := &slowMachine{cpus: g.CPUs}
	if err := os.Mkdir(filepath.Join(cpufreqDir, "policy0"), 0o755); err != nil {
		return nil, err
	}
	members := ""
	for cpu := range g.CPUs {
		members += strconv.Itoa(cpu) + " "
	}
	top := strconv.Itoa(topFrequency * 1000)
	for name, text := range map[string]string{"affected_cpus": members, "cpuinfo_max_freq": top} {
		if err := m.write(name, text); err != nil {
			return nil, err
		}
	}
	err := m.set(topFrequency)
	g.Sleep(frequencyFound)
	return m, err
}

// bringDaemon brings the threads of the daemon to the CPU of the programs. Elsewhere it would
// take from whom it happens to run beside: the CPUs of this machine share its time, and nobody
// is charged for what another one does.
func bringDaemon(g *guest.Guest) error {
	if g.Scheduler() == nil {
		return nil
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", g.Scheduler().Pid))
	if err != nil || len(threads) == 0 {
		return fmt.Errorf("threads of the scheduler's process %d: %d found: %w", g.Scheduler().Pid, len(threads), err)
	}
	var set unix.CPUSet
	set.Set(1)
	for _, thread := range threads {
		tid, err := strconv.Atoi(filepath.Base(thread))
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("bring thread %d of the scheduler to CPU 1: %w", tid, err)
		}
	}
	return nil
}

func (m *slowMachine) write(name, text string) error {
	// In one piece: rota may read at any moment.
	path := filepath.Join(cpufreqDir, "policy0", name)
	if err := os.WriteFile(path+"~", []byte(text+"\n"), 0o644); err != nil {
		return err
	}
	return os.Rename(path+"~", path)
}

// set changes the frequency, for rota and for the programs.
func (m *slowMachine) set(mhz int) error {
	if err := m.write("scaling_cur_freq", strconv.Itoa(mhz*1000)); err != nil {
		return err
	}
	f, err := os.OpenFile(speedFile, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(binary.NativeEndian.AppendUint64(nil, uint64(perMille(mhz))))
	return err
}

// wander changes the frequency all the time, until what it returns is called, which says what
// went wrong.
func (m *slowMachine) wander(g *guest.Guest) (stop func() error) {
	quit, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		steps := frequencySteps()
		for random := g.Rand("wander"); ; {
			select {
			case <-quit:
				ended <- nil
				return
			case <-time.After(wanderTime):
			}
			if err := m.set(steps[random.Intn(len(steps))]); err != nil {
				ended <- err
				return
			}
		}
	}()
	return func() error {
		close(quit)
		return <-ended
	}
}

// speed is what cpufreq says: the frequency, 1 is the top one.
func (m *slowMachine) speed() (float64, error) {
	text, err := os.ReadFile(filepath.Join(cpufreqDir, "policy0", "scaling_cur_freq"))
	if err != nil {
		return 0, err
	}
	khz, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return float64(khz) / 1000 / float64(topFrequency), err
}

// perMille is a frequency in per mille of the top one.
func perMille(mhz int) int {
	return (1000*mhz + topFrequency/2) / topFrequency
}
