package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rota/lab/kernels"
	"rota/lab/scenario"
)

// Rows that are not the same have names that are not, as results are told apart by them.
func TestNamesOfRows(t *testing.T) {
	long := "/" + strings.Repeat("x", 150) + "/" + strings.Repeat("y", 60)
	for scheds, c := range map[string]struct{ want, fault string }{
		"/old/scx_x,/new/scx_x":                         {"old/scx_x, new/scx_x", ""},
		"/old/scx_x,/new/scx_x -k,/new/scx_x":           {"old/scx_x, new/scx_x -k, new/scx_x", ""},
		"/a/v/scx_x,/b/v/scx_x -k":                      {"scx_x, scx_x -k", ""},
		"/a/v/scx_x,/b/v/scx_x":                         {"/a/v/scx_x, /b/v/scx_x", ""},
		"/scx_x,/old/scx_x":                             {"/scx_x, old/scx_x", ""},
		"bpfland,bpfland -k":                            {"bpfland, bpfland -k", ""},
		"bpfland,./bpfland,/other":                      {"bpfland, ./bpfland, other", ""},
		"rota,./rota,/v1/rota":                          {"rota, rota+classes, ./rota, v1/rota", ""},
		"/v1/kernel --fast":                             {"kernel --fast", ""},
		"kernel,rota,kernel":                            {"", `--sched "kernel": named twice; name it once`},
		"bpfland -k,bpfland  -k":                        {"", `--sched "bpfland  -k": named twice`},
		"/a/scx_x,/a/./scx_x":                           {"", `--sched "/a/./scx_x": named twice`},
		"/a/v/scx_x " + long + ",/b/v/scx_x " + long:    {"", "too long, at most 200 bytes"},
		"/a/v/scx_x " + long[:100] + ",/b/v/scx_x" + "": {"scx_x " + long[:100] + ", scx_x", ""},
	} {
		rows, err := chooseRows(testRows(), strings.Split(scheds, ","), nil)
		if got := rowNamesOf(rows); c.fault == "" && (err != nil || got != c.want) {
			t.Errorf("%s: %q, %v, want %q", scheds, got, err, c.want)
		}
		if c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%s: %v, want %q", scheds, err, c.fault)
		}
	}
	if _, err := chooseRows(testRows(), nil, []string{"rota", "kernel", "rota"}); err == nil || !strings.Contains(err.Error(), `--row "rota": named twice`) {
		t.Error(err)
	}
}

// Two images of one release are two kernels; one image is one, however it was asked for.
func TestNamesOfKernels(t *testing.T) {
	dir := t.TempDir()
	image := func(name, release string) kernels.Kernel {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return kernels.Kernel{Name: name, Release: release, Image: path}
	}
	known := map[string]kernels.Kernel{
		"6.18": image("6.18", "6.18.15"), "old": image("old", "6.18.15"), "new": image("new", "6.18.15"), "7.2": image("7.2", "7.2.13"),
	}
	got, err := kernelNames([]string{"6.18", "old", "new", "7.2", "not fetched"}, known)
	want := map[string]string{"6.18": "6.18.15 (6.18)", "old": "6.18.15 (old)", "new": "6.18.15 (new)", "7.2": "7.2.13"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
	if got, err = kernelNames([]string{"old", "7.2"}, known); err != nil || got["old"] != "6.18.15" {
		t.Errorf("%v, %v", got, err)
	}
	known["6.18-binder"], known["6.18"] = known["old"], known["old"]
	if _, err = kernelNames([]string{"6.18", "6.18-binder"}, known); err == nil || !strings.Contains(err.Error(), "--kernel 6.18 and 6.18-binder: both are kernel old: name one of them") {
		t.Error(err)
	}
}

// A row with a kernel of its own counts once, and as many runs as results hold are not too many.
func TestCheckRuns(t *testing.T) {
	s := scenario.Scenario{Name: "wake", Rows: append(testRows(), scenario.Row{Name: "cfs", Scheduler: "kernel", Kernel: "6.1"})}
	f := runFlags{kernels: []string{"6.18", "7.2", "7.1"}, repeat: 769}
	if err := f.checkRuns(s); err != nil {
		t.Error(err)
	}
	f.repeat++
	want := "scenario wake: 5 rows on 3 kernels with --repeat 770 are 10010 runs: must be at most 10000; take --repeat 769, or fewer rows or kernels"
	if err := f.checkRuns(s); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Each run has a console of its own, in the directory that was asked for.
func TestConsoleFiles(t *testing.T) {
	seen := map[string]job{}
	for _, row := range []string{"x", "old/x", "old%2Fx", "../x", "x -k"} {
		for _, kernel := range []string{"6.18", "6.18 (/a/vmlinuz)", "6.18 (/b/vmlinuz)"} {
			for _, again := range []bool{false, true} {
				j := job{row: scenario.Row{Name: row}, shown: kernel, seed: 1, again: again}
				name := j.consoleFile()
				if other, taken := seen[name]; taken || name != filepath.Base(name) {
					t.Errorf("%s: of %s, and of %s", name, j.name(), other.name())
				}
				seen[name] = j
			}
		}
	}
	if got := (job{row: scenario.Row{Name: "rota+classes"}, shown: "6.18.15+deb13-cloud-amd64", seed: 3}).consoleFile(); got != "_6.18.15+deb13-cloud-amd64_rota+classes_3.txt" {
		t.Error(got)
	}
}
