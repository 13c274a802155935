package daemon

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"rota/internal/class"
	"rota/internal/config"
)

// Source is where the configuration comes from.
type Source struct {
	Path string
	// Optional is that built-in defaults take the place of a missing file.
	Optional bool
}

// read returns the configuration and the file that it came from, empty for
// the defaults.
func (s Source) read() (*config.Config, string, error) {
	c, err := config.Read(s.Path, class.Check)
	if s.Optional && errors.Is(err, fs.ErrNotExist) {
		return config.Default(), "", nil
	}
	return c, s.Path, err
}

// stamp tells versions of a file apart.
type stamp struct {
	inode   uint64
	size    int64
	changed time.Time
}

// stamp is zero when there is no file.
func (s Source) stamp() stamp {
	info, err := os.Stat(s.Path)
	if err != nil {
		return stamp{}
	}
	st := stamp{size: info.Size(), changed: info.ModTime()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		st.inode = sys.Ino
	}
	return st
}
