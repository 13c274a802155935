package guest

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mountAll makes the usual tree. What a kernel lacks (sched_ext's, say) is
// left out; what every kernel has must succeed.
func mountAll() error {
	for _, m := range []struct {
		kind, dir, options string
		optional           bool
	}{
		{"proc", "/proc", "", false},
		{"sysfs", "/sys", "", false},
		{"devtmpfs", "/dev", "", false},
		{"tmpfs", "/run", "mode=755", false},
		{"tmpfs", "/tmp", "mode=1777", false},
		{"tmpfs", outDir, "size=128m,mode=700", false},
		{"tmpfs", "/dev/shm", "mode=1777", false},
		{"devpts", "/dev/pts", "", true},
		{"cgroup2", cgroupRoot, "", false},
		{"debugfs", "/sys/kernel/debug", "", true},
		{"tracefs", "/sys/kernel/tracing", "", true},
		{"bpf", "/sys/fs/bpf", "", true},
		{"binder", "/dev/binderfs", "", true},
	} {
		err := os.MkdirAll(m.dir, 0o755)
		if err == nil {
			err = unix.Mount(m.kind, m.dir, m.kind, 0, m.options)
		}
		if err != nil && !m.optional && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("mount %s on %s: %w", m.kind, m.dir, err)
		}
	}
	// Schedulers of the scx project want a place for their statistics.
	return os.MkdirAll("/run/scx", 0o755)
}
