package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rota/internal/where"
)

func TestWhereReport(t *testing.T) {
	irq := 24
	r := whereReport{
		Function: "veth_xmit", Module: "veth", Method: "kprobe", Instead: "the kernel refuses it", Seconds: 10, Count: 1230, PerSecond: 123, Lost: 4, Missed: 5, Copies: 2,
		Executors: []whereExecutor{
			{Context: "task", TID: 12, TGID: 11, Comm: "pi\x1bng", Cgroup: "/apps", Count: 1000, PerSecond: 100, CPUs: []where.CPUCount{{CPU: 0, Count: 1}, {CPU: 1, Count: 1}, {CPU: 3, Count: 998}}},
			{Context: "softirq", Interrupt: "NET_RX", Number: &irq, Count: 200, PerSecond: 20, CPUs: []where.CPUCount{{CPU: 3, Count: 200}}},
			{Context: "hardirq", Interrupt: "eth0", Number: &irq, Count: 20, PerSecond: 2},
			{Context: "hardirq", Count: 9}, {Context: "NMI", Count: 1}, {Context: "task", Comm: "sh", Count: 1},
		},
		Cgroups: []where.CgroupCount{{Cgroup: "/apps", Count: 1000}, {Count: 1}},
		CPUs:    []where.CPUCount{{CPU: 0, Count: 1}, {CPU: 3, Count: 1229}},
	}
	var b strings.Builder
	if err := r.write(&b, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"veth_xmit (module veth) by kprobe in 10s, kernel ",
		"pi?ng  task                                      /apps    12   11   1000    100  0-1,3\n",
		"-      softirq NET_RX                            -         -    -    200   20.0      3\n",
		"-      hardirq 24 eth0 ", "-      hardirq of no driver (timer, other CPUs)  -", "-      NMI  ", "sh     task                                      gone ",
		"\n/apps    1000\ngone        1\n", "\nCPU 0: 1, 3: 1229\n", "\ncount 1230, 123 per s\n",
		"4 more calls are in no row: too many tasks executed it\n", "5 more calls came while another one was counted\n",
		"2 functions have this name there: all are counted\n", "kprobe, not fentry: the kernel refuses it\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	b.Reset()
	many := whereReport{Executors: make([]whereExecutor, liveRows+3)}
	if err := many.write(&b, true); err != nil || !strings.Contains(b.String(), "and 3 more, which called less often\n") {
		t.Errorf("error %v in\n%s", err, b.String())
	}
	b.Reset()
	if err := (whereReport{EndedEarly: endInterrupted}).write(&b, false); err != nil || !strings.HasSuffix(b.String(), "\nnobody executed it, ended early: interrupted\n") {
		t.Errorf("error %v in\n%s", err, b.String())
	}
}

// On a terminal each text takes the place of the one before, and all but the last are
// cut to it.
func TestScreen(t *testing.T) {
	var b strings.Builder
	s := &screen{w: &b, live: true, size: func() (int, int) { return 3, 4 }}
	for _, step := range []struct {
		text string
		last bool
		want string
	}{
		{"abcdef\nb\nc\n", false, "\r\x1b[Jabcd\nb\n"},
		{"x\n", false, "\x1b[2A\r\x1b[Jx\n"},
		{"abcdef\nb\nc\nd\n", true, "\x1b[1A\r\x1b[Jabcdef\nb\nc\nd\n"},
	} {
		b.Reset()
		if err := s.show(step.text, step.last); err != nil || b.String() != step.want {
			t.Errorf("%q, error %v, want %q", b.String(), err, step.want)
		}
	}
	b.Reset()
	if err := newScreen(&b).show("plain\n", true); err != nil || b.String() != "plain\n" {
		t.Errorf("%q, error %v", b.String(), err)
	}
}

const addConfig = `classes:
  - name: voice # ours
  - name: other
rules:
  # the others
  - match: {cgroup: /apps}
    class: other
  - match: {comm: "k*"}
    class: voice
`

func seenTasks(tasks ...where.Task) (r where.Report) {
	for _, task := range tasks {
		r.Executors = append(r.Executors, where.Executor{Task: task, Count: 10})
		r.Count += 10
	}
	return r
}

func TestWhereAdds(t *testing.T) {
	for _, tt := range []struct {
		name string
		seen where.Report
		want string // the whole file; empty: as it was
		say  string
	}{
		{
			"behind all", seenTasks(where.Task{TID: 1, TGID: 1, Cgroup: "/", Exe: "/bin/a*"}),
			addConfig + "  - match: {exe: \"/bin/a[*]\"}\n    class: voice\n", "# 10 calls, behind all rules\nwritten to ",
		},
		{
			"in front of who would win", seenTasks(where.Task{TID: 1, TGID: 1, Cgroup: "/apps/one"}),
			strings.Replace(addConfig, "  # the others\n", "  - match: {cgroup: \"/apps/one\"}\n    class: voice\n  # the others\n", 1), "# 10 calls, before rule 1, which would win\n",
		},
		{
			"there already", seenTasks(where.Task{TID: 1, TGID: 1, Comm: "kworker/1:1", KernelThread: true, Cgroup: "/"}),
			"", "in the class already, by another rule or as the default\nnothing to write\n",
		},
	} {
		file := filepath.Join(t.TempDir(), "rota.yaml")
		if err := os.WriteFile(file, []byte(addConfig), 0o644); err != nil {
			t.Fatal(err)
		}
		a := whereAdder{class: "voice", path: file, socket: filepath.Join(t.TempDir(), "none.sock")}
		rules, err := a.add(t.Context(), tt.seen)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		var said strings.Builder
		rules.write(&said)
		if !strings.Contains(said.String(), tt.say) {
			t.Errorf("%s: no %q in\n%s", tt.name, tt.say, said.String())
		}
		if tt.want == "" {
			tt.want = addConfig
		} else if !strings.HasSuffix(said.String(), "written to "+safe(file)+": no daemon answers: in force at the next: rota run\n") {
			t.Errorf("%s: %s", tt.name, said.String())
		}
		if got, _ := os.ReadFile(file); string(got) != tt.want {
			t.Errorf("%s:\n%s, want\n%s", tt.name, got, tt.want)
		}
	}
}

func TestWhereAddsNothing(t *testing.T) {
	var many where.Report
	for i := range 11 {
		many.Executors = append(many.Executors, where.Executor{Task: where.Task{TID: uint32(i + 1), Cgroup: "/" + strings.Repeat("a", i+1)}, Count: 10})
	}
	interrupts := where.Report{Count: 5, Executors: []where.Executor{{Context: where.InSoftirq, Count: 5}}}
	for want, seen := range map[string]where.Report{
		"tasks of 11 cgroups or programs execute it, at most 10": many,
		"only interrupts execute it, which have no class":        interrupts,
		"nobody executed it: look longer, with --for":            {},
		"had ended before their program was known":               seenTasks(where.Task{TID: 1, TGID: 1, Cgroup: "/"}),
	} {
		a := whereAdder{class: "voice"}
		if _, err := a.add(t.Context(), seen); err == nil || !strings.Contains(err.Error(), `--add-to "voice": `) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	// The rules are there to be added by hand where they can't be written.
	file := filepath.Join(t.TempDir(), "rota.yaml")
	if err := os.WriteFile(file, []byte(`{"classes": [{"name": "voice"}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	a := whereAdder{class: "voice", path: file}
	rules, err := a.add(t.Context(), seenTasks(where.Task{TID: 1, TGID: 1, Cgroup: "/one"}))
	if err == nil || !strings.HasSuffix(err.Error(), "add the rule by hand") || len(rules.Made) != 1 || rules.Made[0].YAML == "" || rules.Written {
		t.Errorf("%+v, error %v", rules, err)
	}
}
