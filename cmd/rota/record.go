package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

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

// load loads the scheduler; the file is there from the start, so that a wrong
// path is known before the work is done.
func (r recorder) load(ctx context.Context, p sched.Params, log *slog.Logger) (daemon.Scheduler, error) {
	if r.path == "" {
		s, err := sched.Load(ctx, p, log)
		if err != nil {
			return nil, err // not a nil *Scheduler in a Scheduler
		}
		return s, nil
	}
	file, err := os.OpenFile(r.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	p.Record = r.events
	s, err := sched.Load(ctx, p, log)
	if err != nil {
		file.Close()
		return nil, err
	}
	return recording{s, file}, nil
}

// recording is a scheduler whose record is written when it is closed.
type recording struct {
	*sched.Scheduler
	file *os.File
}

// Close writes the record and detaches, whatever becomes of the record.
func (r recording) Close() error {
	err := r.WriteRecord(r.file)
	return errors.Join(err, r.file.Close(), r.Scheduler.Close())
}
