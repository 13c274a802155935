package guest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Results is what a run sent out of the machine.
type Results struct {
	Metrics    map[string]float64
	Histograms map[string][]Bucket
	Events     []Event
	Log        []string
	Errors     []string // what the guest itself calls a failure
	Exit       int      // 0 when the guest found no failure
}

// Event is something that happened in the guest, or a fact about it: kernel,
// clocksource, attached, virtual_time_s.
type Event struct {
	Name, Text string
	Value      float64
}

// Event returns the last event of that name.
func (r Results) Event(name string) (Event, bool) {
	for i := len(r.Events) - 1; i >= 0; i-- {
		if r.Events[i].Name == name {
			return r.Events[i], true
		}
	}
	return Event{}, false
}

// ErrTruncated says that the stream stopped before its end line.
var ErrTruncated = errors.New("the results are cut off: no end line")

// ReadResults reads a result stream. The guest is not trusted: lines, names,
// numbers and amounts are bounded, and anything else is an error that names
// the line. What was read before the fault is returned with the error.
func ReadResults(stream io.Reader) (Results, error) {
	r := Results{Metrics: map[string]float64{}, Histograms: map[string][]Bucket{}}
	names := regexp.MustCompile(namePattern)
	in := bufio.NewScanner(io.LimitReader(stream, maxStream+1))
	in.Buffer(make([]byte, 0, 64<<10), maxLine)
	total := 0
	for n := 1; in.Scan(); n++ {
		total += len(in.Bytes()) + 1
		if total > maxStream {
			return r, fmt.Errorf("result line %d: more than %d MiB of results", n, maxStream>>20)
		}
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		ended, err := r.take(in.Bytes(), names)
		if err != nil {
			return r, fmt.Errorf("result line %d: %w", n, err)
		}
		if ended {
			if in.Scan() {
				return r, fmt.Errorf("result line %d: there is more after the end line", n+1)
			}
			return r, in.Err()
		}
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		return r, fmt.Errorf("a result line is longer than %d KiB", maxLine>>10)
	}
	if in.Err() != nil {
		return r, in.Err()
	}
	return r, ErrTruncated
}

func (r *Results) take(text []byte, names *regexp.Regexp) (ended bool, err error) {
	l, err := parseLine(text)
	if err != nil {
		return false, err
	}
	named := l.Type == "metric" || l.Type == "histogram" || l.Type == "event"
	if named && (len(l.Name) > maxName || !names.MatchString(l.Name)) {
		return false, fmt.Errorf("name %.40q: must match %s", l.Name, namePattern)
	}
	if len(r.Metrics)+len(r.Histograms)+len(r.Events)+len(r.Log)+len(r.Errors) >= maxNames {
		return false, fmt.Errorf("more than %d results", maxNames)
	}
	switch l.Type {
	case "metric":
		return false, r.takeMetric(l)
	case "histogram":
		return false, r.takeHistogram(l)
	case "event":
		e := Event{Name: l.Name, Text: l.Text}
		if l.Value != nil {
			e.Value = *l.Value
		}
		r.Events = append(r.Events, e)
	case "log":
		r.Log = append(r.Log, l.Text)
	case "error":
		r.Errors = append(r.Errors, l.Text)
	case "end":
		if l.Exit == nil || *l.Exit < 0 || *l.Exit > 255 {
			return false, errors.New("end: exit must be 0..255")
		}
		r.Exit = *l.Exit
		return true, nil
	default:
		return false, fmt.Errorf("unknown type %.40q", l.Type)
	}
	return false, nil
}

func parseLine(text []byte) (line, error) {
	var l line
	if !utf8.Valid(text) {
		return l, errors.New("not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return l, fmt.Errorf("%.60q: %w", text, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return l, fmt.Errorf("%.60q: more than one object", text)
	}
	if len(l.Text) > maxText {
		return l, fmt.Errorf("text longer than %d KiB", maxText>>10)
	}
	// The words go to terminals: no control sequences.
	l.Text = printable(l.Text)
	return l, nil
}

func (r *Results) takeMetric(l line) error {
	if l.Value == nil {
		return fmt.Errorf("metric %q: no value", l.Name)
	}
	if _, twice := r.Metrics[l.Name]; twice {
		return fmt.Errorf("metric %q: reported twice", l.Name)
	}
	r.Metrics[l.Name] = *l.Value // finite: JSON has no other numbers
	return nil
}

func (r *Results) takeHistogram(l line) error {
	if len(l.Buckets) > maxBuckets {
		return fmt.Errorf("histogram %q: more than %d buckets", l.Name, maxBuckets)
	}
	if _, twice := r.Histograms[l.Name]; twice {
		return fmt.Errorf("histogram %q: reported twice", l.Name)
	}
	edge := math.Inf(-1)
	for i, b := range l.Buckets {
		if b.Count < 0 || b.High < b.Low || b.Low < edge {
			return fmt.Errorf("histogram %q: bucket %d is out of order or negative", l.Name, i)
		}
		edge = b.High
	}
	r.Histograms[l.Name] = l.Buckets
	return nil
}

// printable replaces what could steer a terminal, newlines and tabs excepted.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' || (c >= ' ' && c != 0x7f && !(c >= 0x80 && c < 0xa0)) {
			return c
		}
		return '?'
	}, text)
}
