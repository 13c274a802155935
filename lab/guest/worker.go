package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// work is the worker: it prepares the machine, runs the scenario under the
// row's scheduler and reports. Every fault becomes an error line.
func work(find Functions) {
	port, err := openResults()
	if err != nil {
		fmt.Fprintln(os.Stderr, "rota-lab:", err)
		os.Exit(1)
	}
	g := &Guest{out: newWriter(port)}
	if err := g.cell(find); err != nil {
		g.out.fail(err.Error())
	}
	for _, l := range kernelComplaints() {
		g.Log("kernel: %s", l)
	}
	g.out.value("virtual_time_s", sinceBoot().Seconds())
	exit := 0
	if g.out.hasFailed() {
		exit = 1
	}
	g.out.end(exit)
	drain(port)
}

func (g *Guest) cell(find Functions) error {
	plan, err := readPlan()
	if err != nil {
		return err
	}
	run, known := find(plan.Scenario)
	if !known {
		return fmt.Errorf("scenario %q: not in this program", plan.Scenario)
	}
	g.Row, g.Seed, g.CPUs, g.Command = plan.Row, plan.Seed, plan.CPUs, plan.Command
	if err := g.prepare(plan); err != nil {
		return err
	}
	if err := g.setFeatures(featuresPath); err != nil {
		return err
	}
	g.jitter("scheduler")
	if err := g.StartScheduler(0); err != nil {
		g.Event("attached", "false")
		return err
	}
	// Not before: nothing is measured yet, and QEMU takes a third longer for a machine whose time
	// is in small pieces.
	g.jitter("interleave")
	if plan.Turns != TurnsNone {
		if err := interleave(plan.Turns); err != nil {
			return fmt.Errorf("fine interleaving: %w", err)
		}
	}
	g.jitter("scenario")
	return errors.Join(run(g), g.finish())
}

// prepare makes the machine ready and says what it is.
func (g *Guest) prepare(plan Plan) error {
	g.Release = release()
	g.Event("kernel", g.Release)
	if plan.Links {
		// Programs that are there stay, and each is a complaint and an exit code.
		if out, err := g.Run(Cmd{Path: "/bin/busybox", Args: []string{"--install", "-s", "/bin"}}); err != nil && out.Exit != 1 {
			return fmt.Errorf("link the applets of busybox: %w", err)
		}
	}
	for _, module := range plan.Modules {
		g.jitter(module)
		if err := loadModule(module); err != nil {
			return err
		}
	}
	g.Event("clocksource", settledClock())
	if n := onlineCPUs(); n != plan.CPUs {
		return fmt.Errorf("machine has %d CPUs online, not the %d asked for", n, plan.CPUs)
	}
	if err := loopbackUp(); err != nil {
		return fmt.Errorf("bring lo up: %w", err)
	}
	return mixSeed(plan.Seed)
}

// finish checks that the scheduler still has the machine and gives it back.
func (g *Guest) finish() error {
	if g.scheduler == nil && schedulerCommand(g.Row) == nil {
		g.Event("attached", strconv.FormatBool(g.SchedulerAttached()))
		return nil
	}
	attached := g.SchedulerAttached()
	g.Event("attached", strconv.FormatBool(attached))
	var words string
	if g.scheduler != nil {
		words = lastWords(g.scheduler.Output())
		g.Log("scheduler: %s", words)
	}
	if !attached && !g.mayDetach {
		return fmt.Errorf("scheduler %q: lost during the run: %s", g.Row.Scheduler, words)
	}
	return g.StopScheduler()
}

// jitter lets a moment pass that depends on the seed, so that seeds differ in
// the phase of everything that follows. At most 4 ms of virtual time.
func (g *Guest) jitter(step string) {
	g.Sleep(time.Duration(g.Rand(step).Int63n(int64(4 * time.Millisecond))))
}

func mixSeed(seed int64) error {
	if err := os.WriteFile("/dev/urandom", []byte("rota-lab seed "+strconv.FormatInt(seed, 10)), 0); err != nil {
		return fmt.Errorf("mix the seed in: %w", err)
	}
	return nil
}

// loadModule loads a module; its parameters follow the path after a space.
func loadModule(line string) error {
	path, parameters, _ := strings.Cut(line, " ")
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		err = unix.FinitModule(int(f.Fd()), parameters, 0)
	}
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("load module %s: %w", filepath.Base(path), err)
	}
	return nil
}

func release() string {
	var u unix.Utsname
	unix.Uname(&u)
	return unix.ByteSliceToString(u.Release[:])
}

// settledClock waits until the kernel has chosen its clock for good, at most
// two seconds, and returns it.
func settledClock() string {
	for waited := time.Duration(0); ; waited += 10 * time.Millisecond {
		if name := clocksource(); name != "tsc-early" || waited > 2*time.Second {
			return name
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func clocksource() string {
	b, _ := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	return strings.TrimSpace(string(b))
}

func onlineCPUs() int {
	b, _ := os.ReadFile("/sys/devices/system/cpu/online")
	set, err := parseCPUs(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return set.Count()
}
