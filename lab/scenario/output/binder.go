package output

import (
	"encoding/json"
	"fmt"
	"math"
)

// Binder is what a scenario takes from "rota bench binder-latency --extended".
type Binder struct {
	Other, Fifo BinderCalls
	Sync        float64        // share of the calls that were answered on the caller's CPU
	Left        int            // what the driver holds more than before
	Verdicts    map[string]any // rt, nice, effective: with their reasons
}

// BinderCalls is one kind of calls.
type BinderCalls struct {
	Avg, P50, P99, Max float64 // us
	MissRatio          float64
	Delivery99         float64 // us until the server had it
	MoreIoctls         int     // calls that took more than one
	Buckets            []BinderBucket
}

// BinderBucket is a bar of the histogram, in us.
type BinderBucket struct {
	Low, High float64
	Count     int64
}

// binderCalls and binderReport are the parts of the tool's JSON.
type binderCalls struct {
	Call struct {
		Samples  int
		Avg      float64        `json:"avg_us"`
		P50      float64        `json:"p50_us"`
		P99      float64        `json:"p99_us"`
		Max      float64        `json:"max_us"`
		Buckets  []BinderBucket `json:"histogram_us"`
		Deadline struct {
			Ratio float64 `json:"miss_ratio"`
		}
	}
	Delivery struct {
		P99 float64 `json:"p99_us"`
	}
	MoreIoctls int `json:"calls_of_more_than_one_ioctl"`
}

type binderReport struct {
	Cfg      struct{ Pair int }
	Extended struct {
		Inheritance map[string]any
		All         struct{ Other, Fifo binderCalls }
		Left        map[string]int
	}
}

// Effective is 1 when the server ran at the caller's level and 0 when it did not; the
// tool may not know.
func (b Binder) Effective() (pass float64, known bool) {
	verdict, _ := b.Verdicts["effective"].(map[string]any)
	switch verdict["verdict"] {
	case "PASS":
		return 1, true
	case "FAIL":
		return 0, true
	}
	return 0, false
}

// ReadBinder reads the report of a binder latency test.
func ReadBinder(text string) (Binder, error) {
	var r binderReport
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return Binder{}, fmt.Errorf("binder latency: %w in its output: %q", err, clip(text))
	}
	b := Binder{Verdicts: r.Extended.Inheritance}
	for into, from := range map[*BinderCalls]binderCalls{&b.Other: r.Extended.All.Other, &b.Fifo: r.Extended.All.Fifo} {
		if from.Call.Samples == 0 {
			return b, fmt.Errorf("binder latency: no samples in its output: %q", clip(text))
		}
		*into = BinderCalls{from.Call.Avg, from.Call.P50, from.Call.P99, from.Call.Max, from.Call.Deadline.Ratio,
			from.Delivery.P99, from.MoreIoctls, from.Call.Buckets}
	}
	if len(r.Extended.Left) == 0 {
		return b, fmt.Errorf("binder latency: not known what the driver holds: %q", clip(text))
	}
	for _, n := range r.Extended.Left {
		b.Left += int(math.Abs(float64(n)))
	}
	return b, b.readSync(text, r.Cfg.Pair)
}

// readSync takes S and I of each pair, which have names of their own.
func (b *Binder) readSync(text string, pairs int) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return err
	}
	synced, calls := 0, 0
	for i := range min(pairs, 1024) {
		var p struct{ S, I int }
		if err := json.Unmarshal(all[fmt.Sprintf("P%d", i)], &p); err != nil {
			return fmt.Errorf("binder latency: pair %d: %w in its output", i, err)
		}
		synced, calls = synced+p.S, calls+p.I
	}
	if calls == 0 {
		return fmt.Errorf("binder latency: no calls in its output: %q", clip(text))
	}
	b.Sync = float64(synced) / float64(calls)
	return nil
}

// ReadThroughput reads the time of one iteration of each row, in us, from
// google-benchmark's JSON.
func ReadThroughput(text string) (map[string]float64, error) {
	var r struct {
		Benchmarks []struct {
			Name string
			Real float64 `json:"real_time"`
			Unit string  `json:"time_unit"`
		}
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, fmt.Errorf("binder throughput: %w in its output: %q", err, clip(text))
	}
	rows := map[string]float64{}
	for _, row := range r.Benchmarks {
		if row.Unit != "ns" || row.Real <= 0 {
			return nil, fmt.Errorf("binder throughput: row %q: %v %s: must be ns", row.Name, row.Real, row.Unit)
		}
		rows[row.Name] = row.Real / 1e3
	}
	return rows, nil
}
