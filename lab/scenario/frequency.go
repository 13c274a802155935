package scenario

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"slices"
	"time"

	"rota/lab/guest"
)

const (
	topFrequency   = 2530 // MHz
	frequencyTasks = 8    // of each program
	frequencySpan  = time.Second
	// Where two programs differ less than plainDegree, more has to be done to see it.
	plainDegree = 0.02
	// A round of the turns of all takes 16 ms. Shorter turns would cost who pays for the choice
	// of the next one a part of its time that is seen here.
	roundLooks      = 32
	roundLook       = 3500 * time.Microsecond
	longestSpan     = 5 * time.Second
	frequencySettle = 600 * time.Millisecond // until rota has read the new frequency
	rowFrequency    = "rota-frequency"
	rowCounted      = "rota-counted"
	rowCountedUnder = "rota-counted-under"
	rowCountedOver  = "rota-counted-over"
	rowKernelTSF    = "kernel-tsf"
	rowTSF          = "rota-tsf"
	// accessTime is what one access of lab/load/progress.c takes: 600 turns of 66
	// instructions for 16.
	accessTime = 2475 * time.Nanosecond
	allWaits   = 1000 // the counter of a row sees all of a thousand
	// waitsOfCycles are the calls that it makes for cycles that wait, and all of them.
	waitsOfCycles = `counters: "syscalls:sys_enter_getppid/raw_syscalls:sys_enter"`
)

// frequencySteps are those of the machine of the paper, in MHz; the first is the top one.
func frequencySteps() []int { return []int{topFrequency, 2270, 2000, 1730, 1470, 1200, 930} }

// program is one of the paper's: of its time at full speed, so much waits for memory.
type program struct {
	name  string
	bound int // per mille
}

// programs stand for programs that wait for memory hardly, a little and most of the time.
func programs() (computes, mixed, waits program) {
	return program{"prog-050", 50}, program{"prog-150", 150}, program{"prog-600", 600}
}

func programPairs() [][2]program {
	computes, mixed, waits := programs()
	return [][2]program{{computes, mixed}, {mixed, waits}, {computes, waits}}
}

// pairName begins the names of a pair's figures.
func pairName(pair [2]program) string { return fmt.Sprintf("p%d_p%d", pair[0].bound, pair[1].bound) }

// frequencyConfig declares what the programs are, off by this factor.
func frequencyConfig(factor float64) string {
	config := "scheduler: {frequencyFairness: on, slice: 1ms}\nclasses:\n"
	rules := "rules:\n"
	computes, mixed, waits := programs()
	for _, p := range []program{computes, mixed, waits} {
		config += fmt.Sprintf("  - {name: %s, memoryBound: %.4f}\n", p.name, min(1, factor*float64(p.bound)/1000))
		rules += fmt.Sprintf("  - {match: {comm: %s}, class: %s}\n", p.name, p.name)
	}
	return config + rules
}

// countedConfig leaves it to counters what the programs are. They make system calls in the
// place of what a processor counts, see lab/load/progress.c.
func countedConfig(counters string) string {
	return "scheduler: {frequencyFairness: on, slice: 1ms, " + counters + "}\n"
}

// frequencyRow is a row, and what the programs and the machine are in it.
type frequencyRow struct {
	Row
	seen int  // of a thousand waits, how many its counter sees
	tsf  bool // the paper's weights, see epochs
}

func frequencyRows() []frequencyRow {
	kernel := func(name, about string) frequencyRow {
		return frequencyRow{Row{Name: name, Scheduler: "kernel", About: about}, allWaits, false}
	}
	rota := func(name, config, about string) frequencyRow {
		row := kernel(name, about)
		row.Scheduler, row.Config = "rota", config
		return row
	}
	counted := func(name string, seen int, about string) frequencyRow {
		row := rota(name, countedConfig(waitsOfCycles), about)
		row.seen = seen
		return row
	}
	tsf := func(row frequencyRow) frequencyRow {
		row.tsf = true
		return row
	}
	const slice = "scheduler: {slice: 1ms}\n"
	const weights = "weights of the paper: each epoch those that the counters of the last one call for"
	return []frequencyRow{
		kernel(rowKernel, ""),
		tsf(kernel(rowKernelTSF, weights)),
		rota(rowRota, slice, "time counts as it is"),
		tsf(rota(rowTSF, slice, "the same, with the "+weights)),
		rota(rowFrequency, "scheduler: {frequencyFairness: on, slice: 1ms}\n", "time counts by the frequency alone: nobody is said to wait for memory"),
		rota(rowClasses, frequencyConfig(1), "with what the programs are"),
		rota("rota-under", frequencyConfig(0.8), "the same, declared 20 % too small"),
		rota("rota-over", frequencyConfig(1.2), "the same, declared 20 % too large"),
		counted(rowCounted, allWaits, "with what counters say the programs are: cycles that wait, of all cycles"),
		counted(rowCountedUnder, 800, "the same, where the counter sees 20 % too few of those that wait"),
		counted(rowCountedOver, 1200, "the same, where it sees 20 % too many"),
		rota("rota-accesses", countedConfig(fmt.Sprintf(`counters: "syscalls:sys_enter_getppid", accessLatency: %dns`, accessTime.Nanoseconds())), "the same by the paper's estimator: accesses, each taken for as long"),
	}
}

