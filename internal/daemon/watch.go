package daemon

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a change may take: editors write in several steps.
const settle = 200 * time.Millisecond

// Watch reloads when the configuration file has changed, until ctx ends. It
// watches the folder, because editors and package managers put a new file in
// the place of the old one. Without a folder there is nothing to watch.
func (d *Daemon) Watch(ctx context.Context) {
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		defer watcher.Close()
		err = watcher.Add(filepath.Dir(d.Source.Path))
	}
	if err != nil {
		level := slog.LevelWarn
		if d.Source.Optional {
			level = slog.LevelDebug // most machines without a file have no folder either
		}
		d.Log.Log(ctx, level, "configuration: not watched, use: rota reload", "file", d.Source.Path, "error", err)
		return
	}
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-watcher.Errors:
			d.Log.Warn("configuration: watch", "file", d.Source.Path, "error", err)
		case <-watcher.Events:
			// Any event of the folder may be one of ours: a link's target
			// can be exchanged under another name. The timer is not set
			// anew, so a busy folder can't put it off.
			if settled == nil {
				settled = time.After(settle)
			}
		case <-settled:
			settled = nil
			d.changed(ctx)
		}
	}
}

// changed reloads when the file is not the one that was read last. A file
// that is gone changes nothing until it is back.
func (d *Daemon) changed(ctx context.Context) {
	d.change.Lock()
	defer d.change.Unlock()
	switch now := d.Source.stamp(); now {
	case d.seen:
	case stamp{}:
		d.seen = now
		d.Log.Warn("configuration: file is gone, its content stays in force", "file", d.Source.Path)
	default:
		// The refusal is logged where it happens.
		_, _ = d.reload(ctx)
	}
}
