package machine

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
)

// find finds QEMU and refuses one that hangs under instruction counting.
func (m Machine) find(ctx context.Context) (string, error) {
	name := m.QEMU
	if name == "" {
		name = m.Arch.QEMU
	}
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrDot) {
		err = nil
	}
	if err != nil {
		return "", fmt.Errorf("%s: not on this machine; install QEMU 8.1 or newer: %s", name, m.whence())
	}
	version, err := exec.CommandContext(ctx, path, "--version").Output()
	if ctx.Err() != nil {
		return "", fmt.Errorf("%s --version: %w", path, ctx.Err())
	}
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", path, err)
	}
	return path, m.checkVersion(path, string(version))
}

// whence says where QEMU comes from.
func (m Machine) whence() string {
	return "package " + m.Arch.Package + " of Debian 13 or Ubuntu 24.04, on Debian 12 from bookworm-backports"
}

// checkVersion: QEMU 7.2 hangs when it starts the second CPU of kernel 6.1
// under instruction counting.
func (m Machine) checkVersion(path, text string) error {
	match := regexp.MustCompile(`version (\d+)\.(\d+)`).FindStringSubmatch(text)
	if match == nil {
		return fmt.Errorf("%s: says no version; install QEMU 8.1 or newer", path)
	}
	major, _ := strconv.Atoi(match[1])
	minor, _ := strconv.Atoi(match[2])
	if major > 8 || major == 8 && minor >= 1 {
		return nil
	}
	return fmt.Errorf("%s: version %d.%d is too old, counted time hangs in it; install 8.1 or newer: %s", path, major, minor, m.whence())
}
