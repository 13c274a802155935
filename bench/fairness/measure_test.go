package fairness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rota/bench/cpufreq"
)

// ownCPU is one that this process may run on.
func ownCPU(t *testing.T) int {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			return cpu
		}
	}
	return 0
}

// policy is one on files, whose CPU runs as fast as it is asked to, at most so fast.
func policy(t *testing.T, cpu, most int) (p *cpufreq.Policy, limits func() string) {
	t.Helper()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, "policy0", name) }
	err := os.Mkdir(filepath.Join(dir, "policy0"), 0o755)
	for name, text := range map[string]string{
		"affected_cpus": fmt.Sprint(cpu, 1022), "cpuinfo_max_freq": "2000000", "cpuinfo_min_freq": "1000000",
		"scaling_min_freq": "1000000", "scaling_max_freq": "1900000", "scaling_cur_freq": "1",
	} {
		err = errors.Join(err, os.WriteFile(in(name), []byte(text), 0o644))
	}
	if err == nil {
		p, err = cpufreq.Open(dir, cpu)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
			var khz int
			text, _ := os.ReadFile(in("scaling_max_freq"))
			if n, _ := fmt.Sscan(string(text), &khz); n == 1 && strings.HasSuffix(string(text), "\n") {
				os.WriteFile(in("cur~"), []byte(fmt.Sprint(min(khz, most))), 0o644)
				os.Rename(in("cur~"), in("scaling_cur_freq"))
			}
		}
	}()
	t.Cleanup(func() { end(); <-ended; p.Close() })
	return p, func() string {
		low, _ := os.ReadFile(in("scaling_min_freq"))
		high, _ := os.ReadFile(in("scaling_max_freq"))
		return strings.TrimSpace(string(low)) + ".." + strings.TrimSpace(string(high))
	}
}

