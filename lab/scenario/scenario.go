// Package scenario holds the experiments of the lab: which schedulers are
// compared, which loads run, what is measured and what was promised for it.
// Each scenario is one file: its data and the function that runs in the guest.
//
// It starts no machine and prints no result: cmd/rota-lab gives a scenario to
// lab/machine and lab/guest and its figures to lab/report.
package scenario

import (
	"time"

	"rota/lab/guest"
	"rota/lab/report"
)

// The words of the neighbours that a scenario is written in.
type (
	// Row is one column of the table: a scheduler with a configuration.
	Row = guest.Row
	// Metric is one line of the table.
	Metric = report.Metric
	// Bound is a promise about a metric.
	Bound = report.Bound
)

// Scenario is one experiment.
type Scenario struct {
	// Name is the word on the command line; Title heads the report.
	Name, Title string
	// Question is one sentence that the table answers.
	Question string
	// Rows are the columns of the table, in order.
	Rows []Row
	// Metrics are the figures, in the order in which they are printed.
	Metrics []Metric
	// Plots set two of the figures against each other.
	Plots []report.Plot
	// Tools are programs of the host that are copied in with their libraries.
	Tools []string
	// Loads are our own small static programs, see lab/load.
	Loads []string
	// Modules are kernel modules that are loaded before the scenario starts;
	// parameters follow a name after a space.
	Modules []string
	// Bench says that the scenario runs rota's measuring tools, in every row.
	Bench bool
	// Turns is how finely the virtual CPUs take turns: not at all where all that is measured
	// happens on one CPU, as that costs the host most while one of them is busy.
	Turns guest.Turns
	// Kernel is the row of the kernel list that is booted when none is asked
	// for; "" is that of all scenarios.
	Kernel string
	// CPUs and MemoryMB describe the machine; 0 means 4 and 1024.
	CPUs, MemoryMB int
	// Limit is the virtual time after which the run counts as failed.
	Limit time.Duration
	// Run is the experiment; the guest calls it when the scheduler is attached.
	Run func(*guest.Guest) error
}

// Names of the standard rows.
const (
	rowKernel  = "kernel"
	rowFifo    = "fifo"
	rowRota    = "rota"
	rowClasses = "rota+classes"
	// rowAlone is rota with classes that give nothing to those for whom they wait.
	rowAlone = "rota-alone"
)

// All returns every scenario, in the order in which they are listed.
func All() []Scenario {
	return []Scenario{wake(), latency(), ping(), upf(), throughput(), binder(), cost(), shares(), crowds(), cgroups(), turns(), bursts(), frequency(), owned(), conformance(), inversion(), waits(), launch(), abuse(), faults()}
}

// Find returns the scenario with this name.
func Find(name string) (Scenario, bool) {
	for _, s := range All() {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}

// Info returns what a report says about s beside its figures; command is the
// line that repeats the results.
func (s Scenario) Info(command string) report.Info {
	info := report.Info{Title: s.Title, Question: s.Question, Metrics: s.Metrics, Plots: s.Plots, Command: command,
		About: map[string]string{}, OwnKernel: map[string]bool{}}
	for _, r := range s.Rows {
		info.Rows = append(info.Rows, r.Name)
		info.About[r.Name] = r.About
		info.OwnKernel[r.Name] = r.Kernel != ""
	}
	return info
}

// rows returns the four standard columns; config is the last one's.
func rows(config string) []Row {
	return append([]Row{
		{Name: rowKernel, Scheduler: "kernel"},
		{Name: rowFifo, Scheduler: "kernel", Fifo: true},
	}, rotaRows(config)...)
}

// rowsWithoutFifo is for loads in which no chain of tasks is measured that a
// real-time policy could help.
func rowsWithoutFifo(config string) []Row {
	return append([]Row{{Name: rowKernel, Scheduler: "kernel"}}, rotaRows(config)...)
}

func rotaRows(config string) []Row {
	return []Row{
		{Name: rowRota, Scheduler: "rota"},
		{Name: rowClasses, Scheduler: "rota", Config: config},
	}
}

// inheritRows are the columns with classes, without inheritance and with it; config
// writes the value of the key inherit into theirs.
func inheritRows(config func(inherit string) string) []Row {
	return []Row{
		{Name: rowAlone, Scheduler: "rota", Config: config("false"), About: "with classes, without inheritance"},
		{Name: rowClasses, Scheduler: "rota", Config: config("true")},
	}
}
