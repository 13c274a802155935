package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rota/internal/api"
	"rota/internal/sched"
	"rota/internal/where"
)

const functionConfig = "classes: [{name: net, tier: priority}]\nrules: [{match: {kernelFunction: \"m:send\"}, class: net}]\n"

// fakeFunction is a function of a kernel of which the test says who executes it.
type fakeFunction struct {
	seen   chan []where.Executed
	closed bool
}

func (f *fakeFunction) Close() { f.closed = true }

func (f *fakeFunction) Tasks() ([]where.Executed, error) {
	select {
	case seen := <-f.seen:
		return seen, nil
	default:
		return nil, nil
	}
}

// executing is a daemon with functionConfig; load says whether the module is there.
func executing(t *testing.T) (d *Daemon, scheduler *fakeScheduler, function *fakeFunction, load func()) {
	t.Helper()
	scheduler, function = newFake(), &fakeFunction{seen: make(chan []where.Executed, 9)}
	d, _ = newDaemon(t, functionConfig, func() (Scheduler, error) { return scheduler, nil })
	modules := filepath.Join(filepath.Dir(d.Source.Path), "proc/modules")
	d.OpenFunction = func(name string) (FunctionWatch, error) {
		if _, err := os.Stat(modules); err != nil || name != "m:send" {
			return nil, fmt.Errorf("%s: is not loaded", name)
		}
		return function, nil
	}
	return d, scheduler, function, func() {
		if err := os.WriteFile(modules, []byte("m 16384 0 - Live 0x0000000000000000\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// runs writes what procfs says about a task that was started then, in ticks.
func runs(t *testing.T, d *Daemon, tid, ticks int) {
	p := fakeProc{t, d.Proc}
	p.task(tid, tid, "/", "sender", 0)
	p.write(fmt.Sprint(tid)+"/stat", fmt.Sprintf("%d (a) b) S 1 9 9 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 %d 999\n", tid, ticks))
}

// running runs the daemon until what it returns is called.
func running(t *testing.T, d *Daemon) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := start(ctx, d)
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestKernelFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, scheduler, function, load := executing(t)
		runs(t, d, 7, 5)
		stop := running(t, d)
		time.Sleep(3 * readEvery)
		if got := d.Status().Functions; !reflect.DeepEqual(got, []api.Function{{Name: "m:send", Note: "m:send: is not loaded"}}) {
			t.Errorf("without the module: %+v", got)
		}
		load()
		time.Sleep(2 * readEvery)
		const start = 5*10_000_000 + 3
		function.seen <- []where.Executed{{TID: 7, TGID: 7, Started: start, Count: 2}, {TID: 8, TGID: 8, Started: 1, Count: 1}}
		time.Sleep(2 * readEvery)
		if got, _ := scheduler.class(7); got != 1 || scheduler.starts[7] != start {
			t.Errorf("who executes it has class %d, started %d", got, scheduler.starts[7])
		}
		if got := d.Status().Functions; !reflect.DeepEqual(got, []api.Function{{Name: "m:send", Tasks: 2}}) {
			t.Errorf("watched: %+v", got)
		}
		looks := scheduler.looks()
		function.seen <- []where.Executed{{TID: 7, TGID: 7, Started: start, Count: 2}}
		time.Sleep(forgetAfter - 4*readEvery)
		if got, _ := scheduler.class(7); got != 1 || scheduler.looks() != looks {
			t.Errorf("within a minute: class %d, looked at %d times", got, scheduler.looks()-looks)
		}
		time.Sleep(8 * readEvery)
		synctest.Wait()
		if got, _ := scheduler.class(7); got != 0 {
			t.Errorf("a minute later: class %d", got)
		}
		if stop(); !function.closed {
			t.Error("not closed")
		}
	})
}

// A child of a task that has its class by what it executes does not execute that.
func TestKernelFunctionIsNotForChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, scheduler, function, load := executing(t)
		load()
		runs(t, d, 7, 5)
		runs(t, d, 8, 5)
		stop := running(t, d)
		function.seen <- []where.Executed{{TID: 7, TGID: 7, Started: 5 * 10_000_000, Count: 2}}
		time.Sleep(3 * readEvery)
		d.current().tasks.note(sched.Event{Task: sched.TaskID{TID: 8, Start: 5 * 10_000_000}, TGID: 8})
		time.Sleep(readEvery)
		if !scheduler.alone[7] || scheduler.alone[8] {
			t.Errorf("alone: %v", scheduler.alone)
		}
		stop()
	})
}

// A module that is exchanged takes the probe with it.
func TestKernelFunctionOfNewModule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, function, load := executing(t)
		load()
		opened := 0
		open := d.OpenFunction
		d.OpenFunction = func(name string) (FunctionWatch, error) { opened++; return open(name) }
		stop := running(t, d)
		modules := filepath.Join(filepath.Dir(d.Source.Path), "proc/modules")
		for _, step := range []struct {
			text   string
			opened int
		}{
			{"m 16384 5 - Live 0x0\n", 1}, // in use by others
			{"m 16384 5 - Live 0x0\nn 1 0 - Loading 0x0\n", 1},
			{"m 16384 5 - Live 0x0\nn 1 0 - Live 0x0\n", 2},
		} {
			inOnePiece(t, modules, step.text)
			time.Sleep(3 * readEvery)
			if opened != step.opened {
				t.Errorf("%q: opened %d times, want %d", step.text, opened, step.opened)
			}
		}
		if stop(); !function.closed {
			t.Error("not closed")
		}
	})
}

// A storm of short tasks costs memory for so many.
func TestKernelFunctionBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, function, load := executing(t)
		load()
		stop := running(t, d)
		var storm []where.Executed
		for tid := range uint32(maxExecutors + 10) {
			storm = append(storm, where.Executed{TID: 1<<20 + tid, TGID: 1 << 20, Started: 1, Count: 1})
		}
		function.seen <- storm
		time.Sleep(2 * readEvery)
		if got := d.Status().Functions[0]; got.Tasks > maxExecutors || !strings.Contains(got.Note, "more than 8192 tasks") {
			t.Errorf("%+v", got)
		}
		time.Sleep(2 * pruneEvery)
		if got := d.Status().Functions[0]; got.Tasks != 0 {
			t.Errorf("after they ended: %+v", got)
		}
		stop()
	})
}

// A number that was given again is not the one that was seen.
func TestKernelFunctionOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, scheduler, function, load := executing(t)
		load()
		runs(t, d, 7, 6)
		stop := running(t, d)
		function.seen <- []where.Executed{{TID: 7, TGID: 7, Started: 5 * 10_000_000, Count: 2}}
		time.Sleep(3 * readEvery)
		if got, _ := scheduler.class(7); got != 0 {
			t.Errorf("class %d", got)
		}
		stop()
	})
}

func TestKernelFunctionLeavesFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, function, load := executing(t)
		load()
		stop := running(t, d)
		time.Sleep(2 * readEvery)
		rewrite(t, d, "classes: [{name: net, tier: priority}]\n")
		if _, err := d.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * readEvery)
		if got := d.Status().Functions; len(got) != 0 || !function.closed {
			t.Errorf("%+v, closed %v", got, function.closed)
		}
		stop()
	})
}
