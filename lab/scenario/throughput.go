package scenario

import (
	"strconv"
	"time"

	"rota/lab/guest"
	"rota/lab/scenario/output"
)

// The classes of this scenario match nothing that runs in it: the row shows
// what it costs to have classes and rules at all.
const throughputConfig = `classes:
  - name: urgent
    tier: priority
  - name: batch
    tier: background
rules:
  - match: {comm: "urgent-*"}
    class: urgent
  - match: {comm: "batch-*"}
    class: batch
  - match: {cgroup: "urgent.slice/**"}
    class: urgent
`

// throughput measures what a scheduler costs.
func throughput() Scenario {
	return Scenario{
		Name:     "throughput",
		Title:    "Throughput",
		Question: "What does the scheduler cost: how long do the field's scheduling benchmarks take, and how much work gets done?",
		Rows:     rows(throughputConfig),
		Metrics:  throughputMetrics(),
		Tools:    []string{"hackbench", "perf", "stress-ng"},
		Loads:    []string{"barrier", "deceive"},
		MemoryMB: 1536,
		Limit:    180 * time.Second,
		Run:      runThroughput,
	}
}

func throughputMetrics() []Metric {
	within := func(atLeast, atMost float64) []Bound {
		return []Bound{{Row: rowRota, Against: rowKernel, AtLeast: atLeast, AtMost: atMost}}
	}
	const deceived = "one of two that answer each other works on"
	return []Metric{
		{Name: "hackbench_s", Group: "messages", Label: "hackbench -g 4 -l 200", Better: -1, Bounds: within(0, 1.03)},
		{Name: "messaging_s", Group: "messages", Label: "perf bench sched messaging -g 4", Better: -1, Bounds: within(0, 1.03)},
		{Name: "messaging_pipes_s", Group: "messages", Label: "perf bench sched messaging -g 4 over pipes, once warm", Better: -1, Bounds: within(0, 1.03)},
		{Name: "pipe_one_us", Group: "perf bench sched pipe", Label: "both on one CPU", Better: -1, Bounds: within(0, 1.30)},
		{Name: "pipe_any_us", Group: "perf bench sched pipe", Label: "on any CPU", Better: -1, Bounds: within(0, 1.05)},
		{Name: "pipe_any_direct_pct", Group: "perf bench sched pipe", Label: "of these messages, for whom a CPU was idle, as rota counts"},
		{Name: "pipe_any_handed_pct", Group: "perf bench sched pipe", Label: "whom the other left its CPU", Better: 1,
			Bounds: []Bound{{Row: rowRota, AtLeast: 97}}},
		{Name: "deceived_mean_us", Group: deceived, Label: "until the other runs, mean", Better: -1},
		{Name: "deceived_max_us", Group: deceived, Label: "longest", Better: -1, Bounds: []Bound{{Row: rowRota, AtMost: 400}}},
		{Name: "barrier_s", Group: "512 threads meet 20 times", Label: "time", Better: -1,
			Bounds: append(within(0, 1.10), Bound{Row: rowClasses, Against: rowKernel, AtMost: 1.10})},
		{Name: "stress_ops", Group: "stress-ng", Label: "one --cpu worker per CPU, 4 s", Better: 1, Bounds: within(0.97, 0)},
		{Name: "mixed_cpu_ops", Group: "stress-ng", Label: "mixed with pipes, 3 s: cpu", Better: 1},
		{Name: "mixed_pipe_ops", Group: "stress-ng", Label: "mixed with pipes, 3 s: pipe", Better: 1},
	}
}

func runThroughput(g *guest.Guest) error {
	offsets := g.Rand("throughput")
	for _, measure := range []func(*guest.Guest) error{measureHackbench, measureMessaging, measureMessagingPipes, measurePipes, measureDeceived, measureBarrier, measureStress, measureMixed} {
		g.Sleep(50*time.Millisecond + time.Duration(offsets.Intn(4000))*time.Microsecond)
		if err := measure(g); err != nil {
			return err
		}
	}
	return nil
}

func measureHackbench(g *guest.Guest) error {
	text, err1 := measured(g, "", "hackbench", "-g", "4", "-l", "200")
	seconds, err2 := output.Hackbench(text)
	return emit(g, "hackbench_s", seconds, err1, err2)
}

func measureMessaging(g *guest.Guest) error {
	text, err1 := measured(g, "", "perf", "bench", "sched", "messaging", "-g", "4", "-l", "100")
	seconds, err2 := output.PerfMessaging(text)
	return emit(g, "messaging_s", seconds, err1, err2)
}

// The second of two counts: the first has been from 0.59 to 0.70 s under the kernel, the second
// from 0.60 to 0.62.
func measureMessagingPipes(g *guest.Guest) error {
	var text string
	for range 2 {
		var err error
		if text, err = measured(g, "", "perf", "bench", "sched", "messaging", "-p", "-g", "4", "-l", "100"); err != nil {
			return emit(g, "messaging_pipes_s", 0, err)
		}
	}
	seconds, err := output.PerfMessaging(text)
	return emit(g, "messaging_pipes_s", seconds, err)
}

const pipeMessages = 20000 // to and fro

func measurePipes(g *guest.Guest) error {
	if err := measurePipe(g, "pipe_one_us", "1"); err != nil {
		return err
	}
	if !isRota(g) {
		return measurePipe(g, "pipe_any_us", "")
	}
	const direct, handed = "direct", "handed"
	before, err1 := rotaCounts(g, direct, handed)
	err := measurePipe(g, "pipe_any_us", "")
	after, err2 := rotaCounts(g, direct, handed)
	for _, name := range []string{direct, handed} {
		err = emit(g, "pipe_any_"+name+"_pct", 100*(after[name]-before[name])/(2*pipeMessages), err, err1, err2)
	}
	return err
}

func measurePipe(g *guest.Guest, metric, cpus string) error {
	text, err1 := measured(g, cpus, "perf", "bench", "sched", "pipe", "-l", strconv.Itoa(pipeMessages))
	us, err2 := output.PerfPipe(text)
	return emit(g, metric, us, err1, err2)
}

// Who always slept when it had woken the other, and now works on for 5 ms: what it costs to have
// believed that it would sleep (handOver).
func measureDeceived(g *guest.Guest) error {
	return measureWaits(g, "deceived", guest.Cmd{Path: "deceive", Args: []string{"100"}})
}

func measureBarrier(g *guest.Guest) error {
	out, err := g.Run(guest.Cmd{Path: "barrier", Args: []string{"512", "20"}})
	if err != nil {
		return err
	}
	seconds, err := output.Figure(out.Stdout, "barrier_s")
	return emit(g, "barrier_s", seconds, err)
}

func measureStress(g *guest.Guest) error {
	text, err1 := measured(g, "", "stress-ng", "--cpu", strconv.Itoa(g.CPUs), "--cpu-method", "int64", "--timeout", "4s", "--metrics-brief")
	ops, err2 := output.StressNG(text, "cpu")
	return emit(g, "stress_ops", ops, err1, err2)
}

func measureMixed(g *guest.Guest) error {
	text, err1 := measured(g, "", "stress-ng", "--cpu", strconv.Itoa(g.CPUs), "--cpu-method", "int64", "--pipe", "2",
		"--timeout", "3s", "--metrics-brief")
	cpu, err2 := output.StressNG(text, "cpu")
	if err := emit(g, "mixed_cpu_ops", cpu, err1, err2); err != nil {
		return err
	}
	pipe, err := output.StressNG(text, "pipe")
	return emit(g, "mixed_pipe_ops", pipe, err)
}
