package guest

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestParseCPUs(t *testing.T) {
	for list, want := range map[string][]int{"0": {0}, "0-2": {0, 1, 2}, "0-1,3": {0, 1, 3}, "7,5-6": {5, 6, 7}} {
		set, err := parseCPUs(list)
		if err != nil || set.Count() != len(want) {
			t.Errorf("%q: %d CPUs, %v", list, set.Count(), err)
		}
		for _, cpu := range want {
			if !set.IsSet(cpu) {
				t.Errorf("%q: lacks CPU %d", list, cpu)
			}
		}
	}
	for _, list := range []string{"", "-", "a", "3-1", "-1", "0-99999", "0,,1", "0-"} {
		if _, err := parseCPUs(list); err == nil {
			t.Errorf("%q: accepted", list)
		}
	}
}

func TestPolicyNumber(t *testing.T) {
	for name, want := range map[string]uint32{"": 0, "other": 0, "fifo": 1, "rr": 2, "batch": 3, "idle": 5, "ext": 7} {
		if got, err := policyNumber(name); err != nil || got != want {
			t.Errorf("%q: %d, %v", name, got, err)
		}
	}
	if _, err := policyNumber("FIFO"); err == nil {
		t.Error("FIFO in capitals: accepted")
	}
}

func TestSchedulerCommand(t *testing.T) {
	for _, c := range []struct {
		row  Row
		want []string
	}{
		{Row{Scheduler: "kernel"}, nil},
		{Row{}, nil},
		{Row{Scheduler: "rota"}, []string{"/bin/rota", "run"}},
		{Row{Scheduler: "rota", Config: "x"}, []string{"/bin/rota", "run", "--config", "/etc/rota.yaml"}},
		{Row{Scheduler: "/bin/scx_lavd --performance"}, []string{"/bin/scx_lavd", "--performance"}},
	} {
		if got := schedulerCommand(c.row); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.row, got, c.want)
		}
	}
}

func TestRandDependsOnSeedAndName(t *testing.T) {
	draw := func(seed int64, name string) int64 { return (&Guest{Seed: seed}).Rand(name).Int63() }
	first := draw(1, "a")
	if again := draw(1, "a"); again != first {
		t.Error("the same seed and name differ")
	}
	if first == draw(2, "a") || first == draw(1, "b") {
		t.Error("seed or name does not matter")
	}
}

func TestTailIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, []byte(strings.Repeat("a", MaxOutput)+"end"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, cut := tail(path)
	if !cut || len(text) != MaxOutput || !strings.HasSuffix(text, "end") {
		t.Errorf("%d bytes, cut %v", len(text), cut)
	}
	if text, cut := tail(path + ".missing"); text != "" || cut {
		t.Errorf("missing file: %q, %v", text, cut)
	}
}

func TestLastWords(t *testing.T) {
	for _, c := range []struct {
		out  Output
		want string
	}{
		{Output{Stderr: " why \n", Stdout: "x"}, "why"},
		{Output{Stdout: "only\n"}, "only"},
		{Output{}, "it printed nothing"},
		{Output{Stderr: strings.Repeat("x", 3000)}, strings.Repeat("x", 2000)},
	} {
		if got := lastWords(c.out); got != c.want {
			t.Errorf("%.20q, want %.20q", got, c.want)
		}
	}
}

func TestParseStat(t *testing.T) {
	for line, want := range map[string][3]string{
		"17 (hog) R 1 1":          {"hog", "R", "17"},
		"9 (a) (b) S 2) R 1":      {"a) (b) S 2", "R", "9"},
		"broken":                  {},
		"1 (x":                    {},
		"12 (x)":                  {},
		"":                        {},
		") ( ":                    {},
		"5 (kworker/0:1-ev) I 2 ": {"kworker/0:1-ev", "I", "5"},
	} {
		comm, state, pid := parseStat(line)
		if got := [3]string{comm, state, pid}; got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestIsComplaint(t *testing.T) {
	for text, want := range map[string]bool{
		`sched_ext: BPF scheduler "rota" disabled (runnable task stall)`: true,
		"WARNING: CPU: 0 PID: 1 at kernel/x.c:1":                         true,
		"rcu: INFO: rcu_preempt self-detected stall":                     true,
		"rcu: Hierarchical SRCU implementation.":                         false,
		"Run /init as init process":                                      false,
	} {
		if isComplaint(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

func TestPlanHoldsNothingOfTheHost(t *testing.T) {
	p := Plan{Scenario: "wake", Row: Row{Name: "kernel", Scheduler: "kernel"}, Seed: 3, CPUs: 4, Limit: time.Second}
	text, err := p.Encode()
	want := `{"scenario":"wake","row":{"name":"kernel","scheduler":"kernel"},"seed":3,"cpus":4,"limit":1000000000}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
}

func TestIsStageAndWorker(t *testing.T) {
	if !IsStage([]string{"/init", "exec", "{}", "/bin/true"}) || IsStage([]string{"rota-lab", "exec", "--", "true"}) {
		t.Error("a stage is known by its first two words")
	}
	if !IsWorker([]string{"/init", "guest"}) || IsWorker([]string{"/init"}) || IsWorker([]string{"rota-lab", "guest"}) {
		t.Error("a worker is known by its words")
	}
}

func TestOnLostThreadIsNeverTheFirst(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		err := onLostThread(func() error {
			seen[unix.Gettid()] = true
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen[unix.Getpid()] || len(seen) < 2 {
		t.Errorf("threads used: %v, the process is %d", seen, unix.Getpid())
	}
}
