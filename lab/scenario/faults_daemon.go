package scenario

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"rota/lab/guest"
)

const (
	rotaConfig = "/etc/rota.yaml"
	// backLimit is the virtual time within which the kernel's own scheduler
	// must have every task back.
	backLimit = time.Second
	// daemonNice is the nice value of a daemon that starts among hogs: what is tested is
	// that it attaches, not how long the verifier's seconds take at a fourth of a CPU.
	daemonNice = -20
)

// daemonFaults are what can happen to the daemon and its configuration.
func daemonFaults() []fault {
	return []fault{
		{name: "config", label: "configuration broken in mid-run: refused", run: breakConfig, applies: hasClasses, classesOnly: true},
		{name: "error", label: "BPF error: the kernel takes over", run: provokeError, applies: isRota},
		{name: "term", label: "daemon ended with SIGTERM: the kernel takes over", run: killWith(syscall.SIGTERM), applies: hasDaemon},
		{name: "kill9", label: "daemon killed with SIGKILL: the kernel takes over", run: killWith(syscall.SIGKILL), applies: hasDaemon},
		{name: "restart", label: "daemon started again: attached", run: restart, applies: hasDaemon},
	}
}

func hasDaemon(g *guest.Guest) bool  { return g.Row.Scheduler != "" && g.Row.Scheduler != "kernel" }
func isRota(g *guest.Guest) bool     { return g.Row.Scheduler == "rota" }
func hasClasses(g *guest.Guest) bool { return isRota(g) && g.Row.Config != "" }

// breakConfig writes nonsense into the configuration and asks for a reload, by
// command and by signal: both must leave scheduler and classes as they are.
func breakConfig(r *faultRun) error {
	before, err := classNames(r.g)
	if err != nil {
		return err
	}
	good, err := os.ReadFile(rotaConfig)
	if err != nil {
		return err
	}
	defer os.WriteFile(rotaConfig, good, 0o644)
	for _, bad := range []string{"classes: [{name: urgent, tier: sideways}]\n", "classes:\n  - name: \xff\x00\n"} {
		if err := os.WriteFile(rotaConfig, []byte(bad), 0o644); err != nil {
			return err
		}
		out, err := r.g.Rota("reload")
		if err == nil {
			return fmt.Errorf("rota reload: accepted %q", bad)
		}
		r.g.Event("reload_refused", strings.TrimSpace(out.Stderr))
		if err := r.g.Scheduler().Signal(syscall.SIGHUP); err != nil {
			return err
		}
		r.g.Sleep(200 * time.Millisecond)
		after, err := classNames(r.g)
		if err != nil {
			return err
		}
		if !slices.Equal(before, after) {
			return fmt.Errorf("classes were %q and are %q after a broken configuration", before, after)
		}
	}
	return r.survived()
}

// classNames asks the daemon for the names of its classes.
func classNames(g *guest.Guest) ([]string, error) {
	classes, err := classesOf(g)
	var names []string
	for _, class := range classes {
		names = append(names, class.Name)
	}
	return names, err
}

// classTasks asks the daemon how many tasks a class has.
func classTasks(g *guest.Guest, name string) (int, error) {
	classes, err := classesOf(g)
	for _, class := range classes {
		if class.Name == name {
			return class.Tasks, nil
		}
	}
	return 0, cmp.Or(err, fmt.Errorf("rota status --json: no class %q in it", name))
}

// classStatus is what the daemon says of a class.
type classStatus struct {
	Name  string `json:"name"`
	Tasks int    `json:"tasks"`
}

func classesOf(g *guest.Guest) ([]classStatus, error) {
	out, err := g.Rota("status", "--json")
	if err != nil {
		return nil, err
	}
	var status struct {
		Classes []classStatus `json:"classes"`
	}
	if err := json.Unmarshal([]byte(out.Stdout), &status); err != nil {
		return nil, fmt.Errorf("rota status --json: %w", err)
	}
	if len(status.Classes) == 0 {
		return nil, errors.New("rota status --json: no classes in it")
	}
	return status.Classes, nil
}

// provokeError starts rota with the hidden switch that makes its BPF part fail
// a second later: the kernel must have every task at once, the daemon must say
// why, and start again.
func provokeError(r *faultRun) error {
	if err := r.g.StopScheduler(); err != nil {
		return err
	}
	p, err := r.g.Start(guest.Cmd{Path: "rota", Args: []string{"run", "--debug-fault", "error"}, Nice: daemonNice})
	if err != nil {
		return err
	}
	defer p.Stop(5 * time.Second)
	const name = "rota run --debug-fault error"
	if !r.attachesAlone() {
		return fmt.Errorf("%s: never attached: %q", name, lastLine(p))
	}
	if !r.becomesAttached(false, 10*time.Second) {
		return fmt.Errorf("%s: still attached after 10 s", name)
	}
	if err := r.alive(); err != nil {
		return err
	}
	if !r.attachesAlone() {
		return fmt.Errorf("%s: not attached again: %q", name, lastLine(p))
	}
	out := p.Output()
	words := out.Stderr + out.Stdout
	r.g.Event("bpf_error", strings.TrimSpace(words))
	if !strings.Contains(words, "debug: fault") { // the words of the BPF part
		return fmt.Errorf("%s: does not say why the scheduler ended: %q", name, words)
	}
	return r.alive()
}

// attachesAlone waits until a scheduler has attached, while the hogs are stopped. Beside them it
// takes four times as long, since the CPUs share the machine's time: restart shows that once.
func (r *faultRun) attachesAlone() bool {
	r.pause()
	defer r.resume()
	return r.becomesAttached(true, 20*time.Second)
}

// lastLine is the last that a program printed.
func lastLine(p *guest.Proc) string {
	out := p.Output()
	text := strings.TrimSpace(out.Stdout + out.Stderr)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// linesWith are the lines with these words among what a program printed.
func linesWith(p *guest.Proc, words string) []string {
	out := p.Output()
	return slices.DeleteFunc(strings.Split(out.Stdout+out.Stderr, "\n"), func(line string) bool {
		return !strings.Contains(line, words)
	})
}

// killWith ends the daemon by a signal: the kernel must have every task at once.
func killWith(signal syscall.Signal) func(*faultRun) error {
	return func(r *faultRun) error {
		if !r.g.SchedulerAttached() {
			r.pause()
			err := r.g.StartScheduler(daemonNice)
			r.resume()
			if err != nil {
				return err
			}
		}
		daemon := r.g.Scheduler()
		if err := daemon.Signal(signal); err != nil {
			return err
		}
		if !r.becomesAttached(false, backLimit) {
			return fmt.Errorf("daemon after %v: the scheduler is still attached after %v; its threads: %s", signal, backLimit, daemon.Threads())
		}
		if err := r.alive(); err != nil {
			return err
		}
		if _, err := daemon.WaitFor(5 * time.Second); errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("daemon after %v: %w", signal, err)
		}
		return nil
	}
}

// restart starts the daemon again after all of that.
func restart(r *faultRun) error {
	if r.g.SchedulerAttached() {
		return errors.New("a scheduler is attached although its daemon was killed")
	}
	if err := r.g.StartScheduler(daemonNice); err != nil {
		return err
	}
	return r.survived()
}
