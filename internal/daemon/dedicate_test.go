package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rota/internal/api"
	"rota/internal/config"
)

const ownerConfig = "classes: [{name: a, tier: priority, cpus: {dedicated: 1, lend: true, lendAfter: 2ms}}]\n"

// online says which CPUs of the fake machine are online.
func online(t *testing.T, d *Daemon, list string) {
	t.Helper()
	dir := filepath.Join(filepath.Dir(d.Source.Path), "sys/devices/system/cpu")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	inOnePiece(t, filepath.Join(dir, "online"), list+"\n")
}

// owner is what the status says of the class a.
func owner(t *testing.T, d *Daemon) api.Class {
	t.Helper()
	for _, c := range d.Status().Classes {
		if c.Name == "a" {
			return c
		}
	}
	t.Fatal("no class a")
	return api.Class{}
}

func TestDedicate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		d, _ := newDaemon(t, ownerConfig, func() (Scheduler, error) { return f, nil })
		online(t, d, "0-3")
		ctx, cancel := context.WithCancel(t.Context())
		done := start(ctx, d)
		synctest.Wait()
		if c := owner(t, d); !reflect.DeepEqual(c.CPUs, []int{3}) || !c.CPUsLent || c.CPUsLentAfterMicros != 2000 || c.CPUsNote != "" {
			t.Errorf("at first: %v, lent %v after %d us, %q", c.CPUs, c.CPUsLent, c.CPUsLentAfterMicros, c.CPUsNote)
		}
		if own := f.last().Classes[1].Own; !reflect.DeepEqual(own.CPUs, []int{3}) || !own.Lend || own.LendAfter != 2*time.Millisecond {
			t.Errorf("the scheduler was told %+v", own)
		}
		online(t, d, "0-2") // CPU 3 goes offline
		time.Sleep(2 * lookEvery)
		synctest.Wait()
		if own := f.last().Classes[1].Own; !reflect.DeepEqual(own.CPUs, []int{2}) {
			t.Errorf("after CPU 3 went: the scheduler was told %+v", own)
		}
		configured := len(f.params)
		time.Sleep(10 * lookEvery)
		if len(f.params) != configured {
			t.Errorf("configured %d times although nothing changed", len(f.params)-configured)
		}
		online(t, d, "0")
		time.Sleep(2 * lookEvery)
		synctest.Wait()
		if c := owner(t, d); len(c.CPUs) != 0 || c.CPUsLent || c.CPUsLentAfterMicros != 0 || c.CPUsNote != "no CPU would be left for all others" {
			t.Errorf("with one CPU: %v, %q", c.CPUs, c.CPUsNote)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestDedicateAgain: a class that was refused CPUs has them soon after the reason has gone.
func TestDedicateAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		d, _ := newDaemon(t, "classes: [{name: a, tier: priority, cpus: {dedicated: 1}}]\n", func() (Scheduler, error) { return f, nil })
		online(t, d, "0-1")
		tasks := filepath.Join(filepath.Dir(d.Source.Path), "proc")
		bind := func(pid, cpu string) {
			t.Helper()
			if err := os.MkdirAll(filepath.Join(tasks, pid, "task", pid), 0o755); err != nil {
				t.Fatal(err)
			}
			inOnePiece(t, filepath.Join(tasks, pid, "task", pid, "status"), "Name:\tother\nVmSize:\t1 kB\nCpus_allowed_list:\t"+cpu+"\n")
		}
		bind("7", "0")
		bind("8", "1")
		ctx, cancel := context.WithCancel(t.Context())
		done := start(ctx, d)
		synctest.Wait()
		if c := owner(t, d); len(c.CPUs) != 0 || !strings.Contains(c.CPUsNote, "may run on CPUs 1 only") {
			t.Errorf("beside tasks that are bound: %v, %q", c.CPUs, c.CPUsNote)
		}
		if err := os.RemoveAll(filepath.Join(tasks, "8")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(retryEvery + 2*lookEvery)
		synctest.Wait()
		if c := owner(t, d); !reflect.DeepEqual(c.CPUs, []int{1}) || c.CPUsNote != "" {
			t.Errorf("after one had ended: %v, %q", c.CPUs, c.CPUsNote)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestDedicateAfterReload(t *testing.T) {
	d, f := attached(t, ownerConfig)
	online(t, d, "0-3")
	for _, step := range []struct {
		config string
		cpus   []int
	}{
		{ownerConfig, []int{3}},
		{"classes: [{name: a, tier: priority, cpus: {dedicated: \"1-2\"}}]\n", []int{1, 2}},
		{"classes: [{name: a, tier: priority}]\n", nil},
	} {
		rewrite(t, d, step.config)
		if _, err := d.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		if own := f.last().Classes[1].Own; !reflect.DeepEqual(own.CPUs, step.cpus) {
			t.Errorf("%s: the scheduler was told %+v, want %v", step.config, own, step.cpus)
		}
	}
}

func TestDedicateRefusedByKernel(t *testing.T) {
	d, f := attached(t, "classes: [{name: a, tier: priority}]\n")
	online(t, d, "0-3")
	s := d.current()
	plan, err := s.plan().next(&config.Config{Slice: config.DefaultSlice, Classes: []config.Class{
		{Name: config.DefaultClass, Tier: config.TierFair, Weight: 100},
		{Name: "a", Tier: config.TierPriority, Weight: 100, CPUs: config.CPUs{Count: 1}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.configure(plan); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.refuse = errors.New("no such function")
	f.mu.Unlock()
	d.chooseCPUs(s)
	if c := owner(t, d); len(c.CPUs) != 0 || c.CPUsNote != "no such function" {
		t.Errorf("%v, %q", c.CPUs, c.CPUsNote)
	}
}
