package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rota/internal/sched"
)

// A record takes its name when it is whole, from a link too, and not what the
// link leads to; one that is dropped leaves the old one as it was.
func TestDraft(t *testing.T) {
	dir := t.TempDir()
	path, victim := filepath.Join(dir, "record"), filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, path); err != nil {
		t.Fatal(err)
	}
	write := func(text string, keep bool) {
		t.Helper()
		d, err := newDraft(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if keep {
			if err := d.keep(); err != nil {
				t.Fatal(err)
			}
		}
		d.drop()
	}
	write("first", true)
	write("half", false)
	for name, want := range map[string]string{path: "first", victim: "precious"} {
		if text, err := os.ReadFile(name); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v; want %q", name, text, err, want)
		}
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
	var none *draft
	none.drop()
}

// What is no file keeps its name.
func TestDraftOfNoFile(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, dir, "/dev/null", "/dev/stdout"} {
		d, err := newDraft(path)
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v", path, err)
		}
		d.drop()
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// A load that fails leaves an older record alone, and nothing else behind.
func TestRecorderThatCannotLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "record")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	// No classes: refused before anything is loaded.
	_, err := recorder{path, sched.MinRecord}.load(context.Background(), sched.Params{}, slog.New(slog.DiscardHandler))
	if err == nil {
		t.Fatal("loaded nothing")
	}
	if text, _ := os.ReadFile(path); string(text) != "old" {
		t.Errorf("the old record is %q now", text)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := (recorder{filepath.Join(dir, "no", "record"), sched.MinRecord}).load(context.Background(), sched.Params{}, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("accepted a directory that is not there")
	}
}
