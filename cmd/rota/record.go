package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"rota/internal/daemon"
	"rota/internal/sched"
)

// recorder loads schedulers that write down what they decide.
type recorder struct {
	path   string // "": none
	events int    // for each CPU
}

// check says what is wrong with what was asked for.
func (r recorder) check() error {
	if r.events < sched.MinRecord || r.events > sched.MaxRecord {
		return fmt.Errorf("rota run: --record-events %d: must be %d..%d", r.events, sched.MinRecord, sched.MaxRecord)
	}
	return nil
}

// load loads the scheduler. The record's file is begun first, so that a wrong
// path is known before the work is done.
func (r recorder) load(ctx context.Context, p sched.Params, log *slog.Logger) (daemon.Scheduler, error) {
	var draft *draft
	if r.path != "" {
		var err error
		if draft, err = newDraft(r.path); err != nil {
			return nil, err
		}
		p.Record = r.events
	}
	s, err := sched.Load(ctx, p, log)
	if err != nil {
		draft.drop()
		return nil, err // not a nil *Scheduler in a Scheduler
	}
	if draft == nil {
		return s, nil
	}
	return &recording{s, draft, log}, nil
}

// recording is a scheduler whose record is written when it has ended.
type recording struct {
	*sched.Scheduler
	draft *draft
	log   *slog.Logger
}

// Close detaches and writes the record. What becomes of the record is in the
// log: it is no reason for the daemon to end.
func (r *recording) Close() error {
	r.Detach()
	err := r.WriteRecord(r.draft)
	if err == nil {
		err = r.draft.keep()
	}
	if err != nil {
		r.log.Error("record: not kept", "file", r.draft.path, "error", err)
	} else {
		r.log.Info("record: written", "file", r.draft.path)
	}
	r.draft.drop()
	return r.Scheduler.Close()
}

// draft is a file that takes its name, from whatever had it, when it is whole.
// It is new and root's alone, wherever it lies.
type draft struct {
	*os.File
	path string
	kept bool
}

func newDraft(path string) (*draft, error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return &draft{File: file, path: path}, nil
}

// keep gives the file its name.
func (d *draft) keep() error {
	err := errors.Join(d.Close(), os.Rename(d.Name(), d.path))
	d.kept = err == nil
	return err
}

// drop removes what was not kept; a nil draft is none.
func (d *draft) drop() {
	if d != nil && !d.kept {
		d.Close()
		os.Remove(d.Name())
	}
}
