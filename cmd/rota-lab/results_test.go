package main

import (
	"io/fs"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rota/lab/report"
)

// results are some that can be written, with a figure.
func results(value float64) report.Results {
	return report.Results{Scenario: "wake", CPUs: 1, Runs: []report.Run{{Row: "rota", Metrics: map[string]float64{"a_us": value}}}}
}

// written says whether a file holds those results, and nothing else.
func written(t *testing.T, path string) bool {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Error(err)
		return false
	}
	defer f.Close()
	r, err := report.Read(f)
	return err == nil && r.Runs[0].Metrics["a_us"] == 1
}

// older is a file with results of before, of mode 0640, alone in a directory.
func older(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "results.json")
	if err := os.WriteFile(path, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil { // whatever the umask
		t.Fatal(err)
	}
	return path
}

// alone tells of what is left behind beside n files.
func alone(t *testing.T, dir string, n int) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) != n {
		t.Errorf("%d files wanted: %v, error %v", n, left, err)
	}
}

// limitFiles lets no file grow beyond some bytes, as a full disk would. What the
// test writes about itself is far less.
func limitFiles(t *testing.T, bytes uint64) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ) // the write fails instead
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
			t.Error(err)
		}
		signal.Reset(syscall.SIGXFSZ)
	})
}

// Results that can't be written, or are none, leave the older ones as they were.
func TestOlderResultsStay(t *testing.T) {
	const room = 1 << 20
	large := results(1)
	large.Runs[0].Note = strings.Repeat("x", room)
	for name, c := range map[string]struct {
		results report.Results
		want    string
	}{
		"no room":    {large, "file too large"},
		"no results": {results(math.NaN()), "must be a finite number"},
	} {
		t.Run(name, func(t *testing.T) {
			path := older(t)
			limitFiles(t, room)
			if err := writeResults(path, c.results); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if text, err := os.ReadFile(path); err != nil || string(text) != "old" {
				t.Errorf("%.40q, error %v", text, err)
			}
			alone(t, filepath.Dir(path), 1)
			if err := writeResults(filepath.Join(filepath.Dir(path), "new.json"), c.results); err == nil {
				t.Error("new ones were written")
			}
			alone(t, filepath.Dir(path), 1)
		})
	}
}

// New results have the mode, the owner and the links of the older ones.
func TestResultsTakeThePlace(t *testing.T) {
	path := older(t)
	if os.Getuid() == 0 {
		if err := os.Chown(path, 12, 34); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(path)
	link, loose := filepath.Join(dir, "link"), filepath.Join(dir, "loose")
	if err := os.Symlink("results.json", link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("new.json", loose); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{link, loose, filepath.Join(dir, "other.json")} {
		if err := writeResults(p, results(1)); err != nil || !written(t, p) {
			t.Errorf("%s: %v", p, err)
		}
	}
	after, err := os.Stat(path)
	if err != nil || after.Mode() != before.Mode() || !written(t, path) {
		t.Errorf("mode %v, was %v, error %v", after.Mode(), before.Mode(), err)
	}
	was, is := before.Sys().(*syscall.Stat_t), after.Sys().(*syscall.Stat_t)
	if was.Uid != is.Uid || was.Gid != is.Gid {
		t.Errorf("owner %d:%d, was %d:%d", is.Uid, is.Gid, was.Uid, was.Gid)
	}
	alone(t, dir, 5) // both links and what they lead to, and the other
}

// What is no file, or is the output of this program, is written to and not replaced.
func TestResultsGoThrough(t *testing.T) {
	path := older(t)
	pipe := filepath.Join(filepath.Dir(path), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	output, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	defer func(f *os.File) { os.Stdout = f }(os.Stdout)
	os.Stdout = output
	for _, p := range []string{pipe, "/dev/null", path} {
		before, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := writeResults(p, results(1)); err != nil {
			t.Errorf("%s: %v", p, err)
		}
		if after, err := os.Stat(p); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s was replaced: %v", p, err)
		}
	}
	if r, err := report.Read(reader); err != nil || r.Scenario != "wake" {
		t.Errorf("through the pipe: %v, error %v", r, err)
	}
	alone(t, filepath.Dir(path), 2)
}

// Where nobody may make a file beside it, the old one is written anew.
func TestResultsWhereNoFileCanBeMade(t *testing.T) {
	path := older(t)
	dir := filepath.Dir(path)
	modes := map[string]fs.FileMode{filepath.Dir(dir): 0o755, dir: 0o555}
	for name, mode := range modes {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { os.Chmod(dir, 0o755) })
	if os.Getuid() == 0 { // who may write everywhere
		const nobody = 65534
		if err := os.Chown(path, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if _, err := unix.SetfsuidRetUid(nobody); err != nil {
			t.Fatal(err)
		}
		defer unix.SetfsuidRetUid(0)
	}
	if err := writeResults(path, results(1)); err != nil || !written(t, path) {
		t.Error(err)
	}
}
