package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"rota/internal/api"
	"rota/internal/sched"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"rota": main, "fake-daemon": fakeDaemon})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script"})
}

// fakeDaemon answers on the socket of its first argument until it is killed.
func fakeDaemon() {
	l, err := api.Listen(os.Args[1])
	if err == nil {
		err = api.Serve(context.Background(), l, canned{}, slog.New(slog.DiscardHandler))
	}
	os.Exit(report(err))
}

type canned struct{}

func (canned) Status() api.Status {
	s := api.Status{
		Version: "1.0", PID: 42, State: api.Running, Kernel: "6.18.15", KernelState: "enabled",
		UptimeSeconds: 90, AttachedSeconds: 61.25, Restarts: 1,
		LastExit: &api.Exit{Time: time.Unix(0, 0).UTC(), Reason: "runnable task stall", Message: "hog\x1b[7]"},
		Config: api.Config{
			Path: "/etc/rota/rota.yaml", Loaded: time.Unix(0, 0).UTC(), Rules: 2,
			Refused: []api.Fault{{File: "/etc/rota/rota.yaml", Line: 3, Fault: "bad", Fix: "mend it"}},
		},
		Classes: []api.Class{
			{Name: "default", Tier: "fair", Weight: 100, SliceMicros: 2800, Tasks: 120, RuntimeMicros: 75, ProgressMicros: 30, WaitHistogram: []uint64{0, 0, 90, 0, 10}, WaitMaxMicros: 12},
			{Name: "network", Tier: "priority", Weight: 100, SliceMicros: 1000, CapPercent: 92.5, Tasks: 3, RuntimeMicros: 25, ProgressMicros: 20, MemoryBoundPercent: 60, WaitMaxMicros: 1500,
				CPUs: []int{0, 1}, CPUsLent: true, CPUsNote: "CPUs 9 are offline\x1b"},
		},
		CPUs:         []api.CPU{{CPU: 0, Priority: 5, Fair: 7, Owner: "network", BoundMicros: 1500, StrayMicros: 20}},
		Frequency:    api.Frequency{Mode: "on"},
		Functions:    []api.Function{{Name: "gtp:gtp_dev_xmit", Tasks: 3}, {Name: "nft_x", Note: "is unknown\x1b"}},
		KernelEvents: map[string]int64{"SCX_EV_DISPATCH_KEEP_LAST": 9},
		Boosts:       api.Boosts{Futex: 3, Wakeups: 2, Binder: 4, Chained: 1, Fetched: 2, Ended: 5, RuntimeMicros: 1200},
		Answers:      api.Answers{Asked: 12, Known: 3400},
	}
	api.Derive(s.Classes)
	return s
}

func (canned) Explain(_ context.Context, pid int) (api.Explanation, error) {
	if pid != 7 {
		return api.Explanation{}, &api.Error{Code: 404, Fault: "task 8: no such task", Fix: "look for it"}
	}
	link := api.Link{TID: 7, Name: "ser\x1bver", Reason: "binder", Gives: true, AgeMicros: 1500}
	return api.Explanation{PID: 7, Threads: []api.Thread{
		{TID: 7, Name: "ser\x1bver", Class: "default", Tier: "fair", Level: "network", State: "waits for a CPU", CPU: 3, Weight: 1024,
			SliceMicros: 1000, LagMicros: -1500, ReadyMicros: 20, Boosted: true, BoostedMicros: 300, Calls: api.Calls{Given: 200, Boosted: 199},
			Givers: []api.Giver{{TID: 5, Name: "app", Class: "network", Chain: []api.Link{{TID: 6, Name: "worker", Reason: "futex", AgeMicros: 2000}, link}}}},
		{TID: 8, Name: "b", Class: "network", Rule: "/etc/rota/rota.yaml:9", Tier: "priority", Level: "network", State: "sleeps", Spent: true,
			WaitsFor: []api.Link{link}},
	}}, nil
}

func (canned) Reload(context.Context) (api.Reload, error) {
	return api.Reload{}, &api.Error{
		Code: 422, Fault: "configuration /etc/rota/rota.yaml is refused", Fix: "the old configuration stays in force",
		Faults: []api.Fault{{File: "/etc/rota/rota.yaml", Line: 3, Fault: "bad", Fix: "mend it"}},
	}
}

func TestLagWords(t *testing.T) {
	for us, want := range map[int64]string{40: "40us: it is owed ", -1500: "-1.50ms: it had "} {
		if got := lagWords(us); !strings.HasPrefix(got, want) {
			t.Errorf("%d us: %q", us, got)
		}
	}
}

// Every command explains itself, with an example.
func TestHelp(t *testing.T) {
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		if c.Short == "" || c.Example == "" {
			t.Errorf("%s: no short help or no example", c.CommandPath())
		}
		if c.RunE == nil {
			t.Errorf("%s: does nothing", c.CommandPath())
		}
		if c.InheritedFlags().Lookup("json") == nil && c.PersistentFlags().Lookup("json") == nil {
			t.Errorf("%s: no --json", c.CommandPath())
		}
		for _, child := range c.Commands() {
			visit(child)
		}
	}
	visit(newCommand())
}

func TestVerdict(t *testing.T) {
	fine := sched.Finding{Name: "kernel", OK: true}
	note := sched.Finding{Name: "isolation"}
	rights := sched.Finding{Name: "privileges", Fatal: true}
	unfit := sched.Finding{Name: "BTF", Fatal: true, Unfit: true}
	for _, tt := range []struct {
		name string
		list []sched.Finding
		code int
	}{
		{"nothing", nil, 0},
		{"notes only", []sched.Finding{fine, note}, 0},
		{"no rights", []sched.Finding{fine, rights}, exitFailed},
		{"unfit first", []sched.Finding{unfit, rights}, exitUnfit},
		{"unfit last", []sched.Finding{rights, unfit}, exitUnfit},
	} {
		code := 0
		var exit *exitError
		if errors.As(verdict(tt.list), &exit) {
			code = exit.code
		}
		if code != tt.code || (refusal(tt.list) == nil) != (tt.code == 0) {
			t.Errorf("%s: code %d, want %d", tt.name, code, tt.code)
		}
	}
}

func TestMicros(t *testing.T) {
	for us, want := range map[float64]string{0: "0us", 999: "999us", 2800: "2.80ms", 1.5e6: "1.50s"} {
		if got := micros(us); got != want {
			t.Errorf("%v: %s, want %s", us, got, want)
		}
	}
}
