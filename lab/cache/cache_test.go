package cache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestDir(t *testing.T) {
	for _, c := range []struct{ rota, xdg, home, want string }{
		{"/a", "/b", "/c", "/a/kernels"},
		{"", "/b", "/c", "/b/rota/kernels"},
		{"", "", "/c", "/c/.cache/rota/kernels"},
		{"", "", "", "set ROTA_CACHE"},
	} {
		t.Setenv("ROTA_CACHE", c.rota)
		t.Setenv("XDG_CACHE_HOME", c.xdg)
		t.Setenv("HOME", c.home)
		got, err := Dir("kernels")
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestLockLetsInOneAtATime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	unlock, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	in := make(chan error)
	go func() {
		second, err := Lock(dir)
		if err == nil {
			second()
		}
		in <- err
	}()
	select {
	case err := <-in:
		t.Fatalf("the second got in beside the first: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	unlock()
	if err := <-in; err != nil {
		t.Error(err)
	}
}

func TestLockNeedsADirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(filepath.Join(file, "dir")); err == nil || !strings.Contains(err.Error(), "set ROTA_CACHE") {
		t.Error(err)
	}
}

func TestSpaceFix(t *testing.T) {
	full := SpaceFix("/cache", fmt.Errorf("write x: %w", syscall.ENOSPC))
	if !strings.Contains(full.Error(), "free some space below /cache") || !errors.Is(full, syscall.ENOSPC) {
		t.Error(full)
	}
	if other := errors.New("other"); SpaceFix("/cache", other) != other {
		t.Error("an error of another kind was changed")
	}
}
