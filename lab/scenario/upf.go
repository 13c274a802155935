package scenario

import (
	"fmt"
	"time"

	"rota/lab/guest"
)

// Rows of upf beside the standard ones.
const (
	rowIdle   = "idle"
	rowCPUSet = "kernel-cpuset"
	rowCPUs   = "rota+cpus"
	rowOneCPU = "rota+cpu"
	rowLent   = "rota+lent"
)

const upfConfig = `classes:
  - {name: network, tier: priority}
rules:
  - {match: {comm: "ping"}, class: network}
  - {match: {comm: "gateway"}, class: network}
  - {match: {comm: "ask"}, class: network}
`

const (
	upfPings    = 200
	upfAsks     = time.Second           // that requests are counted
	upfBegins   = 4                     // programs that ping, or ask, one after the other: see begin
	upfKnown    = 50 * time.Millisecond // by then a scheduler has been told what a program is
	upfFirst    = 4                     // pings until then, and the next: they map pages, and find addresses
	upfUserCPUs = "2-3"                 // with cpuset isolation; the hogs have the others
	upfHogCPUs  = "0-1"
)

// upf measures the user plane of a 5G network while hogs want all CPUs: what goes through
// a GTP-U tunnel that the kernel's module serves at both ends, and through one that a
// process in user space serves at one end.
func upf() Scenario {
	kernel := func(name, about string) Row { return Row{Name: name, Scheduler: "kernel", About: about} }
	return Scenario{
		Name:     "upf",
		Title:    "The user plane of a 5G network",
		Question: "How long does a round trip through a GTP-U tunnel take while every CPU has a hog, and what do the hogs lose?",
		Rows: []Row{
			kernel(rowKernel, ""),
			kernel(rowIdle, "without hogs"),
			kernel(rowNice, "the gateway has nice -20"),
			kernel(rowCPUSet, "two of four CPUs are for the user plane, the others for the hogs"),
			{Name: rowFifo, Scheduler: "kernel", Fifo: true, About: "the whole chain under SCHED_FIFO"},
			{Name: rowRota, Scheduler: "rota"},
			{Name: rowClasses, Scheduler: "rota", Config: upfConfig, About: "with a priority class"},
			{Name: rowCPUs, Scheduler: "rota", Config: withCPUsOf(upfConfig, "cpus: {dedicated: 2}"), About: "with two CPUs for that class"},
			{Name: rowOneCPU, Scheduler: "rota", Config: withCPUsOf(upfConfig, "cpus: {dedicated: 1}"), About: "with one CPU for that class"},
			{Name: rowLent, Scheduler: "rota", Config: withCPUsOf(upfConfig, "cpus: {dedicated: 2, lend: true, lendAfter: 1ms}"), About: "with two CPUs for that class, lent once it has not run for 1 ms"},
		},
		Metrics: append(upfMetrics(), upfWhereMetrics()...),
		Tools:   []string{"ping", "ip", "stress-ng"},
		Loads:   []string{"gateway", "ask"},
		Bench:   true,
		// A round trip is a chain of wake-ups between CPUs.
		Turns:   guest.TurnsFinest,
		Modules: []string{"veth", "tun", "gtp"},
		Kernel:  "6.18-binder", // Debian's cloud kernels have no gtp
		Limit:   120 * time.Second,
		Run:     runUPF,
	}
}

// upfTunnel is a way between a user's equipment and the network behind the tunnel.
type upfTunnel struct {
	name, words string
	netns       string // where the user is
	address     string // of the user
	outside     int    // third byte of the addresses that the tunnel has outside
	teid        uint32
}

// upfServer is the address behind the tunnels.
const upfServer = "10.61.0.1"

func upfTunnels() []upfTunnel {
	return []upfTunnel{
		{"module", "the kernel's module at both ends", "ran", "10.60.0.2", 0, 2},
		{"gateway", "a process in user space at one end", "gnb", "10.60.0.3", 1, 3},
	}
}

func upfMetrics() []Metric {
	var metrics []Metric
	for _, tunnel := range upfTunnels() {
		group := "round trip through a GTP-U tunnel, " + tunnel.words
		for _, figure := range []string{"min", "avg", "p99", "max", "mdev"} {
			metrics = append(metrics, Metric{
				Name: tunnel.name + "_" + figure + "_ms", Group: group, Label: figure, Better: -1, Bounds: upfBounds(figure),
			})
		}
		metrics = append(metrics,
			Metric{Name: tunnel.name + "_lost_packets", Group: group, Label: "lost", Better: -1},
			Metric{Name: tunnel.name + "_hogs_pct", Group: group, Label: "of all CPUs, the hogs get meanwhile", Better: 1, Bounds: upfBounds("hogs")},
			Metric{Name: tunnel.name + "_asks_hz", Group: "requests, each after the answer to the last, " + tunnel.words, Label: "requests", Better: 1},
			Metric{Name: tunnel.name + "_asks_hogs_pct", Group: "requests, each after the answer to the last, " + tunnel.words, Label: "of all CPUs, the hogs get meanwhile", Better: 1},
		)
	}
	return metrics
}