// frequencyRowOf is the row of that name, or one like the kernel's.
func frequencyRowOf(name string) frequencyRow {
	rows := frequencyRows()
	if i := slices.IndexFunc(rows, func(row frequencyRow) bool { return row.Name == name }); i >= 0 {
		return rows[i]
	}
	return rows[0]
}

// frequency measures the paper's experiment: programs of which one loses more than the
// other when the frequency falls share a CPU, and progress, not time, is to be shared.
func frequency() Scenario {
	var rows []Row
	for _, row := range frequencyRows() {
		rows = append(rows, row.Row)
	}
	return Scenario{
		Name:     "frequency",
		Title:    "Fair shares when frequency drops",
		Question: "Does everybody lose as much when the CPU runs slower, whether he computes or waits for memory?",
		Rows:     rows,
		Metrics:  frequencyMetrics(),
		Loads:    []string{"progress"},
		Turns:    guest.TurnsNone,
		Limit:    400 * time.Second,
		Run:      runFrequency,
	}
}

func frequencyMetrics() []Metric {
	var metrics []Metric
	for _, pair := range programPairs() {
		group := fmt.Sprintf("Fair_Degree (0: all lose alike) of 8 + 8 tasks on one CPU, %d and %d %% of whose time waits for memory", pair[0].bound/10, pair[1].bound/10)
		for _, mhz := range frequencySteps()[1:] {
			metrics = append(metrics, Metric{Name: fmt.Sprintf("%s_%d_degree", pairName(pair), mhz), Group: group, Label: fmt.Sprintf("at %d of 2530 MHz", mhz), Better: -1})
		}
		metrics = append(metrics,
			Metric{Name: pairName(pair) + "_sample", Group: group, Label: "at 930 MHz, of a sample of two", Better: -1},
			Metric{Name: pairName(pair) + "_full", Group: group, Label: "at 2530 MHz, pieces of work a second", Better: 1},
			Metric{Name: pairName(pair) + "_done_pct", Group: group, Label: "at 930 MHz, of the work at 2530 MHz, all of them do", Better: 1})
	}
	metrics = append(metrics, Metric{Name: "weights_error_pct", Group: "8 of nice -5 to 10 on one CPU at 1200 MHz, 5 or 60 % of whose time waits for memory",
		Label: "greatest error of a share of the work over 1 s", Better: -1,
		Bounds: []Bound{{Row: rowClasses, AtMost: sharePct}, {Row: rowCounted, AtMost: sharePct}}})
	const group = "improvement of Fair_Degree over shares of time, by the formula"
	return append(metrics,
		Metric{Name: "least_pct", Group: group, Label: "least of 18", Better: 1, Bounds: []Bound{
			{Row: rowClasses, AtLeast: 60}, {Row: rowCounted, AtLeast: 60}, {Row: rowCountedUnder, AtLeast: 75}, {Row: rowCountedOver, AtLeast: 75}}},
		Metric{Name: "most_pct", Group: group, Label: "most of 18", Better: 1, Bounds: []Bound{{Row: rowClasses, AtLeast: 95}, {Row: rowCounted, AtLeast: 95}}},
		Metric{Name: "improved", Group: group, Label: "of 18 points, improved", Better: 1, Bounds: []Bound{{Row: rowClasses, AtLeast: 18}, {Row: rowCounted, AtLeast: 18}}},
	)
}

