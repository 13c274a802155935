// Package initramfs builds the first file system of a lab machine: programs
// with the libraries they need, kernel modules with their dependencies, plain
// files. The same contents give the same bytes: entries are sorted, times are
// zero, owners are root.
//
// It knows nothing of what the files are for; lab/cell decides that.
package initramfs

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sort"
	"time"

	"github.com/cavaliergopher/cpio"

	"rota/lab/arch"
)

// Image is a file system being collected. The zero value is not ready: use New.
type Image struct {
	Arch    arch.Arch // of its programs; the zero value = any
	entries map[string]entry
}

type entry struct {
	mode fs.FileMode // type and permissions
	data []byte      // contents, or the target of a link
}

// New returns an image with the directories every guest needs. /usr/bin, /sbin
// and the library directories of all distributions are one folder each.
func New() *Image {
	im := &Image{entries: map[string]entry{}}
	for _, dir := range []string{"dev", "proc", "sys", "run", "tmp", "etc", "root", "bin", "lib", "usr", "var", "boot"} {
		im.entries[dir] = entry{mode: fs.ModeDir | 0o755}
	}
	for _, link := range [][2]string{
		{"sbin", "bin"}, {"usr/bin", "../bin"}, {"usr/sbin", "../bin"},
		{"lib64", "lib"}, {"usr/lib", "../lib"}, {"usr/lib64", "../lib"}, {"var/run", "../run"}, {"var/tmp", "../tmp"},
	} {
		im.entries[link[0]] = entry{mode: fs.ModeSymlink | 0o777, data: []byte(link[1])}
	}
	// Programs look up who they run as.
	im.entries["etc/passwd"] = entry{mode: 0o644, data: []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")}
	im.entries["etc/group"] = entry{mode: 0o644, data: []byte("root:x:0:\nnogroup:x:65534:\n")}
	im.entries["etc/hosts"] = entry{mode: 0o644, data: []byte("127.0.0.1 localhost\n")}
	return im
}

// Has reports whether the guest path is taken.
func (im *Image) Has(guest string) bool {
	_, taken := im.entries[clean(guest)]
	return taken
}

// Add puts a file into the image, with its parent directories. Another file at
// the same path is an error unless it has the same contents.
func (im *Image) Add(guest string, perm fs.FileMode, data []byte) error {
	guest = clean(guest)
	if old, taken := im.entries[guest]; taken {
		if old.mode.IsRegular() && bytes.Equal(old.data, data) {
			return nil
		}
		return fmt.Errorf("guest file /%s: two different files want this path", guest)
	}
	for dir := path.Dir(guest); dir != "."; dir = path.Dir(dir) {
		parent, there := im.entries[dir]
		if there && !parent.mode.IsDir() {
			return fmt.Errorf("guest file /%s: /%s is a file or link, not a directory", guest, dir)
		}
		im.entries[dir] = entry{mode: fs.ModeDir | 0o755}
	}
	im.entries[guest] = entry{mode: perm.Perm(), data: data}
	return nil
}

// AddFile copies one host file.
func (im *Image) AddFile(guest, host string) error {
	st, err := os.Stat(host)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(host)
	if err != nil {
		return err
	}
	return im.Add(guest, st.Mode(), data)
}

// Link makes a symbolic link where the path is free.
func (im *Image) Link(guest, target string) {
	if !im.Has(guest) {
		im.entries[clean(guest)] = entry{mode: fs.ModeSymlink | 0o777, data: []byte(target)}
	}
}

// WriteTo writes the image as a newc archive, uncompressed.
func (im *Image) WriteTo(w io.Writer) (int64, error) {
	names := make([]string, 0, len(im.entries))
	for name := range im.entries {
		names = append(names, name)
	}
	sort.Strings(names)
	counted := &counter{w: w}
	archive := cpio.NewWriter(counted)
	for i, name := range names {
		e := im.entries[name]
		header := &cpio.Header{Name: name, Mode: cpioMode(e.mode), Size: int64(len(e.data)), Inode: int64(i + 1), Links: 1, ModTime: time.Unix(0, 0)}
		if err := archive.WriteHeader(header); err != nil {
			return counted.n, fmt.Errorf("initramfs entry %q: %w", name, err)
		}
		if _, err := archive.Write(e.data); err != nil {
			return counted.n, fmt.Errorf("initramfs entry %q: %w", name, err)
		}
	}
	return counted.n, archive.Close()
}

func cpioMode(m fs.FileMode) cpio.FileMode {
	mode := cpio.FileMode(m.Perm())
	switch {
	case m.IsDir():
		return mode | cpio.TypeDir
	case m&fs.ModeSymlink != 0:
		return mode | cpio.TypeSymlink
	}
	return mode | cpio.TypeReg
}

func clean(guest string) string { return path.Clean("/" + guest)[1:] }

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
