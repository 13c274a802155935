package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"rota/lab/cache"
)

// unfinished is the beginning of the names of directories in which is built.
const unfinished = ".new-"

// Build builds those of the peers that are not there in the wanted version, one
// after another; one that fails does not keep the others from being built. What
// is half done lies in a directory of its own that is removed in every case; a
// peer appears by one rename.
func (s Store) Build(ctx context.Context, list []Peer) error {
	list = s.missing(list)
	if len(list) == 0 {
		return nil
	}
	chain, err := findToolchain(ctx, list)
	if err != nil {
		return err
	}
	unlock, err := cache.Lock(s.Dir)
	if err != nil {
		return err
	}
	defer unlock()
	s.removeUnfinished()
	temp, err := os.MkdirTemp(s.Dir, unfinished)
	if err != nil {
		return fmt.Errorf("cache of peers: %w", err)
	}
	defer os.RemoveAll(temp)
	var failed []error
	for _, p := range s.missing(list) { // somebody else may have been faster
		err := s.build(ctx, chain, temp, p)
		if err != nil && ctx.Err() != nil {
			return errors.Join(append(failed, fmt.Errorf("peer %s: interrupted, nothing of it was kept: %w", p.Name, ctx.Err()))...)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("peer %s: %w", p.Name, cache.SpaceFix(s.Dir, err)))
		}
	}
	return errors.Join(failed...)
}

// missing are those that are not built; a name that is given twice counts once.
func (s Store) missing(list []Peer) []Peer {
	var left []Peer
	seen := map[string]bool{}
	for _, p := range list {
		if !seen[p.Name] && !s.Built(p) {
			left = append(left, p)
		}
		seen[p.Name] = true
	}
	return left
}

// removeUnfinished removes what a build left that was killed. The lock is held,
// so nobody is building.
func (s Store) removeUnfinished() {
	left, _ := filepath.Glob(filepath.Join(s.Dir, unfinished+"*"))
	for _, dir := range left {
		os.RemoveAll(dir)
	}
}

// build builds one peer below temp and moves it to its place. Peers of one
// invocation share a target directory, since most of what they need is the same;
// who has one of his own ($CARGO_TARGET_DIR) keeps what is in it.
func (s Store) build(ctx context.Context, chain toolchain, temp string, p Peer) error {
	s.log("%s: fetching %s", p.Name, p)
	if err := s.cargo(ctx, chain, temp, "info", "--quiet", p.Crate+"@"+p.Version); err != nil {
		return err
	}
	if err := verify(p); err != nil {
		return err
	}
	s.log("%s: building %s, which takes some minutes", p.Name, p)
	start := time.Now()
	root := filepath.Join(temp, p.Name)
	chain.path += string(filepath.ListSeparator) + filepath.Join(root, "bin") // or cargo advises to add it
	words := []string{"install", "--locked", "--no-track", "--root", root}
	if os.Getenv("CARGO_TARGET_DIR") == "" {
		words = append(words, "--target-dir", filepath.Join(temp, "target"))
	}
	if s.Jobs > 0 {
		words = append(words, "--jobs", strconv.Itoa(s.Jobs))
	}
	if err := s.cargo(ctx, chain, temp, append(words, p.Crate, "--version", "="+p.Version)...); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(root, "bin", p.Crate)); err != nil {
		return fmt.Errorf("cargo built %s without the program %s: %w", p, p.Crate, err)
	}
	if err := os.RemoveAll(s.folder(p)); err != nil {
		return err
	}
	if err := os.Rename(root, s.folder(p)); err != nil {
		return err
	}
	s.log("%s: built %s in %.0f s", p.Name, p, time.Since(start).Seconds())
	return nil
}

// cargo runs it away from any project, whose settings would count. It is asked
// to end with all it has started when ctx ends, and killed when we are: nobody would
// have what it builds.
func (s Store) cargo(ctx context.Context, chain toolchain, dir string, words ...string) error {
	// The death signal below is bound to the thread that starts cargo.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c := exec.CommandContext(ctx, "cargo", words...)
	c.Dir = dir
	c.Env = append(os.Environ(), "BPF_CLANG="+chain.clang, "CLANG_PATH="+chain.clang, "PATH="+chain.path)
	c.Stderr = s.Output
	if words[0] != "info" { // its answer is for a reader; it is run for what it fetches
		c.Stdout = s.Output
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = 10 * time.Second
	if err := c.Run(); err != nil {
		return fmt.Errorf("cargo %s: %w; cargo says why above", words[0], err)
	}
	return nil
}

// verify compares the crate's file, which cargo has fetched, with the lock
// file's checksum, before anything of it is run.
func verify(p Peer) error {
	home := os.Getenv("CARGO_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return fmt.Errorf("cargo's directory: %w; set CARGO_HOME to it", err)
		}
		home = filepath.Join(user, ".cargo")
	}
	name := p.Crate + "-" + p.Version + ".crate"
	found, _ := filepath.Glob(filepath.Join(home, "registry", "cache", "*", name))
	if len(found) == 0 {
		return fmt.Errorf("crate %s: cargo fetched it, but %s is not below %s/registry/cache; set CARGO_HOME to cargo's directory", p, name, home)
	}
	for _, file := range found {
		got, err := cache.SHA256(file)
		if err != nil {
			return fmt.Errorf("crate %s: %w", p, err)
		}
		if !strings.EqualFold(got, p.SHA256) {
			return fmt.Errorf("crate %s: wrong checksum: SHA-256 of %s is %s, peers.lock says %s; nothing was built", p, file, got, p.SHA256)
		}
	}
	return nil
}
