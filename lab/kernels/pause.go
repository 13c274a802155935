package kernels

import (
	"bytes"
	"debug/elf"
	"fmt"
)

// The instructions that a wait of the booting kernel is made of.
var (
	pause = []byte{0xf3, 0x90}
	nop   = []byte{0x66, 0x90}
	rdtsc = []byte{0x0f, 0x31}
)

// nearPause is how far from a pause, in bytes, the clock is read in a wait.
const nearPause = 48

// removePauses makes a nop of each pause in the waits of the kernel's start.
//
// Problem: under instruction counting a pause ends the turn of a virtual CPU, which
// costs the host two microseconds. A starting kernel waits 100 ms to calibrate the
// timer of its local APIC, in a loop of rdtsc and pause: eleven million turns, more
// than half of the host's time for a boot.
//
// How: a pause is a hint, and a nop is as long and takes as much virtual time. What
// changes is the code that is thrown away after the start (.init.text), and of it only
// waits for the clock, while one CPU alone runs; two places in Linux 6.1 to 7.2.
//
// Limits: a kernel without sections is left as it is, and one given by its path. Bytes are
// looked at, not instructions: the tests boot every kernel of the list so.
func removePauses(kernel []byte) error {
	f, err := elf.NewFile(bytes.NewReader(kernel))
	if err != nil {
		return fmt.Errorf("uncompressed kernel: %w", err)
	}
	section := f.Section(".init.text")
	if section == nil {
		return nil
	}
	size := uint64(len(kernel))
	if section.Offset > size || section.FileSize > size-section.Offset {
		return fmt.Errorf("uncompressed kernel: section .init.text: ends behind the file: remove its directory of the cache, it is fetched again")
	}
	code := kernel[section.Offset : section.Offset+section.FileSize]
	for at := 0; ; at += len(pause) {
		next := bytes.Index(code[at:], pause)
		if next < 0 {
			return nil
		}
		at += next
		if bytes.Contains(code[max(0, at-nearPause):min(len(code), at+nearPause)], rdtsc) {
			copy(code[at:], nop)
		}
	}
}
