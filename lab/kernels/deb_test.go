package kernels

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rota/lab/cache"
)

func TestUnpackDeb(t *testing.T) {
	needDpkg(t)
	for _, prefix := range []string{"", "/usr"} {
		dir := t.TempDir()
		file := filepath.Join(dir, "x.deb")
		deb(t, file, tarOf(t, kernelFiles(prefix)...))
		tree := filepath.Join(dir, "tree")
		if err := unpackDeb(context.Background(), file, tree, osFiles{}); err != nil {
			t.Fatal(err)
		}
		image, err := findImage(tree)
		if err != nil {
			t.Fatal(err)
		}
		k, err := Open(image)
		if err != nil || k.Release != "6.18.15-x" || k.Series != "6.18" || k.ModulesDir == "" || k.Config == "" {
			t.Errorf("%+v, %v", k, err)
		}
		for _, unwanted := range []string{"boot/System.map-6.18.15-x", "share", "usr"} {
			if _, err := os.Stat(filepath.Join(tree, unwanted)); err == nil {
				t.Errorf("%s was unpacked", unwanted)
			}
		}
	}
}

func TestUnpackRefusesPathsThatLeadOut(t *testing.T) {
	for _, name := range []string{"../evil", "./../evil", "/boot/vmlinuz-evil", "boot/../../evil", "./boot/../../../evil"} {
		dir := t.TempDir()
		err := unpackTar(bytes.NewReader(tarOf(t, entry{name: name, text: "x"})), filepath.Join(dir, "tree"), osFiles{})
		if err == nil || !strings.Contains(err.Error(), "out of the package") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A link is not made, so nothing can be written through it.
	dir := t.TempDir()
	err := unpackTar(bytes.NewReader(tarOf(t,
		entry{name: "lib/modules/x", text: dir, link: true}, entry{name: "lib/modules/x/evil", text: "y"})), filepath.Join(dir, "tree"), osFiles{})
	if _, outside := os.Stat(filepath.Join(dir, "evil")); err != nil || outside == nil {
		t.Errorf("%v, %v", err, outside)
	}
}

func TestUnpackOfGarbage(t *testing.T) {
	needDpkg(t)
	file := filepath.Join(t.TempDir(), "x.deb")
	if err := os.WriteFile(file, []byte("not a package"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unpackDeb(context.Background(), file, t.TempDir(), osFiles{}); err == nil || !strings.Contains(err.Error(), "dpkg-deb") {
		t.Error(err)
	}
}

// fullDisk takes n bytes and then has no space left.
type fullDisk struct{ left int }

func (d *fullDisk) Create(string) (io.WriteCloser, error) { return fullFile{d}, nil }

func (d *fullDisk) Sync(string) error { return nil }

type fullFile struct{ d *fullDisk }

func (f fullFile) Write(p []byte) (int, error) {
	if len(p) > f.d.left {
		return 0, &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	}
	f.d.left -= len(p)
	return len(p), nil
}

func (f fullFile) Close() error { return nil }

func TestNoSpace(t *testing.T) {
	needDpkg(t)
	file := filepath.Join(t.TempDir(), "x.deb")
	deb(t, file, tarOf(t, kernelFiles("")...))
	err := cache.SpaceFix("/cache", unpackDeb(context.Background(), file, "/nowhere", &fullDisk{left: 0x1004}))
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free some space below /cache or set ROTA_CACHE") {
		t.Error(err)
	}
}

// steps are the disk, and what is done there in order.
type steps struct {
	osFiles
	done []string
}

func (s *steps) Create(path string) (io.WriteCloser, error) {
	s.done = append(s.done, "create")
	return s.osFiles.Create(path)
}

func (s *steps) Sync(dir string) error {
	s.done = append(s.done, "sync "+filepath.Base(dir))
	return s.osFiles.Sync(dir)
}

// What is unpacked outlives a power cut; a package of which nothing is wanted is no fault.
func TestUnpackSyncs(t *testing.T) {
	needDpkg(t)
	for want, entries := range map[string][]entry{
		"create create create sync tree": kernelFiles(""),
		"sync tree":                      {{name: "./usr/share/doc/x", text: "unwanted"}},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "x.deb")
		deb(t, file, tarOf(t, entries...))
		var disk steps
		if err := unpackDeb(context.Background(), file, filepath.Join(dir, "tree"), &disk); err != nil {
			t.Error(err)
		}
		if got := strings.Join(disk.done, " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
