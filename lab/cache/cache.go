// Package cache says where the lab keeps what it fetched or built, and lets one
// process at a time change it. It knows nothing of what is kept: lab/kernels and
// lab/peers do.
package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// Dir is the directory of one kind of things, such as "kernels": below
// $ROTA_CACHE, else below rota in $XDG_CACHE_HOME, else in ~/.cache/rota.
func Dir(kind string) (string, error) {
	if dir := os.Getenv("ROTA_CACHE"); dir != "" {
		return filepath.Join(dir, kind), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cache of %s: %w; set ROTA_CACHE to a directory", kind, err)
	}
	return filepath.Join(dir, "rota", kind), nil
}

// Lock makes the directory when it is missing, and waits until no other process
// changes it.
func Lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cache: %w; set ROTA_CACHE to a directory that can be written", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("cache: lock %s: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil
}

// SHA256 is the checksum of a file, in hexadecimal digits.
func SHA256(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// SpaceFix adds the fix to an error that is about a full disk.
func SpaceFix(dir string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: free some space below %s or set ROTA_CACHE to another directory; nothing was kept", err, dir)
	}
	return err
}
