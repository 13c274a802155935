package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"rota/lab/cell"
	"rota/lab/guest"
	"rota/lab/kernels"
	"rota/lab/machine"
	"rota/lab/oracle"
	"rota/lab/report"
	"rota/lab/scenario"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"rota-lab": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script"})
}

func testRows() []scenario.Row {
	return []scenario.Row{
		{Name: "kernel", Scheduler: "kernel"}, {Name: "fifo", Scheduler: "kernel", Fifo: true},
		{Name: "rota", Scheduler: "rota"}, {Name: "rota+classes", Scheduler: "rota", Config: "x"},
	}
}

func TestChooseRows(t *testing.T) {
	for name, c := range map[string]struct {
		scheds, names []string
		want, fault   string
	}{
		"all":            {nil, nil, "kernel, fifo, rota, rota+classes", ""},
		"by scheduler":   {[]string{"rota"}, nil, "rota, rota+classes", ""},
		"both":           {[]string{"kernel", "rota"}, nil, "kernel, fifo, rota, rota+classes", ""},
		"by name":        {nil, []string{"rota", "kernel"}, "rota, kernel", ""},
		"a path":         {[]string{"kernel", "/usr/bin/scx_lavd --fast"}, nil, "kernel, fifo, scx_lavd", ""},
		"path and name":  {[]string{"kernel", "./scx_x"}, []string{"scx_x"}, "scx_x", ""},
		"a peer":         {[]string{"rota", "lavd --performance"}, nil, "rota, rota+classes, lavd", ""},
		"unknown":        {[]string{"cfs"}, nil, "", `--sched "cfs": must be kernel, rota, bpfland, lavd, rustland, or a path`},
		"unknown row":    {nil, []string{"x"}, "", `--row "x": must be one of kernel, fifo`},
		"row is left":    {[]string{"kernel"}, []string{"rota"}, "", `--row "rota": must be one of kernel, fifo`},
		"path is a rest": {[]string{"dir/scx_y"}, nil, "scx_y", ""},
	} {
		rows, err := chooseRows(testRows(), c.scheds, c.names)
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%s: %v, want %q", name, err, c.fault)
			}
		} else if got := rowNamesOf(rows); err != nil || got != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestKernelFor(t *testing.T) {
	any, own := scenario.Row{Name: "rota"}, scenario.Row{Name: "cfs", Kernel: "6.1"}
	for i, c := range []struct {
		row   scenario.Row
		round int
		want  string
	}{{any, 0, "7.2"}, {any, 1, "7.2"}, {own, 0, "6.1"}, {own, 1, ""}} {
		if got := kernelFor(c.row, "7.2", c.round); got != c.want {
			t.Errorf("case %d: %q, want %q", i, got, c.want)
		}
	}
}

func TestToRun(t *testing.T) {
	j := job{row: scenario.Row{Name: "lavd", Scheduler: "lavd", Config: "c"}, scheduler: "scx_lavd 1.1.4", kernel: kernels.Kernel{Release: "6.18.15", Note: "note"}, shown: "6.18.15", seed: 7}
	out := cell.Outcome{Results: guest.Results{
		Metrics:    map[string]float64{"a_us": 1},
		Histograms: map[string][]guest.Bucket{"h_us": {{Low: 0, High: 1, Count: 2}}},
		Events:     []guest.Event{{Name: "clocksource", Text: "tsc"}, {Name: "attached", Text: "true"}, {Name: "reloaded", Text: "x"}, {Name: "virtual_time_s", Value: 1.25}},
	}}
	want := report.Run{
		Row: "lavd", Scheduler: "scx_lavd 1.1.4", Config: "c", Kernel: "6.18.15", Seed: 7, Note: "note", Attached: true, Exit: "broke", Clocksource: "tsc",
		Metrics: map[string]float64{"a_us": 1}, Histograms: map[string][]report.Bucket{"h_us": {{Low: 0, High: 1, Count: 2}}},
		Events: []report.Event{{Name: "reloaded", Text: "x"}, {Name: "virtual_time_s", Text: "1.250000"}},
	}
	if diff := cmp.Diff(want, toRun(j, out, errors.New("broke"))); diff != "" {
		t.Error(diff)
	}
}

