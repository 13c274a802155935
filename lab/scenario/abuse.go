package scenario

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"rota/lab/guest"
	"rota/lab/scenario/output"
)

const abuseConfig = `classes:
  - name: vip
    tier: priority
  - name: later
    tier: background
rules:
  - match: {comm: "vip-*"}
    class: vip
  - match: {comm: "later-*"}
    class: later
`

// starvationBoundMs is scheduler.starvationBound's default.
const starvationBoundMs = 1000

// abuse measures how long the least of the runnable tasks is kept from a CPU
// when everybody else behaves badly.
func abuse() Scenario {
	return Scenario{
		Name:     "abuse",
		Title:    "Abuse",
		Question: "What is the longest time for which a runnable task gets no CPU at all when others behave badly?",
		Rows:     rowsWithoutFifo(abuseConfig),
		Metrics:  abuseMetrics(),
		Tools:    []string{"stress-ng", "ping", "ip"},
		Loads:    []string{"hog", "gap", "storm"},
		Modules:  []string{"veth"},
		Limit:    180 * time.Second,
		Run:      runAbuse,
	}
}

// abuseCase is one kind of abuse: victims that look at the clock all the time
// and what is done to them.
type abuseCase struct {
	metric, label string
	victims       int
	victim        guest.Cmd
	attack        func(*stage) error
	length        time.Duration
}

func abuseCases() []abuseCase {
	nice19 := guest.Cmd{Path: "gap", Nice: 19}
	nice19One := guest.Cmd{Path: "gap", Nice: 19, CPUs: "1"}
	fair := guest.Cmd{Path: "gap"}
	return []abuseCase{
		{"nice", "nice 19 under 8 hogs of nice -20", 1, nice19, hogsOf(8, guest.Cmd{Nice: -20}), 3 * time.Second},
		{"nice_one_cpu", "the same, all on one CPU", 1, nice19One, hogsOf(8, guest.Cmd{Nice: -20, CPUs: "1"}), 3 * time.Second},
		{"vip_hogs", "4 fair tasks under 4 priority-class hogs", 4, fair, hogsOf(4, guest.Cmd{Path: "vip-hog"}), 3 * time.Second},
		{"vip_hogs_double", "4 fair tasks under 8 priority-class hogs", 4, fair, hogsOf(8, guest.Cmd{Path: "vip-hog"}), 3 * time.Second},
		{"vip_storm", "4 fair tasks under a priority-class fork storm", 4, fair, vipStorm, 2 * time.Second},
		{"background", "a background task under 8 fair hogs", 1, guest.Cmd{Path: "later-gap"}, hogsOf(8, guest.Cmd{}), 3 * time.Second},
		{"stress", "a fair task under stress-ng --aggressive", 1, fair, aggressive, 2 * time.Second},
	}
}

func abuseMetrics() []Metric {
	bounds := []Bound{{Row: rowRota, AtMost: starvationBoundMs}, {Row: rowClasses, AtMost: starvationBoundMs}}
	var metrics []Metric
	for _, c := range abuseCases() {
		metrics = append(metrics, Metric{
			Name: c.metric + "_longest_wait_ms", Group: "longest time without CPU", Label: c.label, Better: -1, Bounds: bounds,
		})
	}
	soon := []Bound{{Row: rowClasses, AtMost: starvationBoundMs}}
	metrics = append(metrics,
		Metric{Name: "reach_longest_ms", Group: reachGroup, Label: "longest round trip", Better: -1, Bounds: soon},
		Metric{Name: "reach_answers_pct", Group: reachGroup, Label: "of 50 pings, answered", Better: 1, Bounds: []Bound{{Row: rowClasses, AtLeast: 100}}},
		Metric{Name: "reach_program_ms", Group: reachGroup, Label: "to start a program and see it end", Better: -1, Bounds: soon})
	attached := []Bound{{Row: rowRota, AtLeast: 1}, {Row: rowClasses, AtLeast: 1}}
	return append(metrics,
		Metric{Name: "longest_wait_ms", Group: "longest time without CPU", Label: "longest of all", Better: -1, Bounds: bounds},
		Metric{Name: "attached_end", Group: "scheduler", Label: "attached at the end (1 = yes)", Better: 0, Bounds: attached},
	)
}

