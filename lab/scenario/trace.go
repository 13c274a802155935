package scenario

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const (
	tracingDir = "/sys/kernel/tracing"
	// traceKB is the room for events of each CPU.
	traceKB = "8192"
)

// trace is the kernel's own record of what its scheduler does: events that a
// filter lets through stay in the kernel until nobody measures any more.
type trace struct{ events []string }

// startTrace records events of the scheduler; each has its filter.
func startTrace(filters map[string]string) (*trace, error) {
	t := &trace{}
	for file, text := range map[string]string{"buffer_size_kb": traceKB, "trace_clock": "mono"} {
		if err := writeTrace(file, text); err != nil {
			return nil, err
		}
	}
	for event, filter := range filters {
		dir := filepath.Join("events/sched", event)
		err := writeTrace(filepath.Join(dir, "filter"), filter)
		if err == nil {
			err = writeTrace(filepath.Join(dir, "enable"), "1")
		}
		if err != nil {
			t.close()
			return nil, err
		}
		t.events = append(t.events, dir)
	}
	return t, writeTrace("tracing_on", "1")
}

// stop ends the record and opens what was written.
func (t *trace) stop() (io.ReadCloser, error) {
	if err := writeTrace("tracing_on", "0"); err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(tracingDir, "trace"))
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	return f, nil
}

// close ends the events; what they wrote stays.
func (t *trace) close() {
	for _, dir := range t.events {
		writeTrace(filepath.Join(dir, "enable"), "0")
		writeTrace(filepath.Join(dir, "filter"), "0")
	}
	t.events = nil
}

func writeTrace(file, text string) error {
	if err := os.WriteFile(filepath.Join(tracingDir, file), []byte(text), 0o644); err != nil {
		return fmt.Errorf("trace: set %s to %q: %w", file, text, err)
	}
	return nil
}
