package sched

import (
	"context"
	"errors"
	"log/slog"
)

// Check looks at the running kernel and at our privileges and reports
// whether Load would work, without loading anything.
func Check() []Finding { return nil }

// Scheduler is a loaded and attached scheduler.
type Scheduler struct{}

var errStub = errors.New("scheduler: not built yet")

// Load loads the scheduler with p and attaches it. When it returns, every
// task of SCHED_OTHER, BATCH and IDLE runs under rota.
func Load(ctx context.Context, p Params, log *slog.Logger) (*Scheduler, error) { return nil, errStub }

// Configure changes the knobs of the running scheduler without detaching it.
// Tasks keep their class index: callers must reclassify when indexes change
// their meaning.
func (s *Scheduler) Configure(p Params) error { return errStub }

// SetClass puts a live task into the class with this index.
// It returns an error that wraps fs.ErrNotExist when the task is gone.
func (s *Scheduler) SetClass(t TaskID, class int) error { return errStub }

// Events delivers what happens to tasks; closed by Close.
func (s *Scheduler) Events() <-chan Event { return nil }

// Exit delivers one value when the kernel has ended the scheduler.
func (s *Scheduler) Exit() <-chan ExitInfo { return nil }

// Stats reads the counters.
func (s *Scheduler) Stats() (Stats, error) { return Stats{}, errStub }

// Close detaches the scheduler: the kernel's own scheduler has every task
// when it returns.
func (s *Scheduler) Close() error { return nil }
