// Package report keeps the results of the lab: the JSON file that is a contract
// with everybody who reads them, the table in the terminal, the comparison of
// two files and the HTML report.
//
// It measures nothing and starts nothing. It imports no other package of the
// lab, so that the guest, the scenarios and the command can all use its types.
// cmd/rota-lab calls it; lab/scenario describes its figures with Metric and Bound.
package report

// Results is one invocation of the lab: one scenario on one or more kernels,
// under several schedulers and seeds. Its JSON form is a contract.
type Results struct {
	// Scenario is the scenario's name, such as "wake".
	Scenario string `json:"scenario"`
	// Kernel is the release of the first run's kernel; each run carries its own.
	Kernel string `json:"kernel"`
	// CPUs is the number of virtual CPUs of every run.
	CPUs int `json:"cpus"`
	// Seed is the first seed; each run carries its own.
	Seed int64 `json:"seed"`
	// Runs holds one entry per boot, in the order in which they were asked for.
	Runs []Run `json:"runs"`
}

// Run is one boot of one cell: one row of the scenario, one kernel, one seed.
type Run struct {
	// Row names the column of the table: "kernel", "fifo", "rota", "rota+classes"
	// or the name of a peer or of another scheduler's program, with as much of the
	// command line as tells it apart from the other rows.
	Row string `json:"row"`
	// Scheduler is "kernel", "rota", program and version of a peer such as
	// "scx_lavd 1.1.4", or the path of another scheduler's program.
	Scheduler string `json:"scheduler"`
	// Config is the scheduler's configuration as text, "" when it had none.
	Config string `json:"config"`
	// Kernel is the release of the kernel that ran; where others of that release
	// ran, too, what it was asked for as follows in brackets.
	Kernel string `json:"kernel,omitempty"`
	// Seed is this run's seed.
	Seed int64 `json:"seed"`
	// Attached says whether the scheduler was in charge when the scenario ended;
	// always false where the kernel's own scheduler is measured.
	Attached bool `json:"attached"`
	// Exit is the reason, in words, why the scheduler or the run ended early;
	// "" when nothing did.
	Exit string `json:"exit"`
	// Note says what a reader must know about this run, such as another kernel
	// version than the pinned one; "" when there is nothing.
	Note string `json:"note,omitempty"`
	// Clocksource is the guest's clock, such as "tsc".
	Clocksource string `json:"clocksource,omitempty"`
	// Metrics maps a name that ends in its unit to a finite number.
	Metrics map[string]float64 `json:"metrics"`
	// Histograms maps a name that ends in its unit to buckets in ascending order.
	Histograms map[string][]Bucket `json:"histograms"`
	// Events are the things that happened in the run, in order.
	Events []Event `json:"events,omitempty"`
}

// Bucket is one bar of a histogram: Count samples in Low <= x < High, in the
// unit that the histogram's name ends in.
type Bucket struct {
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Count int64   `json:"count"`
}

// Event is one thing that happened in a run: a name and words for a reader.
type Event struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Metric describes one figure of a scenario: how to print and how to judge it.
type Metric struct {
	// Name is the key in Run.Metrics; it ends in its unit.
	Name string
	// Group heads the lines of the table that belong together.
	Group string
	// Label names the figure inside its group.
	Label string
	// Better is -1 when lower is better, +1 when higher is, 0 when neither is.
	Better int
	// Bounds are the limits that the project promises for this figure.
	Bounds []Bound
}

// Bound is one promise: the median of Row lies in AtLeast..AtMost. With Against
// set it is the ratio of Row's median to Against's that must lie there. A limit
// of 0 means no limit on that side.
type Bound struct {
	Row     string
	Against string
	AtLeast float64
	AtMost  float64
}

// Plot sets the figure named Y, on a logarithmic scale, against the one named X.
type Plot struct{ Title, X, Y string }

// Info is what a report says about a scenario beside its figures.
type Info struct {
	// Title heads the report; Question is the sentence that the table answers.
	Title, Question string
	// Rows are the columns of the table in order; rows of the results that are
	// not named here follow in the order in which they first appear.
	Rows []string
	// Metrics are the lines of the table in order; figures of the results that
	// are not named here follow in alphabetical order.
	Metrics []Metric
	// About describes a row below its name, where its runs don't say enough.
	About map[string]string
	// OwnKernel marks the rows that run on a kernel of their own, whatever
	// kernel the others run on: they stand beside the others.
	OwnKernel map[string]bool
	// Plots set two figures against each other, one point per row.
	Plots []Plot
	// Command is the line that repeats the results.
	Command string
}

// Baseline is the row that every other row is compared with.
const Baseline = "kernel"

// Caveats returns what the lab can't say; it is printed with every result.
func Caveats() []string {
	return []string{
		"Time is instructions: one guest instruction takes one nanosecond, and all virtual CPUs share that budget, so k busy CPUs run at 1/k of the speed each.",
		"Caches, SMT, frequency and memory bandwidth are not modelled: read counts, order and ratios; absolute times belong to this machine model alone.",
	}
}
