package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Check tells whether value can stand as match key in a rule: nil, or an
// error in the form "fault: fix".
type Check func(key, value string) error

// Read reads and checks the file at path. The error is a *Faults when the
// file was read and refused; else it wraps a Fault, and fs.ErrNotExist when there is no file.
func Read(path string, check Check) (*Config, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, check)
}

// readFile reads a regular file of at most MaxFile bytes. It looks before it
// opens, since opening a device can do things, and opens without blocking and
// looks again, since the file can be exchanged for a FIFO in between.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil {
		err = regular(path, info)
	}
	if err != nil {
		return nil, plain(path, err)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, plain(path, err)
	}
	defer f.Close()
	info, err = f.Stat()
	if err == nil {
		err = regular(path, info)
	}
	if err != nil {
		return nil, plain(path, err)
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, plain(path, err)
	}
	if len(data) > MaxFile {
		return nil, tooLarge(path)
	}
	return data, nil
}

func regular(path string, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular() && info.Size() > MaxFile:
		return tooLarge(path)
	case mode.IsRegular():
		return nil
	default:
		return &Faults{List: []Fault{{
			File:  path,
			Fault: "is " + kind(mode) + ", not a file",
			Fix:   "name a regular file",
		}}}
	}
}

func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}

func tooLarge(path string) error {
	return &Faults{List: []Fault{{
		File:  path,
		Fault: fmt.Sprintf("is larger than %d MB", MaxFile>>20),
		Fix:   "join rules with patterns (*, **) until it fits",
	}}}
}

// unread is why a file could not be read: a Fault that is also what the operating system said.
type unread struct {
	Fault
	cause error
}

func (u *unread) Unwrap() []error { return []error{u.Fault, u.cause} }

// plain gives an operating system error our form and keeps its identity.
func plain(path string, err error) error {
	var faults *Faults
	var failed *fs.PathError
	switch {
	case errors.As(err, &faults):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return &unread{Fault{File: path, Fault: fs.ErrNotExist.Error(), Fix: "create it, or name another file with --config"}, err}
	case errors.Is(err, fs.ErrPermission):
		return &unread{Fault{File: path, Fault: fs.ErrPermission.Error(), Fix: "run as a user who may read it"}, err}
	case errors.As(err, &failed):
		return &unread{Fault{File: path, Fault: failed.Op + ": " + failed.Err.Error(), Fix: "look at the file, or name another one with --config"}, err}
	}
	return fmt.Errorf("read configuration: %w", err)
}
