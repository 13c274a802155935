package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"unicode/utf8"
)

// Bounds of a results file. They are far above what the lab writes and keep a
// hostile file from taking the reader's memory.
const (
	maxFile      = 64 << 20 // bytes
	MaxRuns      = 10000
	maxNames     = 10000 // metrics, histograms and events of one run, each
	maxName      = 100   // bytes
	maxBuckets   = 100000
	MaxRowName   = 200 // bytes
	maxCPUs      = 8192
	metricFormat = `^[a-z][a-z0-9_]*$`
)

// Write writes results as one JSON object, indented, with sorted keys: the same
// results give the same bytes. It refuses what Read would refuse.
func Write(w io.Writer, r Results) error {
	fillEmpty(&r)
	if err := check(r); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// Read reads what Write wrote. It refuses unknown fields, text after the object,
// invalid UTF-8, names and numbers out of bounds, and files over 64 MB.
func Read(r io.Reader) (Results, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return Results{}, fmt.Errorf("read results: %w", err)
	}
	results, err := parse(data)
	if err != nil {
		return Results{}, fmt.Errorf("read results: %w", err)
	}
	return results, nil
}

func parse(data []byte) (Results, error) {
	if len(data) > maxFile {
		return Results{}, fmt.Errorf("file is larger than %d MB: not a results file of the lab", maxFile>>20)
	}
	if !utf8.Valid(data) {
		return Results{}, errors.New("file is not valid UTF-8: not a results file of the lab")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var r Results
	if err := d.Decode(&r); err != nil {
		return Results{}, fmt.Errorf("%w; write the file with: rota-lab run --json FILE", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Results{}, errors.New("text after the results: the file must hold one JSON object")
	}
	fillEmpty(&r)
	return r, check(r)
}

// fillEmpty makes absent lists and maps empty ones, so that the JSON says [] and {}.
func fillEmpty(r *Results) {
	runs := make([]Run, len(r.Runs))
	for i, run := range r.Runs {
		if run.Metrics == nil {
			run.Metrics = map[string]float64{}
		}
		if run.Histograms == nil {
			run.Histograms = map[string][]Bucket{}
		}
		runs[i] = run
	}
	r.Runs = runs
}

func check(r Results) error {
	names := regexp.MustCompile(metricFormat)
	if len(r.Scenario) > maxName || !names.MatchString(r.Scenario) {
		return fmt.Errorf("scenario %.40q: must match %s", r.Scenario, metricFormat)
	}
	if r.CPUs < 1 || r.CPUs > maxCPUs {
		return fmt.Errorf("cpus %d: must be 1..%d", r.CPUs, maxCPUs)
	}
	if len(r.Runs) > MaxRuns {
		return fmt.Errorf("%d runs: must be at most %d", len(r.Runs), MaxRuns)
	}
	for i, run := range r.Runs {
		if err := checkRun(names, run); err != nil {
			return fmt.Errorf("run %d (row %.40q, seed %d): %w", i, run.Row, run.Seed, err)
		}
	}
	return nil
}

func checkRun(names *regexp.Regexp, run Run) error {
	if run.Row == "" || len(run.Row) > MaxRowName {
		return fmt.Errorf("row: must have 1..%d bytes", MaxRowName)
	}
	if len(run.Metrics) > maxNames || len(run.Histograms) > maxNames || len(run.Events) > maxNames {
		return fmt.Errorf("metrics, histograms and events: must be at most %d each", maxNames)
	}
	for name, value := range run.Metrics {
		if err := checkName(names, name); err != nil {
			return fmt.Errorf("metric %w", err)
		}
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return fmt.Errorf("metric %q: must be a finite number", name)
		}
	}
	for name, buckets := range run.Histograms {
		if err := checkName(names, name); err != nil {
			return fmt.Errorf("histogram %w", err)
		}
		if err := checkBuckets(buckets); err != nil {
			return fmt.Errorf("histogram %q: %w", name, err)
		}
	}
	for _, event := range run.Events {
		if err := checkName(names, event.Name); err != nil {
			return fmt.Errorf("event %w", err)
		}
	}
	return nil
}

func checkName(names *regexp.Regexp, name string) error {
	if len(name) > maxName || !names.MatchString(name) {
		return fmt.Errorf("%.40q: name must match %s and have at most %d bytes", name, metricFormat, maxName)
	}
	return nil
}

func checkBuckets(buckets []Bucket) error {
	if len(buckets) > maxBuckets {
		return fmt.Errorf("%d buckets: must be at most %d", len(buckets), maxBuckets)
	}
	last := math.Inf(-1)
	for i, b := range buckets {
		if math.IsNaN(b.Low) || math.IsInf(b.Low, 0) || math.IsNaN(b.High) || math.IsInf(b.High, 0) {
			return fmt.Errorf("bucket %d: limits must be finite numbers", i)
		}
		if b.Low < last || b.High <= b.Low {
			return fmt.Errorf("bucket %d: limits must ascend and not overlap", i)
		}
		if b.Count < 0 {
			return fmt.Errorf("bucket %d: count must not be negative", i)
		}
		last = b.High
	}
	return nil
}
