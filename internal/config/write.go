package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"
)

// ReadText reads the text of a file as Read does, for Replace.
func ReadText(path string) ([]byte, error) { return readFile(path) }

// Replace puts a new text in the place of the old one, all of it or nothing. The file
// keeps its mode and its owner; a link stays a link. old is what was read: when
// somebody else has changed the file since, nothing is written.
func Replace(path string, old, text []byte) error {
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return plain(path, err)
	}
	now, err := readFile(file)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, old) {
		return fmt.Errorf("%s: was changed meanwhile: try again", path)
	}
	info, err := os.Stat(file)
	if err != nil {
		return plain(path, err)
	}
	err = replace(file, info, text)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%s: can't be written: %w: run as a user who may, or add the rule by hand", path, err)
	}
	if err != nil {
		return fmt.Errorf("%s: can't be written: %w", path, err)
	}
	return nil
}

// replace writes beside the file, on the same file system, and renames.
func replace(file string, info fs.FileInfo, text []byte) error {
	f, err := renameio.NewPendingFile(file, renameio.WithTempDir(filepath.Dir(file)))
	if err != nil {
		return err
	}
	defer f.Cleanup() // does nothing when all went well
	_, err = f.Write(text)
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && err == nil {
		err = f.Chown(int(owner.Uid), int(owner.Gid))
	}
	// After the owner: changing that takes bits away.
	if err == nil {
		err = f.Chmod(info.Mode().Perm())
	}
	if err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}
