package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"rota/lab/guest"
	"rota/lab/scenario/output"
)

// binderConfig names those who call, not those who are called.
func binderConfig(inherit string) string {
	return callerConfig("caller", "bench-client", inherit)
}

// callerConfig puts those of one name into a priority class.
func callerConfig(class, comm, inherit string) string {
	return `classes:
  - {name: ` + class + `, tier: priority, inherit: ` + inherit + `}
rules:
  - {match: {comm: ` + comm + `}, class: ` + class + `}
`
}

// binderModule makes the devices; the kernel of binderKernel has it.
const (
	binderModule = "binder_linux devices=binder,hwbinder,vndbinder"
	binderKernel = "6.18-binder"
)

// binder measures calls over the binder driver with rota's own form of AOSP's
// tests.
func binder() Scenario {
	return Scenario{
		Name:     "binder",
		Title:    "Binder calls",
		Question: "How long does a call to another process take over binder, and how often does it miss 2.5 ms, when the machine is busy?",
		Rows: append([]Row{
			{Name: rowKernel, Scheduler: "kernel"},
			{Name: rowRota, Scheduler: "rota"},
		}, inheritRows(binderConfig)...),
		Metrics: binderMetrics(),
		Tools:   []string{"hackbench", "stress-ng"},
		Bench:   true,
		Kernel:  binderKernel,
		Modules: []string{binderModule},
		Limit:   300 * time.Second,
		Run:     runBinder,
	}
}

// binderLoad is what else runs, and in how many pairs calls are made: one, or one
// less than there are CPUs.
type binderLoad struct {
	name, words string
	iterations  int // of each pair, two calls each
	start       func(*stage) error
}

func binderLoads() []binderLoad {
	return []binderLoad{
		{"idle", "idle machine", 60, func(*stage) error { return nil }},
		{"hogs", "one CPU hog per CPU", 150, (*stage).stressHogs},
		// With ten others on its CPU, a call may take many ms.
		{"hackbench", "hackbench -g 1", 25, (*stage).hackbenchLight},
	}
}

// binderPairs are the names of the two numbers of pairs.
func binderPairs() []struct{ name, words string } {
	return []struct{ name, words string }{{"one", "1 pair"}, {"many", "as many pairs as CPUs less one"}}
}

// binderFigures are the figures of one kind of caller.
func binderFigures() []string { return []string{"p50_us", "p99_us", "max_us", "miss_ratio"} }

func binderMetrics() []Metric {
	var metrics []Metric
	for _, load := range binderLoads() {
		for _, pairs := range binderPairs() {
			group := "binder calls, " + load.words + ", " + pairs.words
			prefix := "binder_" + load.name + "_" + pairs.name
			for _, caller := range []string{"other", "fifo"} {
				for _, figure := range binderFigures() {
					name := prefix + "_" + caller + "_" + figure
					metrics = append(metrics, Metric{Name: name, Group: group, Label: caller + ", " + figure[:strings.LastIndexByte(figure, '_')],
						Better: -1, Bounds: binderBounds(name)})
				}
			}
			metrics = append(metrics, Metric{Name: prefix + "_sync_ratio", Group: group, Label: "answered on the caller's CPU", Better: 1, Bounds: binderSync(load)},
				Metric{Name: prefix + "_effective_pass", Group: group, Label: "server at the caller's level, 1: PASS", Better: 1, Bounds: []Bound{{Row: rowClasses, AtLeast: 1}}})
		}
	}
	for _, kind := range binderKinds() {
		for _, size := range []string{"4", "65536"} {
			metrics = append(metrics, Metric{Name: kind.name + "_" + size + "_us", Group: "there and back, idle machine", Label: kind.name + ", " + size + " bytes", Better: -1})
		}
	}
	return append(metrics, Metric{Name: "binder_left_objects", Group: "the driver's books", Label: "held more than before", Better: -1, Bounds: binderKept()},
		Metric{Name: "binder_more_ioctls_calls", Group: "the driver's books", Label: "calls of more than one ioctl", Better: -1})
}

// binderKept: nothing stays in the driver, under any scheduler.
func binderKept() (bounds []Bound) {
	for _, row := range []string{rowKernel, rowRota, rowAlone, rowClasses} {
		bounds = append(bounds, Bound{Row: row, AtMost: 0.5})
	}
	return bounds
}

