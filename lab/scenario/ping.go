package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"rota/lab/guest"
	"rota/lab/scenario/output"
)

const pingConfig = `classes:
  - name: network
    tier: priority
rules:
  - match: {comm: "ping"}
    class: network
  - match: {comm: "relay"}
    class: network
`

// pingApart is the time between two pings, in seconds. ping waits for answers by a timer of
// whole ticks, so they follow each other at 24 ms, sometimes 28. With ticks of 4 ms
// and rounds of the virtual CPUs of 122.1 us, both meet a round in 25 places, evenly; 20
// ms would always meet the same 5, and which these are is chance.
const pingApart = "0.018"

// ping measures round trips between two network namespaces, directly and over
// a pair of relays in user space: then three processes must get a CPU one after
// the other for each round trip.
func ping() Scenario {
	return Scenario{
		Name:     "ping",
		Title:    "Round trips through a user-space relay",
		Question: "How long does a round trip take whose packets pass through user space while every CPU has a hog?",
		Rows:     rows(pingConfig),
		Metrics:  pingMetrics(),
		Tools:    []string{"ping", "ip", "stress-ng"},
		Loads:    []string{"relay"},
		Modules:  []string{"veth"},
		Limit:    120 * time.Second,
		Run:      runPing,
	}
}

// pingPath is a way between the namespaces: the metric's prefix, the address at
// the far end, and how often it is pinged under load. An idle machine gets
// pingIdle of them.
type pingPath struct {
	name, group, address string
	count                int
}

const pingIdle = 60

func pingPaths() []pingPath {
	return []pingPath{
		{"relay", "through the relays (ping, relay, relay)", "10.0.0.2", 300},
		{"rtt", "directly from namespace to namespace", "10.0.1.2", 150},
	}
}

func pingMetrics() []Metric {
	var metrics []Metric
	for _, load := range []struct{ infix, words string }{{"", ", one CPU hog per CPU"}, {"_idle", ", idle machine"}} {
		for _, path := range pingPaths() {
			for _, figure := range []string{"avg", "p99", "max"} {
				name := fmt.Sprintf("%s%s_%s_ms", path.name, load.infix, figure)
				metrics = append(metrics, Metric{
					Name: name, Group: "round trip " + path.group + load.words, Label: figure, Better: -1,
					Bounds: pingBounds(name),
				})
			}
			metrics = append(metrics, Metric{
				Name: path.name + load.infix + "_lost_packets", Group: "round trip " + path.group + load.words,
				Label: "lost", Better: -1,
			})
		}
	}
	return metrics
}

func pingBounds(metric string) []Bound {
	switch metric {
	case "relay_avg_ms":
		return []Bound{{Row: rowClasses, Against: rowFifo, AtMost: 1.10}}
	case "relay_max_ms":
		return []Bound{{Row: rowClasses, Against: rowFifo, AtMost: 1.5}}
	}
	return nil
}

func runPing(g *guest.Guest) error {
	if err := connect(g); err != nil {
		return err
	}
	s := newStage(g, "ping")
	defer s.stop()
	for _, ends := range [][]string{{"relay-a", "relay-b"}, {"relay-b", "relay-a"}} {
		if _, err := s.start(chain(g, guest.Cmd{Path: "relay", Args: ends})); err != nil {
			return err
		}
	}
	g.Sleep(50 * time.Millisecond)
	if err := pingAll(g, "_idle"); err != nil {
		return fmt.Errorf("idle: %w", err)
	}
	if err := s.stressHogs(); err != nil {
		return err
	}
	if err := pingAll(g, ""); err != nil {
		return fmt.Errorf("under hogs: %w", err)
	}
	return nil
}

// chain gives a program of the measured chain the row's policy.
func chain(g *guest.Guest, c guest.Cmd) guest.Cmd {
	if g.Row.Fifo {
		c.Policy, c.Priority = "fifo", 50
	}
	return c
}

// connect makes the namespaces a and b, a direct link between them, and links
// from both to the first namespace, where the relays join them.
func connect(g *guest.Guest) error {
	for _, name := range []string{"a", "b"} {
		if err := g.Netns(name); err != nil {
			return err
		}
	}
	lines := []string{
		"link add relay-a type veth peer name eth0 netns a",
		"link add relay-b type veth peer name eth0 netns b",
		"-n a link add eth1 type veth peer name eth1 netns b",
		"link set relay-a addrgenmode none up",
		"link set relay-b addrgenmode none up",
	}
	for i, name := range []string{"a", "b"} {
		for network, device := range []string{"eth0", "eth1"} {
			lines = append(lines,
				fmt.Sprintf("-n %s link set %s addrgenmode none up", name, device),
				fmt.Sprintf("-n %s addr add 10.0.%d.%d/24 dev %s", name, network, i+1, device))
		}
	}
	return runIP(g, lines)
}

// runIP runs ip with these arguments, one line after the other.
func runIP(g *guest.Guest, lines []string) error {
	for _, line := range lines {
		if _, err := g.Run(guest.Cmd{Path: "ip", Args: strings.Fields(line)}); err != nil {
			return fmt.Errorf("ip %s: %w", line, err)
		}
	}
	return nil
}

// pingAll pings over every path.
func pingAll(g *guest.Guest, infix string) error {
	for _, path := range pingPaths() {
		count := path.count
		if infix == "_idle" {
			count = pingIdle
		}
		if err := pingOver(g, path, infix, count); err != nil {
			return fmt.Errorf("%s: %w", path.group, err)
		}
	}
	return nil
}

func pingOver(g *guest.Guest, path pingPath, infix string, count int) error {
	// The first packets pay for the address resolution: they are not counted.
	if _, err := pingTimes(g, path, 3); err != nil {
		return err
	}
	out, err := pingTimes(g, path, count)
	if err != nil {
		return err
	}
	times, lost, err := output.Ping(out)
	if err != nil {
		return err
	}
	name := path.name + infix
	g.Metric(name+"_avg_ms", times.Avg())
	g.Metric(name+"_p99_ms", times.Percentile(99))
	g.Metric(name+"_max_ms", times.Max())
	g.Metric(name+"_lost_packets", float64(lost))
	g.Histogram(name+"_us", timeBuckets(times))
	return nil
}

func pingTimes(g *guest.Guest, path pingPath, count int) (string, error) {
	out, err := g.Run(chain(g, guest.Cmd{
		Path: "ping", Netns: "a",
		Args: []string{"-n", "-i", pingApart, "-c", strconv.Itoa(count), "-W", "5", path.address},
	}))
	return out.Stdout, err
}

// timeBuckets makes a histogram in us of times in ms.
func timeBuckets(times output.Samples) []guest.Bucket {
	l := output.Latency{Counts: map[int]int64{}}
	for _, ms := range times {
		l.Counts[int(ms*1000)]++
	}
	return buckets(l)
}
