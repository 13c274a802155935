package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"rota/internal/api"
	"rota/internal/config"
)

// Reload reads the configuration again and puts it in force, for running
// tasks too, without detaching the scheduler. A refusal is an *api.Error and
// leaves everything as it was.
func (d *Daemon) Reload(ctx context.Context) (api.Reload, error) {
	d.change.Lock()
	defer d.change.Unlock()
	if err := ctx.Err(); err != nil {
		return api.Reload{}, err // others came first, and who asked has gone
	}
	return d.reload(ctx)
}

// reload is Reload with change held.
func (d *Daemon) reload(ctx context.Context) (api.Reload, error) {
	d.Notify(fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", monotonic().Microseconds()))
	defer d.Notify("READY=1")
	d.seen = d.Source.stamp()
	c, path, err := d.Source.read()
	if err == nil {
		err = d.lost(d.seen)
	}
	if err != nil {
		return api.Reload{}, d.refuse(err)
	}
	tasks := 0
	if s := d.current(); s != nil {
		if tasks, err = d.apply(ctx, s, c); err != nil {
			return api.Reload{}, d.refuse(err)
		}
	}
	d.mu.Lock()
	d.force, d.refused = force{c, path, time.Now()}, nil
	d.mu.Unlock()
	debug.FreeOSMemory()
	d.Log.Info("configuration: in force", "file", path, "classes", len(c.Classes), "rules", len(c.Rules), "tasks", tasks)
	return api.Reload{Config: d.configStatus(), Tasks: tasks, Classes: len(c.Classes)}, nil
}

// lost refuses the defaults in place of a file that was in force and is gone, or was cut off by
// who failed to write it. before is how the file was before it was read.
func (d *Daemon) lost(before stamp) error {
	d.mu.Lock()
	path := d.force.path
	d.mu.Unlock()
	now := d.Source.stamp()
	fault := config.Fault{File: d.Source.Path, Fix: "put it back; for the defaults write {} into it"}
	switch {
	case path == "":
		return nil
	case now == stamp{}:
		fault.Fault = "is gone"
	case now.size == 0 || before.size == 0:
		fault.Fault = "is empty"
	default:
		return nil
	}
	return &config.Faults{List: []config.Fault{fault}}
}

// apply brings c to the kernel and to every task, and returns how many.
func (d *Daemon) apply(ctx context.Context, s *session, c *config.Config) (int, error) {
	next, err := s.plan().next(c)
	if err != nil {
		return 0, err
	}
	if err := s.configure(next); err != nil {
		return 0, fmt.Errorf("configure the scheduler: %w: the old configuration stays in force", err)
	}
	// From here on the new configuration is in force, whatever the client does.
	tasks := s.tasks.rescan(context.WithoutCancel(ctx))
	if pruned := next.prune(); pruned != next {
		if err := s.configure(pruned); err != nil {
			// The removed classes stay, empty: nothing is in them.
			d.Log.Warn("configuration: removed classes stay until the next reload", "error", err)
		}
	}
	d.dedicate(s)
	return tasks, nil
}

// refuse keeps why a configuration is not in force and gives it the form of
// the socket.
func (d *Daemon) refuse(err error) error {
	answer := &api.Error{Code: http.StatusUnprocessableEntity, Fault: err.Error(), Fix: "the old configuration stays in force"}
	list := []api.Fault{{File: d.Source.Path, Fault: err.Error(), Fix: "see the log"}}
	var faults *config.Faults
	if errors.As(err, &faults) {
		list = nil
		for _, f := range faults.List {
			list = append(list, api.Fault(f))
		}
		answer.Fault = fmt.Sprintf("configuration %s is refused", d.Source.Path)
		answer.Faults, answer.More = list, faults.More
	}
	d.mu.Lock()
	d.refused = list
	d.mu.Unlock()
	for _, f := range list {
		d.Log.Error("configuration: refused, the old one stays in force: " + f.String())
	}
	return answer
}

// monotonic is the time since boot without suspend, as systemd counts it.
func monotonic() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
