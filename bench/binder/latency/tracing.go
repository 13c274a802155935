package latency

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// ErrMissed: a deadline was missed and the kernel's tracing was stopped.
var ErrMissed = errors.New("deadline triggered: halt & stop trace")

// ErrNotTracing: there is no trace to stop.
var ErrNotTracing = errors.New("trace is not running")

// tracingDirs are where the kernel's tracing may be mounted.
var tracingDirs = [...]string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}

// maxTrace bounds the copy of a trace.
const maxTrace = 1 << 30

// TracingDir is where the kernel's tracing is here.
func TracingDir() (string, error) {
	for _, dir := range tracingDirs {
		if _, err := os.Stat(filepath.Join(dir, "tracing_on")); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("tracing: not at %s; mount it with: mount -t tracefs tracefs %s", strings.Join(tracingDirs[:], " nor "), tracingDirs[0])
}

// tracingIsOn is nil when somebody traces.
func tracingIsOn() error {
	dir, err := TracingDir()
	if err != nil {
		return err
	}
	on, err := os.ReadFile(filepath.Join(dir, "tracing_on"))
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(on)) != "1" {
		return fmt.Errorf("%w: %s/tracing_on is not 1; choose events below %s/events and write 1 to it", ErrNotTracing, dir, dir)
	}
	return nil
}

// tracing marks calls in the kernel's trace and stops it; a nil one does nothing.
type tracing struct{ on, marker *os.File }

func openTracing() (*tracing, error) {
	dir, err := TracingDir()
	if err != nil {
		return nil, err
	}
	on, err := os.OpenFile(filepath.Join(dir, "tracing_on"), os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	marker, err := os.OpenFile(filepath.Join(dir, "trace_marker"), os.O_WRONLY, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("tracing: %w", err), on.Close())
	}
	return &tracing{on, marker}, nil
}

// begin and end enclose a call, in the words that Perfetto draws as a slice. A
// mark that cannot be made is missing in the picture, no more.
func (t *tracing) begin(who string) {
	if t != nil {
		t.marker.WriteString(mark(who))
	}
}

func (t *tracing) end() {
	if t != nil {
		fmt.Fprintf(t.marker, "E|%d", os.Getpid())
	}
}

func (t *tracing) stop() { t.on.WriteString("0\n") }

// KeepTrace copies the kernel's trace into a file, which Perfetto opens as it is.
func KeepTrace(path string) (err error) {
	dir, err := TracingDir()
	if err != nil {
		return err
	}
	from, err := os.Open(filepath.Join(dir, "trace"))
	if err != nil {
		return fmt.Errorf("keep the trace: %w", err)
	}
	defer from.Close()
	to, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("keep the trace: %w", err)
	}
	_, err = io.Copy(to, io.LimitReader(from, maxTrace))
	return errors.Join(err, to.Close())
}
