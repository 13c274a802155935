package guest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const cgroupRoot = "/sys/fs/cgroup"

// Cgroup is a group of the unified hierarchy.
type Cgroup struct {
	Path string // below the root, as Cmd.Cgroup wants it
}

// Cgroup makes the group path ("a/b") with the controllers cpu and cpuset
// switched on in it; it may exist already.
func (g *Guest) Cgroup(path string) (Cgroup, error) {
	path = filepath.Clean("/" + path)[1:]
	dir := cgroupRoot
	for _, part := range strings.Split(path, "/") {
		control := filepath.Join(dir, "cgroup.subtree_control")
		if err := os.WriteFile(control, []byte("+cpu +cpuset"), 0); err != nil {
			return Cgroup{}, fmt.Errorf("cgroup %q: switch controllers on in %s: %w", path, dir, err)
		}
		dir = filepath.Join(dir, part)
		if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
			return Cgroup{}, fmt.Errorf("cgroup %q: %w", path, err)
		}
	}
	return Cgroup{Path: path}, nil
}

// SetWeight sets cpu.weight, 1..10000, 100 by default.
func (c Cgroup) SetWeight(weight int) error { return c.Write("cpu.weight", strconv.Itoa(weight)) }

// SetMax sets cpu.max: so much CPU time in each period of 100 ms, 0: no limit.
func (c Cgroup) SetMax(quota time.Duration) error {
	text := "max"
	if quota > 0 {
		text = fmt.Sprintf("%d 100000", quota.Microseconds())
	}
	return c.Write("cpu.max", text)
}

// SetCpus sets cpuset.cpus, a list such as "0-1".
func (c Cgroup) SetCpus(list string) error { return c.Write("cpuset.cpus", list) }

// Add moves a process into the group.
func (c Cgroup) Add(pid int) error { return c.Write("cgroup.procs", strconv.Itoa(pid)) }

// Write writes one of the group's files.
func (c Cgroup) Write(file, text string) error {
	if err := os.WriteFile(filepath.Join(cgroupRoot, c.Path, file), []byte(text), 0); err != nil {
		return fmt.Errorf("cgroup %q: set %s to %q: %w", c.Path, file, text, err)
	}
	return nil
}

// Read reads one of the group's files.
func (c Cgroup) Read(file string) (string, error) {
	b, err := os.ReadFile(filepath.Join(cgroupRoot, c.Path, file))
	if err != nil {
		return "", fmt.Errorf("cgroup %q: %w", c.Path, err)
	}
	return strings.TrimSpace(string(b)), nil
}
