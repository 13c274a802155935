package daemon

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"strings"
	"time"

	"rota/internal/api"
	"rota/internal/sched"
)

// gcPercent trades time that the daemon hardly uses for memory.
const gcPercent = 50

// Run keeps the scheduler attached until ctx ends (nil) or until it is given
// up (an error): when it can't be loaded at first, or fails too often. When
// Run returns, the kernel's own scheduler has every task.
func (d *Daemon) Run(ctx context.Context) error {
	stop := d.heartbeat()
	defer stop()
	var tries tries
	for {
		exit, err := d.attached(ctx)
		if ctx.Err() != nil {
			d.setState(api.Stopping, "asked to stop")
			if errors.Is(err, ctx.Err()) {
				err = nil // asked while it was loading
			}
			return err
		}
		if err != nil && tries.none() {
			d.setState(api.Stopping, err.Error())
			return err
		}
		reason := words(exit, err)
		d.remember(reason, exit)
		if exit.Asked {
			d.Log.Info("scheduler: ended from outside: not loading it again", "reason", reason)
			d.setState(api.Stopping, reason)
			return nil
		}
		wait, ok := tries.next(time.Now(), exit.Restart)
		if !ok {
			err := fmt.Errorf("scheduler: ended %d times within %v, last: %s: the kernel's own scheduler has every task; look at the log above, then start rota again", maxTries, window, reason)
			d.setState(api.Stopping, err.Error())
			return err
		}
		if !d.wait(ctx, wait, reason) {
			return nil
		}
	}
}

// wait says that the scheduler is gone and waits for the next try. It returns
// false when ctx ended.
func (d *Daemon) wait(ctx context.Context, wait time.Duration, reason string) bool {
	d.Log.Warn("scheduler: ended: the kernel's own scheduler has every task until the next try", "reason", reason, "next", wait)
	d.setState(api.Waiting, fmt.Sprintf("%s; next try in %v", reason, wait))
	select {
	case <-ctx.Done():
		d.setState(api.Stopping, "asked to stop")
		return false
	case <-time.After(wait):
	}
	d.mu.Lock()
	d.restarts++
	d.mu.Unlock()
	d.setState(api.Starting, "loading again after: "+reason)
	return true
}

// attached loads the scheduler and stays until it ends or ctx does. The error
// is that of loading or of detaching.
func (d *Daemon) attached(ctx context.Context) (sched.ExitInfo, error) {
	begin := time.Now()
	s, err := d.attach(ctx)
	if err != nil {
		return sched.ExitInfo{}, err
	}
	took := time.Since(begin)
	working, stop := context.WithCancel(ctx)
	done := s.work(working)
	tasks := s.tasks.scan(working)
	followed := d.followCPUs(working, s)
	watched := s.functions.follow(working, s.plan)
	counted := d.followCounters(working, s)
	paced := d.followSpeeds(working, s)
	// Loading read the kernel's types: memory that is never needed again. The
	// limit was for that; a large configuration may need more for a moment,
	// and would spend its time collecting garbage.
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(math.MaxInt64)
	debug.FreeOSMemory()
	plan := s.plan()
	d.Log.Info("scheduler: attached", "classes", len(plan.config.Classes), "rules", len(plan.config.Rules), "tasks", tasks, "took", took.Round(time.Millisecond))
	d.setState(api.Running, "")
	d.Notify("READY=1")
	if d.ProvokeError {
		go d.provoke(working, s)
	}
	var exit sched.ExitInfo
	select {
	case <-ctx.Done():
		d.Notify("STOPPING=1")
	case exit = <-s.scheduler.Exit():
	}
	stop()
	<-followed
	<-watched
	s.functions.use(nil)
	<-paced
	<-counted
	s.stopCounting()
	<-done // nothing may reach the scheduler while it is closed
	return exit, d.detach(s)
}

// attach loads the scheduler with the configuration in force.
func (d *Daemon) attach(ctx context.Context) (*session, error) {
	d.change.Lock()
	defer d.change.Unlock()
	plan, err := newPlan(d.force.config)
	if err != nil {
		return nil, err
	}
	scheduler, err := d.Load(ctx, plan.params(), d.Log)
	if err != nil {
		return nil, err
	}
	s := d.newSession(scheduler, plan)
	d.mu.Lock()
	d.session = s
	d.mu.Unlock()
	return s, nil
}

// detach gives every task back to the kernel's own scheduler.
func (d *Daemon) detach(s *session) error {
	d.change.Lock()
	defer d.change.Unlock()
	d.mu.Lock()
	d.session = nil
	d.mu.Unlock()
	if err := s.close(); err != nil {
		return fmt.Errorf("scheduler: detach: %w", err)
	}
	return nil
}

// remember logs why the scheduler ended and keeps it for `rota status`.
func (d *Daemon) remember(reason string, exit sched.ExitInfo) {
	d.mu.Lock()
	d.lastExit = &api.Exit{Time: time.Now(), Reason: exit.Reason, Message: exit.Msg}
	if exit.Reason == "" {
		d.lastExit.Reason = reason
	}
	d.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(exit.Dump), "\n")
	const most = 400
	if exit.Dump == "" || len(lines) > most {
		lines = lines[:min(len(lines), most)]
	}
	for _, line := range lines {
		if line != "" {
			d.Log.Info("dump: " + line)
		}
	}
}

// words says why the scheduler ended.
func words(exit sched.ExitInfo, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case exit.Reason == "" && exit.Msg == "":
		return fmt.Sprintf("exit kind %d, code %d, without a reason", exit.Kind, exit.Code)
	case exit.Msg == "":
		return exit.Reason
	}
	return fmt.Sprintf("%s (%s)", exit.Reason, exit.Msg)
}

// heartbeat tells systemd that we live, at half the time that it waits.
func (d *Daemon) heartbeat() (stop func()) {
	if d.Watchdog <= 0 {
		return func() {}
	}
	ticker := time.NewTicker(d.Watchdog / 2)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				// Whoever hangs with a lock held, and a kernel that does
				// not answer, stop the beat.
				if s := d.current(); s != nil {
					_, _, _ = s.counters()
				}
				d.Notify("WATCHDOG=1")
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
	}
}

// provoke makes the scheduler fail, once, a second after it was attached.
func (d *Daemon) provoke(ctx context.Context, s *session) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(time.Second):
	}
	d.mu.Lock()
	first := d.restarts == 0
	d.mu.Unlock()
	if !first {
		return
	}
	d.Log.Warn("scheduler: provoking an error, as asked by --debug-fault")
	if err := s.provoke(); err != nil {
		d.Log.Error("scheduler: provoke an error", "error", err)
	}
}

// oneLine makes a text fit the line of a protocol.
func oneLine(s string) string {
	return strings.NewReplacer("\n", "; ", "\r", " ").Replace(s)
}
