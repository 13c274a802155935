package main

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

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
	*renameio.PendingFile
	path string
}

func newDraft(path string) (*draft, error) {
	if !replaceable(path) {
		return nil, fmt.Errorf("record %s: not a regular file: name a new file", path)
	}
	file, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)))
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return &draft{file, path}, nil
}

// replaceable tells whether a record may take a name: not that of a pipe, a device, or one of
// the system's links to these. Another link is replaced: who may make links beside a record
// does not choose where root writes.
func replaceable(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return true // there is nothing, or to make the file will say why not
	}
	return info.Mode().IsRegular() || info.Mode().Type() == fs.ModeSymlink && filepath.Dir(path) != "/dev"
}

// keep gives the file its name.
func (d *draft) keep() error { return d.CloseAtomicallyReplace() }

// drop removes what was not kept; a nil draft is none.
func (d *draft) drop() {
	if d != nil {
		d.Cleanup()
	}
}
