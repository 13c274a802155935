package scenario

import (
	"strconv"

	"rota/lab/guest"
	"rota/lab/scenario/output"
)

// ping measures round trips, and what the hogs get meanwhile.
func (r *upfRun) ping(tunnel upfTunnel) error {
	var times output.Samples
	var lost int
	var hogs float64
	for i := range upfBegins {
		some, missing, busy, err := r.pingFrom(i, tunnel)
		if err != nil {
			return err
		}
		times, lost, hogs = append(times, some...), lost+missing, hogs+busy/upfBegins
	}
	for figure, value := range map[string]float64{
		"min": times.Min(), "avg": times.Avg(), "p99": times.Percentile(99), "max": times.Max(), "mdev": times.Deviation(),
	} {
		r.g.Metric(tunnel.name+"_"+figure+"_ms", value)
	}
	r.g.Metric(tunnel.name+"_lost_packets", float64(lost))
	r.g.Metric(tunnel.name+"_hogs_pct", hogs)
	r.g.Histogram(tunnel.name+"_us", timeBuckets(times))
	return nil
}

// pingFrom measures the i-th part of the round trips, and how many were lost, and what the hogs get.
func (r *upfRun) pingFrom(i int, tunnel upfTunnel) (times output.Samples, lost int, hogs float64, err error) {
	if err := r.serve(i); err != nil {
		return nil, 0, 0, err
	}
	hogs, err = r.hogsDuring(func() (err error) {
		times, lost, err = r.pings(tunnel, r.begin(i))
		return err
	})
	return times[min(upfFirst, len(times)):], lost, hogs, err
}

// begin is the CPU on which the i-th program of the user begins; the gateway begins on the next
// one, who answers on the one after that. Once a scheduler knows them they can go anywhere, but most
// stay, and virtual CPUs are not equally fast: in all rows each begins on all of them in turn.
func (r *upfRun) begin(i int) string {
	if r.user != "" {
		i = 2 + i%2 // of upfUserCPUs
	}
	return strconv.Itoa(i % r.g.CPUs)
}

func (r *upfRun) pings(tunnel upfTunnel, begin string) (output.Samples, int, error) {
	p, err := r.g.Start(r.member(guest.Cmd{
		Path: "ping", Netns: tunnel.netns, CPUs: begin,
		// From user space to user space: the answer counts when ping has a CPU.
		Args: []string{"-n", "-U", "-i", pingApart, "-c", strconv.Itoa(upfFirst + upfPings/upfBegins), "-W", "5", upfServer},
	}))
	if err != nil {
		return nil, 0, err
	}
	r.g.Sleep(upfKnown)
	if err := p.Roam(); err != nil {
		p.Kill()
		return nil, 0, err
	}
	out, err := p.Wait()
	if err != nil {
		return nil, 0, err
	}
	return output.Ping(out.Stdout)
}

// ask counts requests that follow each other.
func (r *upfRun) ask(tunnel upfTunnel) error {
	var answers, hogs float64
	for i := range upfBegins {
		if err := r.serve(i); err != nil {
			return err
		}
		some, busy, err := r.askFrom(r.begin(i), tunnel)
		if err != nil {
			return err
		}
		answers, hogs = answers+some, hogs+busy/upfBegins
	}
	r.g.Metric(tunnel.name+"_asks_hz", answers/upfAsks.Seconds())
	r.g.Metric(tunnel.name+"_asks_hogs_pct", hogs)
	return nil
}

// askFrom is how many requests one client has answered in its part of the time, and what the
// hogs get meanwhile.
func (r *upfRun) askFrom(begin string, tunnel upfTunnel) (answers, hogs float64, err error) {
	s := newStage(r.g, "ask_"+tunnel.name+"_"+begin)
	defer s.stop()
	if err := r.startAsking(s, tunnel, begin); err != nil {
		return 0, 0, err
	}
	var done []float64
	hogs, err = r.hogsDuring(func() (err error) {
		done, err = s.work(upfAsks / upfBegins)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	return done[0], hogs, nil
}

// startAsking has a client of this tunnel ask without end.
func (r *upfRun) startAsking(s *stage, tunnel upfTunnel, begin string) error {
	client := guest.Cmd{Path: "ask", Args: []string{upfServer, "7"}, Netns: tunnel.netns, CPUs: begin}
	if _, err := s.startCounting(r.member(client), 1); err != nil {
		return err
	}
	r.g.Sleep(upfKnown)
	if err := s.roam(); err != nil {
		return err
	}
	r.g.Sleep(upfKnown)
	return nil
}

// hogsDuring is how much of all CPUs the hogs get while f runs, in percent.
func (r *upfRun) hogsDuring(f func() error) (float64, error) {
	before, begun := commTime("stress-ng-cpu"), monotonic()
	if err := f(); err != nil {
		return 0, err
	}
	used, span := commTime("stress-ng-cpu")-before, monotonic()-begun
	return 100 * used.Seconds() / (float64(r.g.CPUs) * float64(span) / 1e9), nil
}