func runFrequency(g *guest.Guest) error {
	machine, err := newSlowMachine(g)
	if err != nil {
		return err
	}
	if err := bringDaemon(g); err != nil {
		return err
	}
	computes, mixed, waits := programs()
	for _, p := range []program{computes, mixed, waits} {
		if err := os.Symlink("progress", "/bin/"+p.name); err != nil {
			return err
		}
	}
	var improvements []float64
	for _, pair := range programPairs() {
		some, err := runPair(g, machine, pair)
		if err != nil {
			return fmt.Errorf("%s: %w", pairName(pair), err)
		}
		improvements = append(improvements, some...)
	}
	off, err := weighedWork(g, machine)
	if err != nil {
		return fmt.Errorf("shares of work: %w", err)
	}
	g.Metric("weights_error_pct", off)
	least, most, improved := math.Inf(1), math.Inf(-1), 0
	for _, i := range improvements {
		least, most = min(least, i), max(most, i)
		if i > 0 {
			improved++
		}
	}
	g.Metric("least_pct", least)
	g.Metric("most_pct", most)
	g.Metric("improved", float64(improved))
	return nil
}

// runPair measures two programs at each frequency, and returns the improvements.
func runPair(g *guest.Guest, machine *slowMachine, pair [2]program) (improvements []float64, err error) {
	s := newStage(g, pairName(pair))
	defer s.stop()
	var tasks []weighed
	for slot := range 2 * frequencyTasks {
		tasks = append(tasks, weighed{program: pair[programOf(slot)]})
	}
	end, err := startWeighed(s, machine, tasks)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	var full [2]float64 // pieces a second
	for _, mhz := range frequencySteps() {
		done, err := atFrequency(s, machine, pair, mhz)
		if err != nil {
			return nil, err
		}
		if mhz == topFrequency {
			full = done
			g.Metric(pairName(pair)+"_full", done[0]+done[1])
			continue
		}
		kept := [2]float64{done[0] / full[0], done[1] / full[1]}
		degree := math.Abs(kept[0]-kept[1]) / 2 // the deviation of two
		g.Metric(fmt.Sprintf("%s_%d_degree", pairName(pair), mhz), degree)
		improvements = append(improvements, 100*(1-degree/timeDegree(pair, mhz)))
		if mhz == slices.Min(frequencySteps()) {
			g.Metric(pairName(pair)+"_sample", math.Sqrt2*degree)
			g.Metric(pairName(pair)+"_done_pct", 100*(kept[0]+kept[1])/2)
		}
	}
	return improvements, nil
}

// atFrequency is what each of two programs does in a second at a frequency.
func atFrequency(s *stage, machine *slowMachine, pair [2]program, mhz int) (done [2]float64, err error) {
	if err := machine.set(mhz); err != nil {
		return done, err
	}
	s.g.Sleep(frequencySettle)
	before, from, err := lookAround(s)
	if err != nil {
		return done, err
	}
	s.g.Sleep(spanOf(pair, mhz))
	after, to, err := lookAround(s)
	for i := range done {
		done[i] = (after[i] - before[i]) / to.Sub(from).Seconds()
	}
	return done, err
}

// lookAround is how much each of two programs has done, in the mean of some looks at many
// phases of a round, in which the ones may have had their turns and the others not.
func lookAround(s *stage) (done [2]float64, at time.Time, err error) {
	from := time.Now()
	for range roundLooks {
		slots, err := s.read()
		if err != nil {
			return done, at, err
		}
		for slot, n := range slots[:s.slots] {
			done[programOf(slot)] += float64(n.Loops) / roundLooks
		}
		s.g.Sleep(roundLook)
	}
	return done, from.Add(time.Since(from) / 2), nil
}

// programOf is which of two programs is started as the so manyth: in the order of Thue and
// Morse, because turns may keep step with the ticks of the kernel, and who is interrupted by one
// pays for it.
func programOf(slot int) int { return bits.OnesCount(uint(slot)) % 2 }

// spanOf is how long two programs are looked at: the less they differ the longer, and at
// the top frequency as long as at any.
func spanOf(pair [2]program, mhz int) time.Duration {
	least := timeDegree(pair, mhz)
	if mhz == topFrequency {
		least = timeDegree(pair, frequencySteps()[1])
	}
	return min(longestSpan, time.Duration(max(1, plainDegree/least)*float64(frequencySpan)).Round(100*time.Millisecond))
}

// timeDegree is the Fair_Degree of two programs that share time: of their work at full
// speed each keeps P = 1 / (phi + (1 - phi) * fmax / f).
func timeDegree(pair [2]program, mhz int) float64 {
	r := float64(perMille(mhz)) / 1000
	p := func(p program) float64 { phi := float64(p.bound) / 1000; return 1 / (phi + (1-phi)/r) }
	return math.Abs(p(pair[0])-p(pair[1])) / 2
}
