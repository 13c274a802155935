package throughput

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"rota/bench/binder/pairs"
)

// Context is where a result comes from, in google-benchmark's words.
type Context struct {
	Date        string    `json:"date"`
	HostName    string    `json:"host_name"`
	Executable  string    `json:"executable"`
	CPUs        int       `json:"num_cpus"`
	MHz         int       `json:"mhz_per_cpu"`
	Scaling     bool      `json:"cpu_scaling_enabled"`
	Caches      []Cache   `json:"caches"`
	LoadAvg     []float64 `json:"load_avg"`
	BuildType   string    `json:"library_build_type"`
	Kernel      string    `json:"kernel"`
	Scheduler   string    `json:"scheduler"`
	Clocksource string    `json:"clocksource"`
}

// Cache is a CPU's cache; we say nothing of them.
type Cache struct{}

// row is a row of the JSON: times are of one iteration.
type row struct {
	Name            string  `json:"name"`
	FamilyIndex     int     `json:"family_index"`
	InstanceIndex   int     `json:"per_family_instance_index"`
	RunName         string  `json:"run_name"`
	RunType         string  `json:"run_type"`
	Repetitions     int     `json:"repetitions"`
	RepetitionIndex int     `json:"repetition_index"`
	Threads         int     `json:"threads"`
	Iterations      int     `json:"iterations"`
	Real            float64 `json:"real_time"`
	CPU             float64 `json:"cpu_time"`
	Unit            string  `json:"time_unit"`
	BytesPerSecond  float64 `json:"bytes_per_second"`
	ServerCPU       float64 `json:"server_cpu_time"`
	MoreIoctls      int     `json:"calls_of_more_than_one_ioctl"`
	Descriptors     int     `json:"descriptors_left"`
}

// BytesPerSecond is what goes in one direction; as much comes back.
func (m Measured) BytesPerSecond() float64 {
	if m.Real <= 0 {
		return 0
	}
	return float64(m.Payload) * float64(m.Iterations) / m.Real.Seconds()
}

// perIteration is a time divided by the iterations, in ns.
func (m Measured) perIteration(d time.Duration) float64 {
	return float64(d.Nanoseconds()) / float64(m.Iterations)
}

// JSON writes google-benchmark's schema. Ours are the last words of the context
// and of each row, and "left".
func (r *Result) JSON(w io.Writer, about Context) error {
	about.Caches = []Cache{}
	out := struct {
		Context    Context      `json:"context"`
		Benchmarks []row        `json:"benchmarks"`
		Left       *pairs.Books `json:"left,omitempty"`
	}{Context: about, Benchmarks: []row{}, Left: r.Left}
	for i, m := range r.Rows {
		out.Benchmarks = append(out.Benchmarks, row{
			Name: m.Name, RunName: m.Name, RunType: "iteration", InstanceIndex: i, Repetitions: 1, Threads: 1,
			Iterations: m.Iterations, Real: m.perIteration(m.Real), CPU: m.perIteration(m.Client), Unit: "ns",
			BytesPerSecond: m.BytesPerSecond(), ServerCPU: m.perIteration(m.Server), MoreIoctls: m.MoreIoctls, Descriptors: m.Descriptors,
		})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

// nameWidth is as wide as the longest name: the table is written row by row.
func (o Options) nameWidth() int { return max(10, len(o.Name(maxPayload))) }

// Header writes the head of google-benchmark's table.
func (o Options) Header(w io.Writer) error {
	head := fmt.Sprintf("%-*s %13s %15s %12s UserCounters...", o.nameWidth(), "Benchmark", "Time", "CPU", "Iterations")
	line := strings.Repeat("-", len(head))
	_, err := fmt.Fprintf(w, "%s\n%s\n%s\n", line, head, line)
	return err
}

// Row writes a row of that table. The CPU column is the client's, as in the
// original; the server's is among the counters.
func (o Options) Row(w io.Writer, m Measured) error {
	_, err := fmt.Fprintf(w, "%-*s %s ns %s ns %12d bytes_per_second=%s/s server_cpu_ns=%s\n", o.nameWidth(), m.Name,
		figure(m.perIteration(m.Real)), figure(m.perIteration(m.Client)), m.Iterations,
		binary(m.BytesPerSecond()), strings.TrimSpace(figure(m.perIteration(m.Server))))
	return err
}

// figure writes a time as google-benchmark does.
func figure(ns float64) string {
	switch {
	case ns < 1:
		return fmt.Sprintf("%10.3f", ns)
	case ns < 10:
		return fmt.Sprintf("%10.2f", ns)
	case ns < 100:
		return fmt.Sprintf("%10.1f", ns)
	case ns > 9999999999:
		return fmt.Sprintf("%1.4e", ns)
	}
	return fmt.Sprintf("%10.0f", ns)
}

// binary writes a number with the letter of a power of 1024.
func binary(v float64) string {
	letters := []string{"", "Ki", "Mi", "Gi", "Ti"}
	for v >= 1024 && len(letters) > 1 {
		v, letters = v/1024, letters[1:]
	}
	return fmt.Sprintf("%.6g%s", v, letters[0])
}
