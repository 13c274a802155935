// Package kernfile reads the small files by which the kernel says what a machine is: sysfs,
// procfs, tracefs. They are the kernel's, or of whoever mounted something in their place, and
// so what is read is bounded, and what is quoted of it clipped.
package kernfile

import (
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
)

const (
	maxRead  = 4 << 20 // bytes: /proc/interrupts of a large machine
	maxQuote = 60      // bytes
)

// Read returns a file of root, "/" of the machine; of more than 4 MiB the beginning.
func Read(root fs.FS, name string) (string, error) {
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRead))
	return string(data), err
}

// Number returns what a file of root says, which must be a number of least..most.
func Number(root fs.FS, name string, least, most uint64) (uint64, error) {
	text, err := Read(root, name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("/%s: %q is not a number of %d..%d", name, Clip(text), least, most)
	}
	return n, nil
}

// Clip shortens what is quoted in an error.
func Clip(text string) string { return strings.ToValidUTF8(text[:min(len(text), maxQuote)], "?") }