func upfBounds(figure string) []Bound {
	switch figure {
	case "avg":
		return []Bound{{Row: rowClasses, Against: rowFifo, AtMost: 1.05}, {Row: rowCPUs, Against: rowFifo, AtMost: 0.9}}
	case "p99":
		return []Bound{{Row: rowClasses, Against: rowFifo, AtMost: 1.2}, {Row: rowCPUs, Against: rowCPUSet, AtMost: 1}, {Row: rowOneCPU, Against: rowCPUSet, AtMost: 1}, {Row: rowLent, Against: rowCPUSet, AtMost: 1}}
	case "max":
		return []Bound{{Row: rowCPUs, Against: rowFifo, AtMost: 0.8}}
	case "hogs":
		return []Bound{{Row: rowClasses, Against: rowCPUSet, AtLeast: 1}, {Row: rowOneCPU, Against: rowCPUSet, AtLeast: 1}, {Row: rowLent, Against: rowCPUSet, AtLeast: 1}}
	}
	return nil
}

// upfRun is one experiment: the chain of the user plane and the hogs.
type upfRun struct {
	g              *guest.Guest
	stations, hogs *stage
	user           string // cgroup of the chain, empty: the root
	hogCgroup      string
}

func runUPF(g *guest.Guest) error {
	r := &upfRun{g: g, stations: newStage(g, "upf"), hogs: newStage(g, "hogs")}
	defer r.stations.stop()
	defer r.hogs.stop() // first
	if err := r.isolate(); err != nil {
		return err
	}
	if err := connectUPF(g); err != nil {
		return err
	}
	if g.Row.Name != rowIdle {
		if err := r.hogs.stressHogsIn(r.hogCgroup); err != nil {
			return err
		}
	}
	for _, tunnel := range upfTunnels() {
		if err := r.ping(tunnel); err != nil {
			return fmt.Errorf("%s: %w", tunnel.words, err)
		}
		if err := r.ask(tunnel); err != nil {
			return fmt.Errorf("%s: %w", tunnel.words, err)
		}
	}
	if g.Row.Name == rowIdle {
		return r.where()
	}
	return nil
}

// isolate makes the cgroups of the row that has some.
func (r *upfRun) isolate() error {
	if r.g.Row.Name != rowCPUSet {
		return nil
	}
	r.user, r.hogCgroup = "upf/user", "upf/hogs"
	for path, cpus := range map[string]string{r.user: upfUserCPUs, r.hogCgroup: upfHogCPUs} {
		group, err := r.g.Cgroup(path)
		if err != nil {
			return err
		}
		if err := group.SetCpus(cpus); err != nil {
			return err
		}
	}
	return nil
}

// serve starts what answers and what is in the way, anew for each program of the user: see begin.
func (r *upfRun) serve(i int) error {
	gateway := guest.Cmd{Path: "gateway", Args: []string{"tun0", "172.16.1.2", "3"}, Netns: "gnb", CPUs: r.begin(i + 1)}
	if r.g.Row.Name == rowNice {
		gateway.Nice = -20
	}
	server := guest.Cmd{Path: "ask", Args: []string{"serve", "7"}, Netns: "upf", CPUs: r.begin(i + 2)}
	r.stations.stop()
	for _, c := range []guest.Cmd{gateway, server} {
		if _, err := r.stations.start(r.member(c)); err != nil {
			return err
		}
	}
	r.g.Sleep(upfKnown)
	return r.stations.roam()
}

// member is a program of the chain as the row has it.
func (r *upfRun) member(c guest.Cmd) guest.Cmd {
	c.Cgroup = r.user
	return chain(r.g, c)
}

// connectUPF makes the namespaces and the tunnels between them: ran and gnb are the radio
// side, upf the other one, which the kernel's module serves for both.
func connectUPF(g *guest.Guest) error {
	for _, name := range []string{"ran", "gnb", "upf"} {
		if err := g.Netns(name); err != nil {
			return err
		}
	}
	var lines []string
	for _, tunnel := range upfTunnels() {
		lines = append(lines, fmt.Sprintf("-n %s link add n3 type veth peer name n3-%s netns upf", tunnel.netns, tunnel.netns))
		for i, end := range []string{tunnel.netns, "upf"} {
			device := []string{"n3", "n3-" + tunnel.netns}[i]
			lines = append(lines,
				fmt.Sprintf("-n %s link set %s addrgenmode none up", end, device),
				fmt.Sprintf("-n %s addr add 172.16.%d.%d/24 dev %s", end, tunnel.outside, i+1, device))
		}
	}
	lines = append(lines,
		"-n upf addr add "+upfServer+"/32 dev lo",
		"-n upf link add gtp0 type gtp role ggsn",
		"-n upf link set gtp0 up",
		"-n ran link add gtp0 type gtp role sgsn",
		"-n gnb tuntap add tun0 mode tun",
	)
	for _, tunnel := range upfTunnels() {
		device := map[string]string{"ran": "gtp0", "gnb": "tun0"}[tunnel.netns]
		lines = append(lines,
			fmt.Sprintf("-n %s addr add %s/32 dev %s", tunnel.netns, tunnel.address, device),
			fmt.Sprintf("-n %s link set %s addrgenmode none up", tunnel.netns, device),
			fmt.Sprintf("-n %s route add %s dev %s src %s", tunnel.netns, upfServer, device, tunnel.address),
			fmt.Sprintf("-n upf route add %s dev gtp0", tunnel.address))
	}
	if err := runIP(g, lines); err != nil {
		return err
	}
	for _, tunnel := range upfTunnels() {
		if err := g.AddTunnel(guest.Tunnel{Netns: "upf", Device: "gtp0", TEID: tunnel.teid, User: tunnel.address,
			Peer: fmt.Sprintf("172.16.%d.1", tunnel.outside)}); err != nil {
			return err
		}
	}
	module := upfTunnels()[0]
	return g.AddTunnel(guest.Tunnel{Netns: module.netns, Device: "gtp0", TEID: module.teid, User: module.address,
		Peer: fmt.Sprintf("172.16.%d.2", module.outside)})
}
