package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rota/internal/api"
	"rota/internal/sched"
)

const twoClasses = `classes: [{name: a, tier: priority}, {name: b}]
rules: [{match: {comm: x}, class: a}, {match: {comm: y}, class: b}]
`

func names(p sched.Params) string {
	var list []string
	for _, c := range p.Classes {
		list = append(list, c.Name)
	}
	return strings.Join(list, " ")
}

func (f *fakeScheduler) last() sched.Params {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.params) == 0 {
		return sched.Params{}
	}
	return f.params[len(f.params)-1]
}

// attached is a daemon that runs on a fake until the test ends.
func attached(t *testing.T, text string) (*Daemon, *fakeScheduler) {
	t.Helper()
	l := newLoader()
	d, _ := newDaemon(t, text, l.load)
	ctx, cancel := context.WithCancel(context.Background())
	done := start(ctx, d)
	t.Cleanup(func() {
		cancel()
		<-done
	})
	for d.Status().State != api.Running {
		time.Sleep(time.Millisecond)
	}
	return d, l.fakes[0]
}

func rewrite(t *testing.T, d *Daemon, text string) {
	t.Helper()
	// As editors do: another file in the place of the old one.
	fresh := d.Source.Path + ".swp"
	if err := os.WriteFile(fresh, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, d.Source.Path); err != nil {
		t.Fatal(err)
	}
}

func TestReload(t *testing.T) {
	d, f := attached(t, twoClasses)
	proc := fakeProc{t, d.Proc}
	rewrite(t, d, "scheduler: {slice: 1ms}\n"+
		"classes: [{name: b, weight: 7}, {name: c}]\nrules: [{match: {comm: x}, class: c}, {match: {comm: y}, class: b}]\n")
	proc.task(1, 1, "/", "x", 0)
	answer, err := d.Reload(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// No task of the fake procfs is alive, so none can be held; but both
	// configurations arrive, the removed class last.
	if len(f.params) != 2 || names(f.params[0]) != "default a b rota c" || names(f.last()) != "default (free) b rota c" {
		t.Errorf("configured %+v", f.params)
	}
	if p := f.last(); p.Slice != time.Millisecond || p.Classes[2].Weight != 7 || !p.Watch {
		t.Errorf("configured %+v", p)
	}
	if answer.Classes != 3 || answer.Config.Rules != 2 {
		t.Errorf("answered %+v", answer)
	}
	var got []string
	for _, c := range d.Status().Classes {
		got = append(got, c.Name)
	}
	if strings.Join(got, " ") != "default b c rota" {
		t.Errorf("status shows %q", got)
	}
}

func TestReloadRefused(t *testing.T) {
	d, f := attached(t, twoClasses)
	rewrite(t, d, "classes: [{name: a, tier: x}]\n")
	_, err := d.Reload(t.Context())
	var refused *api.Error
	if !errors.As(err, &refused) || refused.Code != 422 || len(refused.Faults) != 1 {
		t.Fatalf("%v", err)
	}
	s := d.Status()
	if len(f.params) != 0 || len(s.Config.Refused) != 1 || s.Config.Rules != 2 || s.State != api.Running {
		t.Errorf("%d configurations, status %+v", len(f.params), s)
	}
	rewrite(t, d, twoClasses)
	if _, err := d.Reload(t.Context()); err != nil || len(d.Status().Config.Refused) != 0 {
		t.Errorf("%v, still refused: %v", err, d.Status().Config.Refused)
	}
}

// TestReloadLostFile: the defaults don't take the place of a file that is gone, or was cut off.
func TestReloadLostFile(t *testing.T) {
	d, f := attached(t, twoClasses)
	d.Source.Optional = true
	for fault, lose := range map[string]func() error{
		"is gone":  func() error { return os.Remove(d.Source.Path) },
		"is empty": func() error { return os.Truncate(d.Source.Path, 0) },
	} {
		rewrite(t, d, twoClasses)
		if err := lose(); err != nil {
			t.Fatal(err)
		}
		_, err := d.Reload(t.Context())
		var refused *api.Error
		if !errors.As(err, &refused) || len(refused.Faults) != 1 || refused.Faults[0].Fault != fault {
			t.Errorf("%v, must say that the file %s", err, fault)
		}
		if s := d.Status(); s.Config.Rules != 2 || f.configured() != 0 {
			t.Errorf("the file %s: %d rules in force, configured %d times", fault, s.Config.Rules, f.configured())
		}
	}
	rewrite(t, d, "{}")
	if _, err := d.Reload(t.Context()); err != nil || d.Status().Config.Rules != 0 {
		t.Errorf("%v, %d rules", err, d.Status().Config.Rules)
	}
}

// TestReloadNobodyWaitsFor: who has gone while others reloaded changes nothing.
func TestReloadNobodyWaitsFor(t *testing.T) {
	d, f := attached(t, twoClasses)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Reload(ctx); !errors.Is(err, context.Canceled) || f.configured() != 0 {
		t.Errorf("%v, configured %d times", err, f.configured())
	}
}

func TestReloadRefusedByKernel(t *testing.T) {
	d, f := attached(t, twoClasses)
	f.mu.Lock()
	f.refuse = errors.New("no memory")
	f.mu.Unlock()
	rewrite(t, d, "{}")
	_, err := d.Reload(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no memory") || len(d.Status().Classes) != 4 {
		t.Errorf("%v, %v", err, d.Status().Classes)
	}
}

func TestReloadWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoader()
		d, _ := newDaemon(t, "", l.load)
		ctx, cancel := context.WithCancel(t.Context())
		done := start(ctx, d)
		synctest.Wait()
		l.fakes[0].exit <- stall
		synctest.Wait()
		rewrite(t, d, twoClasses)
		if _, err := d.Reload(ctx); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		if s := d.Status(); s.State != api.Running || len(s.Classes) != 4 {
			t.Errorf("%s with %d classes", s.State, len(s.Classes))
		}
		cancel()
		<-done
	})
}

