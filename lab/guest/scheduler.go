package guest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	schedExt = "/sys/kernel/sched_ext"
	rotaPath = "/bin/rota"
	// attachLimit bounds the wait for a scheduler, in virtual time; the
	// slowest peer known takes 40 s.
	attachLimit = 90 * time.Second
)

// ConfigPath is where the guest has the row's configuration of rota.
const ConfigPath = "/etc/rota.yaml"

// RecordPath is where rota writes its record, in rows that want one.
const RecordPath = "/tmp/rota.record"

// SchedulerAttached reports whether a sched_ext scheduler has the machine's
// tasks right now.
func (g *Guest) SchedulerAttached() bool { return schedExtState() == "enabled" }

// SchedulerName returns the name of the attached scheduler, "" without one.
func (g *Guest) SchedulerName() string {
	b, _ := os.ReadFile(filepath.Join(schedExt, "root/ops"))
	return strings.TrimSpace(string(b))
}

// Rota runs the rota command line against the daemon in the guest.
func (g *Guest) Rota(args ...string) (Output, error) {
	return g.RotaOn("", args...)
}

// RotaOn is Rota on these CPUs, as "0-1".
func (g *Guest) RotaOn(cpus string, args ...string) (Output, error) {
	return g.Run(Cmd{Path: rotaPath, Args: args, CPUs: cpus})
}

// StartScheduler starts the row's scheduler, with this nice value, and waits until it has
// attached. The guest does so before it calls the scenario; a scenario calls it again
// after it has ended the scheduler.
func (g *Guest) StartScheduler(nice int) error {
	words := schedulerCommand(g.Row)
	if words == nil {
		return nil
	}
	if schedExtState() == "" {
		return fmt.Errorf("scheduler %q: kernel %s has no sched_ext; use a kernel of 6.17 or later", g.Row.Scheduler, g.Release)
	}
	p, err := g.Start(Cmd{Path: words[0], Args: words[1:], Nice: nice})
	if err != nil {
		return err
	}
	g.scheduler = p
	for waited := time.Duration(0); ; waited += 10 * time.Millisecond {
		switch {
		case g.SchedulerAttached():
			return nil
		case !p.Running():
			out, _ := p.Wait()
			return fmt.Errorf("scheduler %q: ended with exit code %d before it attached: %s", g.Row.Scheduler, out.Exit, lastWords(out))
		case waited > attachLimit:
			return fmt.Errorf("scheduler %q: not attached after %v: %s", g.Row.Scheduler, attachLimit, lastWords(p.Kill()))
		}
		g.Sleep(10 * time.Millisecond)
	}
}

// StopScheduler ends the daemon and waits until the kernel's own scheduler
// has every task again.
func (g *Guest) StopScheduler() error {
	if g.scheduler == nil {
		return nil
	}
	out := g.scheduler.Stop(10 * time.Second)
	g.scheduler = nil
	for i := 0; i < 500 && schedExtState() != "disabled"; i++ {
		g.Sleep(10 * time.Millisecond)
	}
	if state := schedExtState(); state != "disabled" {
		return fmt.Errorf("scheduler %q: ended, but sched_ext is still %q after 5s: %s", g.Row.Scheduler, state, lastWords(out))
	}
	return nil
}

// schedulerCommand is what starts the row's scheduler; nil for the kernel's.
func schedulerCommand(r Row) []string {
	switch r.Scheduler {
	case "", "kernel":
		return nil
	case "rota":
		command := []string{rotaPath, "run"}
		if r.Config != "" {
			command = append(command, "--config", ConfigPath)
		}
		if r.Record > 0 {
			command = append(command, "--record", RecordPath, "--record-events", strconv.Itoa(r.Record))
		}
		return command
	}
	return strings.Fields(r.Scheduler)
}

// schedExtState is "enabled", "disabled", ..., and "" on kernels without it.
func schedExtState() string {
	b, _ := os.ReadFile(filepath.Join(schedExt, "state"))
	return strings.TrimSpace(string(b))
}