// Of the calls of a priority class: how many may miss 2.5 ms beside a load, and how many
// are to be answered on the CPU that the caller leaves beside hogs.
const (
	maxBinderMiss = 0.01
	minBinderSync = 0.95
)

// binderSync: with a hog on every CPU all but few calls stay on the caller's.
func binderSync(load binderLoad) []Bound {
	if load.name != "hogs" {
		return nil
	}
	return []Bound{{Row: rowClasses, AtLeast: minBinderSync}}
}

func binderBounds(metric string) []Bound {
	if strings.HasPrefix(metric, "binder_idle") || !strings.HasSuffix(metric, "_miss_ratio") {
		return nil
	}
	return []Bound{{Row: rowClasses, AtMost: maxBinderMiss}}
}

// binderKinds are the two devices and the names of their rows.
func binderKinds() []struct{ name, row string } {
	return []struct{ name, row string }{{"binder", "BM_sendVec_binder/"}, {"hwbinder", "BM_sendVec_binderize/"}}
}

// binderBooks sums what each run says of the driver.
type binderBooks struct{ left, more int }

func runBinder(g *guest.Guest) error {
	if g.CPUs < 2 {
		return errors.New("binder: needs 2 CPUs or more")
	}
	var books binderBooks
	for _, load := range binderLoads() {
		for _, pairs := range binderPairs() {
			n := 1
			if pairs.name == "many" {
				n = g.CPUs - 1
			}
			if err := binderUnder(g, load, pairs.name, n, &books); err != nil {
				return fmt.Errorf("%s, %d pairs: %w", load.words, n, err)
			}
		}
	}
	g.Metric("binder_left_objects", float64(books.left))
	g.Metric("binder_more_ioctls_calls", float64(books.more))
	return binderThroughput(g)
}

func binderUnder(g *guest.Guest, load binderLoad, name string, pairs int, books *binderBooks) error {
	s := newStage(g, "binder_"+load.name+"_"+name)
	defer s.stop()
	if err := load.start(s); err != nil {
		return err
	}
	out, err := g.Run(guest.Cmd{Path: "rota", Args: []string{"bench", "binder-latency", "--extended",
		"-i", strconv.Itoa(load.iterations), "-pair", strconv.Itoa(pairs)}})
	if err != nil {
		return err
	}
	b, err := output.ReadBinder(out.Stdout)
	if err != nil {
		return err
	}
	prefix := "binder_" + load.name + "_" + name
	binderCaller(g, prefix+"_other", b.Other)
	binderCaller(g, prefix+"_fifo", b.Fifo)
	g.Metric(prefix+"_sync_ratio", b.Sync)
	if pass, known := b.Effective(); known {
		g.Metric(prefix+"_effective_pass", pass)
	}
	books.left += b.Left
	books.more += b.Other.MoreIoctls + b.Fifo.MoreIoctls
	verdicts, err := json.Marshal(b.Verdicts)
	g.Event(prefix+"_inheritance", string(verdicts))
	return err
}

func binderCaller(g *guest.Guest, prefix string, c output.BinderCalls) {
	g.Metric(prefix+"_p50_us", c.P50)
	g.Metric(prefix+"_p99_us", c.P99)
	g.Metric(prefix+"_max_us", c.Max)
	g.Metric(prefix+"_miss_ratio", c.MissRatio)
	var list []guest.Bucket
	for _, b := range c.Buckets {
		list = append(list, guest.Bucket(b))
	}
	g.Histogram(prefix+"_us", list)
}

// binderThroughput measures the smallest and the largest payload of both devices.
func binderThroughput(g *guest.Guest) error {
	for _, kind := range binderKinds() {
		out, err := g.Run(guest.Cmd{Path: "rota", Args: []string{"bench", kind.name + "-throughput",
			"--benchmark_filter", "/(4|65536)$", "--benchmark_min_time", "0.05", "--benchmark_format", "json"}})
		if err != nil {
			return err
		}
		rows, err := output.ReadThroughput(out.Stdout)
		if err != nil {
			return err
		}
		for _, size := range []string{"4", "65536"} {
			g.Metric(kind.name+"_"+size+"_us", rows[kind.row+size])
		}
	}
	return nil
}
