// Package kernels keeps the kernels that the lab boots: the rows of the lock
// file, fetched as Debian packages through the machine's own apt, checked
// against their SHA-256 and unpacked into a cache. A path to a bzImage, or to an
// Image of arm64, works too.
//
// It installs nothing on the machine and needs no root: apt runs on a private
// state in the cache. It boots nothing. cmd/rota-lab calls it.
package kernels

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rota/lab/arch"
	"rota/lab/cache"
)

// Kernel is a kernel ready to boot.
type Kernel struct {
	Name       string // row of the lock file, or the path that was asked for
	Series     string // "6.18"
	Package    string // first package of the row, "" for a path
	Version    string // of the package, "" for a path
	Release    string // as uname -r
	Arch       arch.Arch
	Image      string // bzImage, or the Image of arm64
	Boot       string // what a machine is given: the uncompressed kernel where there is one, else Image
	ModulesDir string // .../lib/modules/RELEASE, "" when there are none
	Config     string // the kernel's .config, "" when there is none
	Busybox    string // of the kernel's architecture, "" when none came with it
	Note       string // what a reader of the results must know, "" when nothing
	tree       string // the row's directory in the cache
}

// Store is a cache directory and the lock file that says what belongs in it.
type Store struct {
	Dir     string   // see DefaultDir
	Lock    Lock     // the rows
	Mirrors []Mirror // archives to fetch from; nil = the machine's own
	Log     func(format string, args ...any)
}

// DefaultDir is where kernels are cached.
func DefaultDir() (string, error) { return cache.Dir("kernels") }

// Get returns the kernel that want names: a row or a series of the lock file,
// or the path of an image. A row that is not in the cache is fetched. A
// pinned version that the archive has dropped is replaced by the newest of its
// series, and the kernel's Note says so.
func (s Store) Get(ctx context.Context, want string) (Kernel, error) {
	row, known := s.Lock.Find(want)
	if !known {
		if strings.Contains(want, "/") || isFile(want) {
			return Open(want)
		}
		return Kernel{}, fmt.Errorf("kernel %q: neither a row (%s) nor a file", want, strings.Join(s.Lock.Names(), ", "))
	}
	k, err := s.cached(row)
	if err != nil {
		k, err = s.fetch(ctx, row)
	}
	if err != nil || k.Boot != k.Image || k.Arch.Name != arch.AMD64().Name { // others are not compressed
		return k, err
	}
	return s.uncompressed(k)
}

// uncompressed is a kernel of the cache with what a machine boots beside its image.
func (s Store) uncompressed(k Kernel) (Kernel, error) {
	if err := addVmlinux(k.tree, k.Image); err != nil {
		return Kernel{}, cache.SpaceFix(s.Dir, fmt.Errorf("uncompress %s: %w", filepath.Base(k.Image), err))
	}
	if boot := filepath.Join(k.tree, bootFile); isFile(boot) {
		k.Boot = boot
	}
	return k, nil
}

// Cached reports whether the row is in the cache.
func (s Store) Cached(r Row) bool {
	_, err := s.cached(r)
	return err == nil
}

func (s Store) cached(r Row) (Kernel, error) {
	dir := filepath.Join(s.Dir, r.dirName())
	image, err := findImage(dir)
	if err != nil {
		return Kernel{}, err
	}
	k, err := Open(image)
	if err != nil {
		return Kernel{}, err
	}
	k.Name, k.Series, k.tree = r.Name, r.Series, dir
	k.Package, k.Version = r.Packages[0].Name, r.Packages[0].Version
	if boot := filepath.Join(dir, bootFile); isFile(boot) {
		k.Boot = boot
	}
	if busybox := filepath.Join(dir, busyboxFile); isFile(busybox) {
		k.Busybox = busybox
	}
	if r.Unfit != "" {
		k.Note = r.Unfit
	}
	return k, nil
}

// findImage finds the one image of an unpacked row.
func findImage(dir string) (string, error) {
	images, _ := filepath.Glob(filepath.Join(dir, "boot", "vmlinuz-*"))
	inModules, _ := filepath.Glob(filepath.Join(dir, "lib", "modules", "*", "vmlinuz"))
	images = append(images, inModules...)
	if len(images) != 1 {
		return "", fmt.Errorf("%d kernel images instead of one: %w", len(images), fs.ErrNotExist)
	}
	return images[0], nil
}

// Open describes the image at path, with the modules and the configuration
// that lie where distributions put them: beside it, below it, or on the
// machine itself.
func Open(path string) (Kernel, error) {
	a, release, err := identify(path)
	if err != nil {
		return Kernel{}, fmt.Errorf("kernel %q: %w", path, err)
	}
	k := Kernel{Name: path, Arch: a, Series: series(release), Release: release, Image: path, Boot: path}
	dir := filepath.Dir(path)
	for _, modules := range []string{dir, filepath.Join(dir, "lib/modules", release), filepath.Join(dir, "../lib/modules", release), filepath.Join(dir, "../usr/lib/modules", release), filepath.Join("/lib/modules", release)} {
		if st, err := os.Stat(filepath.Join(modules, "kernel")); err == nil && st.IsDir() {
			k.ModulesDir = modules
			break
		}
	}
	for _, config := range []string{filepath.Join(dir, "config-"+release), filepath.Join(dir, "config"), filepath.Join(dir, "../../../boot/config-"+release), filepath.Join("/boot/config-" + release)} {
		if isFile(config) {
			k.Config = config
			break
		}
	}
	return k, nil
}

// series is the part of a release before the second dot: "6.18".
func series(release string) string {
	major, rest, _ := strings.Cut(release, ".")
	end := strings.IndexFunc(rest, func(c rune) bool { return c < '0' || c > '9' })
	if end < 0 {
		end = len(rest)
	}
	return major + "." + rest[:end]
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}
