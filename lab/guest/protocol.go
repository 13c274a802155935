package guest

import (
	"encoding/json"
	"io"
	"math"
	"regexp"
	"sync"
)

// line is one record of the result stream: one JSON object per line.
type line struct {
	Type    string   `json:"type"` // metric, histogram, event, log, error, end
	Name    string   `json:"name,omitempty"`
	Value   *float64 `json:"value,omitempty"`
	Text    string   `json:"text,omitempty"`
	Buckets []Bucket `json:"buckets,omitempty"`
	Exit    *int     `json:"exit,omitempty"`
}

// namePattern is what a metric, histogram or event may be called.
const namePattern = `^[a-z][a-z0-9_]*$`

// Bounds of the stream, held by both ends.
const (
	maxName    = 100     // bytes
	maxLine    = 1 << 20 // bytes
	maxText    = 256 << 10
	maxStream  = 16 << 20 // bytes
	maxNames   = 10000    // metrics, histograms and events each
	maxBuckets = 8192     // of one histogram
)

// writer is the guest's end of the stream.
type writer struct {
	mu     sync.Mutex
	w      io.Writer
	names  *regexp.Regexp
	failed bool // an error line was written
}

func newWriter(w io.Writer) *writer {
	return &writer{w: w, names: regexp.MustCompile(namePattern)}
}

func (w *writer) metric(name string, value float64) {
	if !w.goodName(name) {
		return
	}
	if math.IsNaN(value) || math.IsInf(value, 0) {
		w.fail("metric " + name + ": not a finite number")
		return
	}
	w.put(line{Type: "metric", Name: name, Value: &value})
}

func (w *writer) histogram(name string, buckets []Bucket) {
	if !w.goodName(name) {
		return
	}
	if len(buckets) > maxBuckets {
		w.fail("histogram " + name + ": too many buckets")
		return
	}
	w.put(line{Type: "histogram", Name: name, Buckets: buckets})
}

func (w *writer) event(name, text string) {
	if w.goodName(name) {
		w.put(line{Type: "event", Name: name, Text: clip(text)})
	}
}

// value reports a number about the run itself, as an event.
func (w *writer) value(name string, value float64) {
	w.put(line{Type: "event", Name: name, Value: &value})
}

func (w *writer) log(text string) { w.put(line{Type: "log", Text: clip(text)}) }

// fail writes an error: the host reports the run as failed with these words.
func (w *writer) fail(text string) {
	w.put(line{Type: "error", Text: clip(text)})
	w.mu.Lock()
	w.failed = true
	w.mu.Unlock()
}

func (w *writer) hasFailed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

func (w *writer) end(exit int) { w.put(line{Type: "end", Exit: &exit}) }

func (w *writer) goodName(name string) bool {
	if len(name) > maxName || !w.names.MatchString(name) {
		w.fail("result " + name + ": the name must match " + namePattern)
		return false
	}
	return true
}

func (w *writer) put(l line) {
	b, err := json.Marshal(l)
	if err != nil { // numbers of a histogram that are not finite
		w.fail(l.Type + " " + l.Name + ": " + err.Error())
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.w.Write(append(b, '\n'))
}

// clip keeps the end of a text: that is where a program says why.
func clip(text string) string {
	if len(text) > maxText {
		return text[len(text)-maxText:]
	}
	return text
}