// watching has the daemon watch its file until the test ends.
func watching(t *testing.T, d *Daemon) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		d.Watch(ctx)
		close(stopped)
	}()
	t.Cleanup(func() {
		cancel()
		<-stopped
	})
	time.Sleep(50 * time.Millisecond) // until it watches
}

func seen(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("not seen: " + what)
}

// TestWatchElsewhere: the folder may be another one, and the file a link to a third.
func TestWatchElsewhere(t *testing.T) {
	d, _ := attached(t, twoClasses)
	folder := filepath.Join(t.TempDir(), "etc")
	d.Source.Path = filepath.Join(folder, "rota.yaml")
	watching(t, d) // there is no folder yet
	far := filepath.Join(t.TempDir(), "far.yaml")
	if err := errors.Join(os.WriteFile(far, []byte("{}"), 0o644), os.Mkdir(folder, 0o755), os.Symlink(far, d.Source.Path)); err != nil {
		t.Fatal(err)
	}
	seen(t, "a folder that came", func() bool { return d.Status().Config.Rules == 0 })
	if err := os.WriteFile(far, []byte(twoClasses), 0o644); err != nil {
		t.Fatal(err)
	}
	seen(t, "a change behind a link", func() bool { return d.Status().Config.Rules == 2 })
}

func TestWatch(t *testing.T) {
	d, f := attached(t, twoClasses)
	watching(t, d)
	rewrite(t, d, "{}")
	seen(t, "a file renamed into place", func() bool { return d.Status().Config.Rules == 0 })
	// What a command has read is not read again.
	rewrite(t, d, "classes: [{name: z}]\n")
	if _, err := d.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	done := f.configured()
	time.Sleep(3 * settle)
	if n := f.configured(); n != done {
		t.Errorf("configured %d times for one reload, want %d", n, done)
	}
	if err := os.WriteFile(d.Source.Path, []byte("x: 1"), 0o644); err != nil {
		t.Fatal(err)
	}
	seen(t, "a file written in place", func() bool { return len(d.Status().Config.Refused) == 1 })
	if err := os.Remove(d.Source.Path); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * settle)
	rewrite(t, d, twoClasses)
	seen(t, "a file that came back", func() bool { return d.Status().Config.Rules == 2 })
}

func TestOptionalSource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rota.yaml")
	c, from, err := Source{Path: path, Optional: true}.read()
	if err != nil || from != "" || len(c.Classes) != 1 {
		t.Errorf("%+v, %q, %v", c, from, err)
	}
	if _, _, err := (Source{Path: path}).read(); err == nil {
		t.Error("a named file may be missing")
	}
}