// hogsOf is an attack by n hogs like c.
func hogsOf(n int, c guest.Cmd) func(*stage) error {
	return func(s *stage) error {
		_, err := s.startHogs(n, c)
		return err
	}
}

// vipStorm keeps 32 short processes of the priority class alive.
func vipStorm(s *stage) error {
	_, err := s.startCounting(guest.Cmd{Path: "vip-storm", Args: []string{"fork", "32"}}, 1)
	return err
}

func aggressive(s *stage) error {
	cpus := strconv.Itoa(s.g.CPUs)
	_, err := s.start(guest.Cmd{Path: "stress-ng", Args: []string{
		"--aggressive", "--cpu", cpus, "--cpu-method", "int64", "--fork", cpus, "--switch", "2", "--futex", "2", "--yield", "2"}})
	return err
}

func runAbuse(g *guest.Guest) error {
	// A rule on comm sees the name by which a program was executed.
	for link, load := range map[string]string{"vip-hog": "hog", "vip-storm": "storm", "later-gap": "gap"} {
		if err := os.Symlink("/bin/"+load, "/bin/"+link); err != nil {
			return err
		}
	}
	g.ExpectDetach() // a scheduler that is thrown out is a result here
	longest := 0.0
	for _, c := range abuseCases() {
		wait, err := suffer(g, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.label, err)
		}
		g.Metric(c.metric+"_longest_wait_ms", wait)
		longest = max(longest, wait)
	}
	g.Metric("longest_wait_ms", longest)
	if err := measureReach(g); err != nil {
		return err
	}
	if g.Scheduler() != nil {
		g.Metric("attached_end", truth(g.SchedulerAttached()))
	}
	return nil
}

// truth is 1 for yes and 0 for no.
func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// reachGroup heads what is left of a machine whose priority class wants all of it.
const reachGroup = "a priority-class hog on each CPU: is the machine within reach?"

// measureReach pings from another network namespace, until ping, which is in no class, has
// the answer in its hands, and starts a program, as somebody does who wants to end the hogs.
func measureReach(g *guest.Guest) error {
	if err := g.Netns("outside"); err != nil {
		return err
	}
	if err := runIP(g, []string{
		"link add near type veth peer name far netns outside",
		"link set near addrgenmode none up", "addr add 10.0.2.1/24 dev near",
		"-n outside link set far addrgenmode none up", "-n outside addr add 10.0.2.2/24 dev far",
	}); err != nil {
		return err
	}
	s := newStage(g, "abuse_reach")
	defer s.stop()
	if _, err := s.startHogs(g.CPUs, guest.Cmd{Path: "vip-hog"}); err != nil {
		return err
	}
	g.Sleep(200 * time.Millisecond)
	out, err := g.Run(guest.Cmd{Path: "ping", Netns: "outside", Args: []string{"-n", "-U", "-i", "0.02", "-c", "50", "-W", "5", "10.0.2.1"}})
	if err != nil {
		return err
	}
	times, lost, err := output.Ping(out.Stdout)
	if err != nil {
		return err
	}
	program, err := g.Run(guest.Cmd{Path: "/bin/true"})
	if err != nil {
		return err
	}
	g.Metric("reach_longest_ms", times.Max())
	g.Metric("reach_answers_pct", 100*float64(len(times))/float64(max(1, len(times)+lost)))
	g.Metric("reach_program_ms", float64(program.Elapsed.Microseconds())/1e3)
	return nil
}

// suffer runs one case and returns the victims' longest wait in ms.
func suffer(g *guest.Guest, c abuseCase) (float64, error) {
	s := newStage(g, "abuse_"+c.metric)
	defer s.stop()
	var victims []int
	for range c.victims {
		slot, err := s.startCounting(c.victim, 1)
		if err != nil {
			return 0, err
		}
		victims = append(victims, slot)
	}
	if err := c.attack(s); err != nil {
		return 0, err
	}
	g.Sleep(c.length)
	return s.longestWait(victims...)
}
