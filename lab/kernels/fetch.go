package kernels

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"rota/lab/cache"
)

// fetch brings a row into the cache. What is half done lies in a directory of
// its own that is removed in every case; the row appears by one rename.
func (s Store) fetch(ctx context.Context, row Row) (Kernel, error) {
	unlock, err := cache.Lock(s.Dir)
	if err != nil {
		return Kernel{}, err
	}
	defer unlock()
	if k, err := s.cached(row); err == nil { // somebody else was faster
		return k, nil
	}
	a, err := s.openApts(ctx, row)
	if err != nil {
		if k, found := s.otherCached(row); found && ctx.Err() == nil {
			k.Note = fmt.Sprintf("kernel %s: the pinned %s %s is not in the cache and could not be fetched; %s took its place (%v)",
				row.Name, row.Packages[0].Name, row.Packages[0].Version, k.Release, err)
			return k, nil
		}
		return Kernel{}, fmt.Errorf("kernel %s: %w", row.Name, err)
	}
	note := ""
	if gone, isGone := a.missing(ctx, row); isGone {
		newer, err := a.newest(ctx, row)
		if err != nil {
			return Kernel{}, fmt.Errorf("kernel %s: package %s %s is gone from %s and nothing of its series takes its place: %w", row.Name, gone.Name, gone.Version, row.suiteOf(gone), err)
		}
		place := newer.Packages[0]
		for _, p := range newer.Packages[1:] {
			if gone.Suite != "" && p.Name == gone.Name {
				place = p
			}
		}
		note = fmt.Sprintf("kernel %s: the pinned %s %s is gone from %s; %s %s took its place, pin it with: rota-lab kernels update %s", row.Name,
			gone.Name, gone.Version, row.suiteOf(gone), place.Name, place.Version, row.Name)
		s.log("%s", note)
		row = newer
	}
	k, err := s.cached(row)
	if err != nil {
		if err := s.install(ctx, a, row); err != nil {
			return Kernel{}, fmt.Errorf("kernel %s: %w", row.Name, err)
		}
		if k, err = s.cached(row); err != nil {
			return Kernel{}, fmt.Errorf("kernel %s: its packages hold no kernel image: %w", row.Name, err)
		}
	}
	if note != "" {
		k.Note = note
	}
	return k, nil
}

// otherCached finds another version of the row in the cache, the newest.
func (s Store) otherCached(row Row) (Kernel, bool) {
	var best Kernel
	dirs, _ := filepath.Glob(filepath.Join(s.Dir, row.Name+"_*"))
	for _, dir := range dirs {
		other := row
		other.Packages = []Package{{Name: row.Packages[0].Name, Version: strings.TrimPrefix(filepath.Base(dir), row.Name+"_")}}
		if k, err := s.cached(other); err == nil && (best.Release == "" || olderRelease(best.Release, k.Release)) {
			best = k
		}
	}
	return best, best.Release != ""
}

// unfinished is the beginning of the names of directories in which is unpacked.
const unfinished = ".new-"

// removeUnfinished removes what a fetch left that was killed. The lock is held,
// so nobody is fetching.
func (s Store) removeUnfinished() {
	left, _ := filepath.Glob(filepath.Join(s.Dir, unfinished+"*"))
	for _, dir := range left {
		os.RemoveAll(dir)
	}
}

// install downloads, verifies and unpacks a row's packages.
func (s Store) install(ctx context.Context, a apts, row Row) error {
	s.removeUnfinished()
	temp, err := os.MkdirTemp(s.Dir, unfinished)
	if err != nil {
		return fmt.Errorf("kernel cache: %w", err)
	}
	defer os.RemoveAll(temp)
	tree := filepath.Join(temp, "tree")
	for _, p := range row.Packages {
		s.log("kernel %s: fetching %s %s (%d MB)", row.Name, p.Name, p.Version, p.Size>>20)
		file, err := a[row.suiteOf(p)].download(ctx, temp, p)
		if err != nil {
			return cache.SpaceFix(s.Dir, err)
		}
		if err := verify(file, p); err != nil {
			return err
		}
		if err := unpackDeb(ctx, file, tree, osFiles{}); err != nil {
			return cache.SpaceFix(s.Dir, fmt.Errorf("unpack %s: %w", p.Name, err))
		}
		os.Remove(file)
	}
	if _, err := findImage(tree); err != nil {
		return err
	}
	if err := os.Chmod(tree, 0o755); err != nil {
		return err
	}
	place := filepath.Join(s.Dir, row.dirName())
	if err := os.RemoveAll(place); err != nil { // a row that can't be booted, or it would not be fetched
		return err
	}
	return os.Rename(tree, place)
}

// verify compares a package file with the lock file's checksum.
func verify(file string, p Package) error {
	got, err := cache.SHA256(file)
	if err != nil {
		return fmt.Errorf("package %s: %w", p.Name, err)
	}
	if got != p.SHA256 {
		return fmt.Errorf("package %s: wrong checksum: SHA-256 is %s, the lock file says %s; nothing was kept", p.Name, got, p.SHA256)
	}
	return nil
}

func (s Store) log(format string, args ...any) {
	if s.Log != nil {
		s.Log(format, args...)
	}
}