// isolated skips a test that needs PID namespaces where there are none.
func isolated(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

func options(t *testing.T, commands ...string) Options {
	return Options{
		Commands: commands, Copies: 2, CPU: ownCPU(t), Span: 300 * time.Millisecond, Settle: 10 * time.Millisecond,
		Frequencies: []int{2000000, 1500000}, Progress: Lines,
	}
}

// beat marks the commands of this test among all processes.
var beat = fmt.Sprintf("beat-%d-", os.Getpid())

// marked are the processes that have this word in their command line.
func marked(t *testing.T, word string) (pids []int) {
	t.Helper()
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range found {
		var pid int
		fmt.Sscanf(name, "/proc/%d/", &pid)
		if text, _ := os.ReadFile(name); strings.Contains(string(text), word) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func left(t *testing.T, word string) int { return len(marked(t, word)) }

// A frequency that leaves during the span ends the measurement.
func TestHold(t *testing.T) {
	p, _ := policy(t, ownCPU(t), 2000000)
	if err := p.Hold(2000000); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Follow(t.Context(), 2000000); err != nil {
		t.Fatal(err)
	}
	c := &crew{}
	if now, err := c.hold(t.Context(), p, 1950000, heldEvery/10); err != nil || now != 2000000 {
		t.Error(now, err)
	}
	if _, err := c.hold(t.Context(), p, 1500000, time.Hour); err == nil || !strings.Contains(err.Error(), "asked for 1500 MHz, runs at 2000 MHz") {
		t.Error(err)
	}
}

// A line every 10 ms, by a command that ends and is started again; and two at a time, by one
// that has something else run beside it, which hides.
func TestMeasure(t *testing.T) {
	isolated(t)
	o := options(t,
		`i=0; while [ $i -lt 120 ]; do echo; i=$((i+1)); sleep 0.01; done # `+beat,
		`setsid sh -c "sleep 4711; : `+beat+`" & while :; do echo; echo; sleep 0.01; done # `+beat)
	p, limits := policy(t, o.CPU, 2000000)
	var said []string
	r, err := Measure(t.Context(), p, o, func(words string) {
		said = append(said, words)
		// Each with the shell that started it. One that has just ended is on its way to be started again.
		run := left(t, beat)
		for until := time.Now().Add(5 * time.Second); run < 2*2*2 && time.Now().Before(until); run = left(t, beat) {
			time.Sleep(time.Millisecond)
		}
		if run < 2*2*2 {
			t.Errorf("%d programs run", run)
		}
		for _, pid := range marked(t, beat) {
			var set unix.CPUSet
			if unix.SchedGetaffinity(pid, &set) == nil && (set.Count() != 1 || !set.IsSet(o.CPU)) {
				t.Errorf("process %d may run elsewhere", pid)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if limits() != "1000000..1900000" || left(t, beat) != 0 {
		t.Errorf("left behind: limits %s, %d programs", limits(), left(t, beat))
	}
	if len(said) != 3 || said[1] != "policy0 at 1500 MHz" {
		t.Errorf("%q", said)
	}
	if len(r.Steps) != 2 || r.Steps[1].KHz != 1500000 || r.Steps[1].RunsAtKHz != 1500000 || r.Again.KHz != 2000000 || r.Policy != "policy0" || len(r.Siblings) != 1 || r.Siblings[0] != 1022 {
		t.Fatalf("%+v", r)
	}
	for _, s := range append(r.Steps, r.Again) {
		// Of 200 and 400 lines; a beat takes longer on a busy machine.
		if a, b := s.PerSecond[0], s.PerSecond[1]; a <= 0 || a > 300 || b <= 0 || b > 600 {
			t.Errorf("%+v", s)
		}
	}
	if top := r.Steps[0]; top.Kept[0] != 1 || top.Degree != 0 || r.Steps[1].MeanKept <= 0 {
		t.Errorf("%+v", r.Steps)
	}
}

func TestMeasureFaults(t *testing.T) {
	isolated(t)
	steady := "while :; do echo; sleep 0.01; done # " + beat
	for _, test := range []struct {
		name, command, want string
		most                int
	}{
		{"unknown", "no-such-program", `command "no-such-program": can't be started, exit status 127: `, 2000000},
		{"at once", "echo not today >&2; exit 3", "ends at once, 5 times in succession, the last time with exit status 3: not today: see that", 2000000},
		{"little", "true", "the last time with exit status 0: give it more to do", 2000000},
		{"silent", "sleep 100", "no lines in 300ms: it wrote no line", 2000000},
		{"slow CPU", steady, "policy0: asked for 2000 MHz, runs at 1700 MHz: ", 1700000},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := options(t, steady, test.command)
			p, limits := policy(t, o.CPU, test.most)
			_, err := Measure(t.Context(), p, o, func(string) {})
			if err == nil || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 1000 {
				t.Errorf("%v, want %q", err, test.want)
			}
			if limits() != "1000000..1900000" || left(t, beat) != 0 {
				t.Errorf("left behind: limits %s, %d programs", limits(), left(t, beat))
			}
		})
	}
}

func TestMeasureInterrupted(t *testing.T) {
	isolated(t)
	o := options(t, "while :; do sleep 0.01; done # "+beat, "trap '' INT TERM; while :; do sleep 0.01; done # "+beat)
	p, limits := policy(t, o.CPU, 2000000)
	ctx, end := context.WithCancel(t.Context())
	_, err := Measure(ctx, p, o, func(string) { time.AfterFunc(100*time.Millisecond, end) })
	if err != ctx.Err() || err == nil || limits() != "1000000..1900000" || left(t, beat) != 0 {
		t.Errorf("%v, limits %s, %d programs left", err, limits(), left(t, beat))
	}
}

func TestOptionsCheck(t *testing.T) {
	good := Options{Commands: []string{"a", "b"}, Copies: 1, Span: time.Second}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Options){
		"commands: 1 given, must be 2..16":          func(o *Options) { o.Commands = o.Commands[:1] },
		"commands: 17 given":                        func(o *Options) { o.Commands = make([]string, 17) },
		`command " ": must be`:                      func(o *Options) { o.Commands = []string{"a", " "} },
		`command "a\x00": must be`:                  func(o *Options) { o.Commands = []string{"a", "a\x00"} },
		"must be 1..4096 bytes":                     func(o *Options) { o.Commands = []string{"a", strings.Repeat("b", 4097)} },
		"--copies 0: must be 1..64":                 func(o *Options) { o.Copies = 0 },
		"--copies 65: must be 1..64":                func(o *Options) { o.Copies = 65 },
		"--copies 64: of 5 commands, at most 51":    func(o *Options) { o.Copies, o.Commands = 64, []string{"a", "b", "c", "d", "e"} },
		"--span 99ms: must be 100ms..1h0m0s":        func(o *Options) { o.Span = 99 * time.Millisecond },
		"--span 1h0m1s: must be 100ms..1h0m0s":      func(o *Options) { o.Span = time.Hour + time.Second },
		"--settle -1ns: must be 0s..1m0s":           func(o *Options) { o.Settle = -1 },
		"--settle 1m0.000000001s: must be 0s..1m0s": func(o *Options) { o.Settle = time.Minute + 1 },
	} {
		o := good
		change(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestScaled(t *testing.T) {
	for want, in := range map[float64][3]uint64{7: {7, 0, 0}, 8: {8, 10, 10}, 20: {10, 30, 15}} {
		if got := scaled(in[0], in[1], in[2]); got != want {
			t.Errorf("%v: %v, want %v", in, got, want)
		}
	}
}

func TestTail(t *testing.T) {
	var words tail
	if words.String() != "" {
		t.Errorf("%q", words.String())
	}
	for range 300 {
		fmt.Fprint(&words, "a\xff\nb ")
	}
	if s := words.String(); len(s) > maxStderr+2 || !strings.HasSuffix(s, " a? b") || !strings.HasPrefix(s, ": ") {
		t.Errorf("%q", s)
	}
}
