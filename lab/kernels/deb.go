package kernels

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// maxUnpacked bounds what one package may unpack to, in bytes.
const maxUnpacked = 4 << 30

// files is where a package is unpacked to: the disk, or a test's failing one.
type files interface {
	Create(path string) (io.WriteCloser, error)
	// Sync returns when all that lies below dir would outlive a power cut.
	Sync(dir string) error
}

type osFiles struct{}

func (osFiles) Create(path string) (io.WriteCloser, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// Sync syncs the file system: packages have thousands of modules, and to wait for
// one after another would take minutes.
func (osFiles) Sync(dir string) error {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) { // nothing of the package was wanted
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// unpackDeb unpacks of a package what a lab needs, kernel, configuration and
// modules, below dir, and syncs it: a row that is in the cache is taken for whole.
// dpkg-deb undoes the compression.
func unpackDeb(ctx context.Context, deb, dir string, out files) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var words bytes.Buffer
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", deb)
	cmd.Stderr = &words
	stream, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w; install the package dpkg", err)
	}
	if err := unpackTar(stream, dir, out); err != nil {
		cancel()
		cmd.Wait()
		if text := strings.TrimSpace(words.String()); text != "" {
			return fmt.Errorf("%w (%s)", err, text)
		}
		return err
	}
	io.Copy(io.Discard, stream)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("dpkg-deb: %w: %s", err, strings.TrimSpace(words.String()))
	}
	return out.Sync(dir)
}

// unpackTar writes the regular files that are wanted. Links are not followed
// and not made, so no entry can lead out of dir.
func unpackTar(stream io.Reader, dir string, out files) error {
	archive := tar.NewReader(stream)
	left := int64(maxUnpacked)
	for {
		h, err := archive.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := safeName(h.Name)
		if err != nil {
			return err
		}
		name = strings.TrimPrefix(name, "usr/") // where split packages put /lib
		if h.Typeflag != tar.TypeReg || !wanted(name) {
			continue
		}
		if left -= h.Size; left < 0 {
			return fmt.Errorf("unpacks to more than %d GB", maxUnpacked>>30)
		}
		if err := writeFile(out, filepath.Join(dir, filepath.FromSlash(name)), archive); err != nil {
			return err
		}
	}
}

func writeFile(out files, path string, from io.Reader) error {
	f, err := out.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}

// busyboxFile is where Debian has busybox, below /usr or not.
const busyboxFile = "bin/busybox"

// safeName refuses names that point out of the tree.
func safeName(name string) (string, error) {
	clean := path.Clean(strings.TrimPrefix(name, "./"))
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") || !fs.ValidPath(clean) {
		return "", fmt.Errorf("file name %q points out of the package", name)
	}
	return clean, nil
}

// wanted: the image, its configuration, the modules and their lists, and a shell
// for guests of another architecture than this machine's.
func wanted(name string) bool {
	return name == busyboxFile || strings.HasPrefix(name, "boot/vmlinuz-") || strings.HasPrefix(name, "boot/config-") || strings.HasPrefix(name, "lib/modules/")
}
