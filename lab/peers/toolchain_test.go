package peers

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMissing takes one thing away at a time.
func TestMissing(t *testing.T) {
	path := func(name string) string { return filepath.Join(os.Getenv("PATH"), name) }
	for name, c := range map[string]struct {
		take func(t *testing.T)
		want []string
	}{
		"cargo":      {func(t *testing.T) { os.Remove(path("cargo")) }, []string{"cargo is not in PATH, need Rust 1.91 or newer", "https://rustup.rs"}},
		"old cargo":  {func(t *testing.T) { order(t, "old") }, []string{"cargo is 1.85.1, need Rust 1.91 or newer", "https://rustup.rs"}},
		"bad cargo":  {func(t *testing.T) { write(t, path("cargo"), "#!/bin/sh\nexit 3\n") }, []string{"cargo --version fails (exit status 3"}},
		"clang":      {func(t *testing.T) { os.Remove(path("clang-19")) }, []string{"clang 18 or newer is not in PATH", "apt-get install clang-19"}},
		"own clang":  {func(t *testing.T) { t.Setenv("BPF_CLANG", "clang") }, []string{"BPF_CLANG names another"}},
		"libclang":   {func(t *testing.T) { t.Setenv("LIBCLANG_PATH", t.TempDir()) }, []string{"libclang.so is not there", "apt-get install libclang1-19"}},
		"cc, make":   {func(t *testing.T) { os.Remove(path("cc")); os.Remove(path("make")) }, []string{"cc is not in PATH; make is not in PATH", "apt-get install gcc make"}},
		"pkg-config": {func(t *testing.T) { os.Remove(path("pkg-config")) }, []string{"pkg-config is not in PATH. Fix: install on Debian or Ubuntu with: apt-get install pkg-config"}},
		"libraries": {func(t *testing.T) { write(t, path("pkg-config"), "#!/bin/sh\nexit 1\n") },
			[]string{"pkg-config knows no libelf; pkg-config knows no zlib; pkg-config knows no libseccomp", "apt-get install libelf-dev zlib1g-dev libseccomp-dev"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := store(t)
			c.take(t)
			err := s.Build(context.Background(), s.Peers)
			if err == nil {
				t.Fatal("it was built")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q", err, want)
				}
			}
			if _, err := os.Stat(s.Dir); err == nil {
				t.Error("it was begun")
			}
		})
	}
}

// A library that only another peer needs is not asked for.
func TestLibrariesOfOthers(t *testing.T) {
	s := store(t)
	write(t, filepath.Join(os.Getenv("PATH"), "pkg-config"), "#!/bin/sh\n[ \"$2\" != libseccomp ]\n")
	if err := s.Build(context.Background(), s.Peers[:1]); err != nil {
		t.Error(err)
	}
	if err := s.Build(context.Background(), s.Peers[1:]); err == nil || !strings.Contains(err.Error(), "pkg-config knows no libseccomp. Fix") {
		t.Error(err)
	}
}

func TestOlderVersion(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"1.9", "1.91", true}, {"1.91.1", "1.91", false}, {"1.95.0", "1.91", false}, {"0.99", "1.0", true}, {"2.0", "1.91", false}, {"x", "1.0", true}} {
		if olderVersion(c.a, c.b) != c.want {
			t.Errorf("%s older than %s: %v", c.a, c.b, !c.want)
		}
	}
}
