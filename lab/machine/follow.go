package machine

import (
	"io"
	"os"
	"time"
)

// followInterval is how often a console is looked at; nothing in the guest
// depends on it.
const followInterval = 100 * time.Millisecond

// follow copies what is appended to the file at path to w until stop is
// called, which copies the rest.
func follow(path string, w io.Writer) (stop func()) {
	if w == nil {
		return func() {}
	}
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		var f *os.File
		for last := false; ; {
			if f == nil {
				f, _ = os.Open(path)
			}
			if f != nil {
				io.Copy(w, f)
			}
			if last {
				break
			}
			select {
			case <-end:
				last = true
			case <-time.After(followInterval):
			}
		}
		if f != nil {
			f.Close()
		}
	}()
	return func() { close(end); <-done }
}