func TestCompareRuns(t *testing.T) {
	run := func(v float64) []report.Run {
		return []report.Run{{Row: "rota", Scheduler: "rota", Seed: 1, Metrics: map[string]float64{"a_us": v}}}
	}
	r := report.Results{Scenario: "wake", CPUs: 4, Seed: 1, Kernel: "6.18", Runs: run(1)}
	if err := compareRuns(r, run(1)); err != nil {
		t.Error(err)
	}
	if err := compareRuns(r, run(1.0000001)); err == nil || !strings.Contains(err.Error(), "row rota, seed 1: the second run differs") {
		t.Error(err)
	}
}

func TestPlainConsole(t *testing.T) {
	for text, want := range map[string]string{
		"a\r\nb\r\n":                             "a\nb\n",
		"x\r\n[    2.7] reboot: Power down\r\n":  "x\n",
		"no newline[    2.7] reboot: Power down": "no newline",
		"half":                                   "half",
	} {
		var out bytes.Buffer
		c := &plainConsole{w: &out}
		for i := range len(text) { // a byte at a time, as from a serial port
			c.Write([]byte{text[i]})
		}
		c.flush()
		if out.String() != want {
			t.Errorf("%q: %q, want %q", text, out.String(), want)
		}
	}
}

func TestCommandsRefuse(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("ROTA_CACHE", dir)
	if err := os.WriteFile(filepath.Join(dir, "bad.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "taken/ping/results.json"), 0o700), os.WriteFile(filepath.Join(dir, "taken/wake"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	many := "run wake ping --kernel /no --repeat 1000 --sched /1,/2,/3,/4,/5,/6,/7,/8,/9,/10,/11"
	for line, want := range map[string]string{
		"run nothing":                               `scenario "nothing": not known; see: rota-lab list`,
		"run":                                       "requires at least 1 arg",
		"run wake --repeat 0":                       "--repeat 0: must be 1..1000",
		"run wake --jobs 0":                         "--jobs 0: must be 1..256",
		"run wake --memory 1":                       "machine: 1 MB of memory: must be 128..",
		"run wake --cpus 4 --threads 3":             "must be 4 CPUs",
		"run wake ping --json x":                    "a results file holds one scenario",
		"run wake --json /no/such/x":                "--json /no/such/x: ",
		"run wake --json " + dir:                    "--json " + dir + ": ",
		"run wake --report " + dir + "/bad.json":    "--report " + dir + "/bad.json: ",
		"run wake --console " + dir + "/bad.json/x": "--console " + dir + "/bad.json/x: ",
		"run wake ping --report " + dir + "/taken":  "--report " + dir + "/taken: ",
		"run wake --report " + dir + "/taken/ping":  "/taken/ping: ",
		"run wake --twice --realtime":               "never the same twice",
		"run wake --turns coarse":                   `turns "coarse": must be fine, finest or none`,
		"exec --turns coarse -- true":               `--turns: turns "coarse"`,
		"run wake --sched cfs":                      "must be kernel, rota, bpfland",
		"run wake --kernel /no,/no":                 `--kernel "/no": named twice; name it once`,
		"run wake --kernel /no --row fifo,fifo":     `scenario wake: --row "fifo": named twice`,
		"run wake --sockets 5 --threads 300":        "300 threads per core: must be 1..255",
		many:                                        "scenario wake: 11 rows on 1 kernel with --repeat 1000 are 11000 runs: must be at most 10000; take --repeat 909, or",
		"exec --kernel 9.9 -- true":                 `kernel "9.9": neither a row`,
		"exec --kernel /no/such -- true":            "no such file",
		"compare a.json":                            "accepts 2 arg(s)",
		"compare /no/such /no/such":                 "no such file",
		"compare " + dir + "/bad.json x":            "bad.json",
		"kernels fetch 9.9":                         `kernel "9.9": neither a row`,
	} {
		root := rootCommand()
		root.SetArgs(strings.Fields(line))
		root.SetOut(&bytes.Buffer{})
		if err := root.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

func TestLists(t *testing.T) {
	t.Setenv("ROTA_CACHE", t.TempDir())
	for command, words := range map[string][]string{
		"list":    {"SCENARIO", "wake", "ping", "rota+classes"},
		"kernels": {"ROW", "6.18-binder", "unfit: broken BTF"},
		"peers":   {"PEER", "scx_rustland", "no"},
	} {
		var out bytes.Buffer
		root := rootCommand()
		root.SetArgs([]string{command})
		root.SetOut(&out)
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		for _, w := range words {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%s: lacks %q:\n%s", command, w, out.String())
			}
		}
	}
}

func TestCommandLineRepeatsTheRun(t *testing.T) {
	f := runFlags{kernels: []string{"6.18"}, scheds: []string{"kernel", "rota"}, seed: 3, repeat: 2, json: "/somewhere"}
	f.machine.CPUs, f.turns = 8, "finest"
	if got, want := commandLine(f, "wake"), "rota-lab run wake --kernel 6.18 --sched kernel,rota --turns finest --cpus 8 --seed 3 --repeat 2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	f = runFlags{kernels: []string{"/my kernel"}, seed: 1, repeat: 1, limit: time.Minute, machine: machine.Machine{
		Sockets: 2, Cores: 1, Threads: 2, MemoryMB: 512, Append: []string{"nohz=off", "a='b c'"}, NICs: []string{"e1000e"}, Realtime: true}}
	if got, want := commandLine(f, "wake"), `rota-lab run wake --kernel '/my kernel' --sockets 2 --cores 1 --threads 2 --memory 512 `+
		`--append nohz=off --append 'a='\''b c'\''' --nic e1000e --realtime --limit 1m0s --seed 1 --repeat 1`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// What is at the place of a result stays until there is one, and nothing else is left there.
func TestOutputsAreOnlyLookedAt(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old.json")
	if err := os.WriteFile(old, []byte("results"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, json := range []string{"", "-", old, filepath.Join(dir, "new.json"), "/dev/null"} {
		if err := (runFlags{json: json, report: dir, console: dir}).prepareOutputs([]string{"wake"}); err != nil {
			t.Errorf("--json %q: %v", json, err)
		}
	}
	if text, err := os.ReadFile(old); err != nil || string(text) != "results" {
		t.Errorf("%q, %v", text, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Every name that a plan can carry leads to a function.
func TestGuestFunctions(t *testing.T) {
	names := []string{execPlan, shellPlan}
	for _, s := range scenario.All() {
		names = append(names, s.Name)
	}
	for _, name := range names {
		if f, known := guestFunction(name); !known || f == nil {
			t.Errorf("%s: no function", name)
		}
	}
	if _, known := guestFunction("nothing"); known {
		t.Error("an unknown name is known")
	}
}

// A record is judged; what is none is refused by name.
func TestOracleCommand(t *testing.T) {
	dir := t.TempDir()
	event := oracle.Event{Kind: oracle.Run, TID: 7, CPU: 0, Tier: 1, Weight: 1024, Request: 1000000, Slice: 1000000, Time: 5}
	for name, c := range map[string]struct {
		write func(path string) error
		want  string
	}{
		"empty": {func(path string) error {
			return writeRecord(path, &oracle.Record{Capacity: 10, Parts: [][]oracle.Event{nil}})
		}, ""},
		"a fault": {func(path string) error {
			return writeRecord(path, &oracle.Record{Capacity: 10, Parts: [][]oracle.Event{{event}}})
		}, "1 faults in 1 events"},
		"no record": {func(path string) error { return os.WriteFile(path, []byte("ROTA"), 0o600) }, "header: the file ends here"},
		"no file":   {func(string) error { return nil }, "no such file"},
	} {
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if err := c.write(path); err != nil {
			t.Fatal(err)
		}
		command, out := oracleCommand(), &bytes.Buffer{}
		command.SetArgs([]string{path})
		command.SetOut(out)
		command.SilenceErrors, command.SilenceUsage = true, true
		err := command.Execute()
		if c.want == "" && (err != nil || !strings.Contains(out.String(), "faults        0")) {
			t.Errorf("%s: %v, %s", name, err, out)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func writeRecord(path string, record *oracle.Record) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(oracle.Write(file, record), file.Close())
}

func TestDifference(t *testing.T) {
	if got, want := difference("a\nb\nc\n", "a\nB\nc\nd\n"), `line 2: "b", then "B"; 2 lines of 5`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
