package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"

	"rota/lab/report"
)

// writeResults writes results, which may have taken hours. When that fails, older ones stay,
// unless they can only be written in their place.
func writeResults(path string, r report.Results) error {
	var text bytes.Buffer
	if err := report.Write(&text, r); err != nil {
		return err
	}
	file, old, ok := replaceable(path)
	var err error
	if ok {
		err = replace(file, old, text.Bytes())
	}
	if !ok || inPlace(err) {
		err = os.WriteFile(path, text.Bytes(), 0o666)
	}
	if err != nil {
		return fmt.Errorf("results %s: %w", path, err)
	}
	return nil
}

// inPlace tells whether a file can be written in its place only: nobody may make another one
// beside it, give that to its owner, or rename it (a file that was mounted into a container).
func inPlace(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EBUSY)
}

// replaceable finds the file that a path leads to, if a new one may have its name: not a pipe
// or a device, nor /dev/stdout, whatever it is. old is nil where nothing is yet.
func replaceable(path string) (file string, old fs.FileInfo, ok bool) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return path, nil, true
	}
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", nil, false
	}
	old, err = os.Stat(file)
	return file, old, err == nil && old.Mode().IsRegular() && !isOutput(old)
}

// isOutput tells whether a file is what this program prints to, which must go on there.
func isOutput(file fs.FileInfo) bool {
	for _, output := range []*os.File{os.Stdout, os.Stderr} {
		if st, err := output.Stat(); err == nil && os.SameFile(st, file) {
			return true
		}
	}
	return false
}

// replace writes beside the file, on the same file system, and renames: the file keeps its mode
// and its owner.
func replace(file string, old fs.FileInfo, text []byte) error {
	f, err := renameio.NewPendingFile(file, renameio.WithTempDir(filepath.Dir(file)),
		renameio.WithPermissions(0o666), renameio.WithExistingPermissions())
	if err != nil {
		return err
	}
	defer f.Cleanup() // does nothing when all went well
	if old != nil {
		owner := old.Sys().(*syscall.Stat_t)
		if err := f.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
			return err
		}
	}
	if _, err := f.Write(text); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}
