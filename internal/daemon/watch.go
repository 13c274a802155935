package daemon

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settle is how long a change may take: editors write in several steps.
	settle = 200 * time.Millisecond
	// lookAgain is how often we look unasked.
	lookAgain = 3 * time.Second
)

// Watch reloads when the configuration file has changed, until ctx ends. It
// watches the folder, because editors and package managers put a new file in
// the place of the old one, and looks now and then in any case: the folder may
// come later or be another one, and a link may lead elsewhere.
func (d *Daemon) Watch(ctx context.Context) {
	looks := time.NewTicker(lookAgain)
	defer looks.Stop()
	events, watch := d.watchFolder(ctx)
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-looks.C:
			watch()
		case <-events:
		case <-settled:
			settled = nil
			d.changed(ctx)
			continue
		}
		// Any event of the folder may be one of ours: a link's target
		// can be exchanged under another name. The timer is not set
		// anew, so a busy folder can't put it off.
		if settled == nil {
			settled = time.After(settle)
		}
	}
}

// watchFolder says when something happens in the folder of the file, until ctx ends; watch
// watches it again where it was away. Where the kernel has no watch left nothing ever happens.
func (d *Daemon) watchFolder(ctx context.Context) (events <-chan fsnotify.Event, watch func()) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		d.Log.Warn("configuration: looked at every 3 s only", "file", d.Source.Path, "error", err)
		return nil, func() {}
	}
	context.AfterFunc(ctx, func() { _ = watcher.Close() })
	watch = func() {
		if len(watcher.WatchList()) == 0 {
			_ = watcher.Add(filepath.Dir(d.Source.Path))
		}
	}
	watch()
	go func() {
		for err := range watcher.Errors {
			d.Log.Warn("configuration: watch", "file", d.Source.Path, "error", err)
		}
	}()
	return watcher.Events, watch
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
