package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rota/internal/api"
	"rota/internal/cpulist"
)

// The times between two looks that make sense: what the daemon has counted is up to
// 100 ms old.
const (
	leastTop = 500 * time.Millisecond
	mostTop  = time.Hour
)

// topOptions are the flags of top.
type topOptions struct {
	interval time.Duration
	count    int // of tables; 0: until it is interrupted
}

func topCommand() *cobra.Command {
	var o topOptions
	c := &cobra.Command{
		Use:   "top",
		Short: "Show, again and again, what each class gets now",
		Long: `top shows what each class got since the last look: its share of the CPU time that
tasks had, how often its tasks began to run, how long they waited for a CPU, how often
they were preempted, or held back by the cap of their class. The longest wait is the
upper end of the bucket that it fell into. Where frequency fairness is on it also says how
much of its time is memory bound (phi), at which part of full speed it gets on (P) and its
share of all progress; where CPUs belong to the class, which.

The class with most CPU time stands first. On a terminal the table is renewed;
elsewhere one follows the other, and --json writes an object per line. Ctrl-C ends it.`,
		Example: `  rota top
  rota top --interval 5s
  rota top --count 3 --json`,
		Args: atMost(0),
	}
	c.Flags().DurationVarP(&o.interval, "interval", "i", time.Second, "time between two looks")
	c.Flags().IntVarP(&o.count, "count", "n", 0, "how many tables, 0 = until interrupted")
	socket := addSocket(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		switch {
		case o.interval < leastTop || o.interval > mostTop:
			return fmt.Errorf("rota top: --interval %v: must be %v..1h", o.interval, leastTop)
		case o.count < 0:
			return fmt.Errorf("rota top: --count %d: must be 0 or more", o.count)
		}
		return top(c.Context(), c.OutOrStdout(), api.NewClient(*socket), o, wantJSON(c))
	}
	return c
}

// top looks and shows until it has done so often enough, or is interrupted.
func top(ctx context.Context, w io.Writer, client *api.Client, o topOptions, asJSON bool) error {
	show := newScreen(w)
	earlier, err := client.Status(ctx)
	if err != nil {
		return err
	}
	tick := time.NewTicker(o.interval)
	defer tick.Stop()
	for n := 1; o.count == 0 || n <= o.count; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		later, err := client.Status(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		since := api.Since(earlier, later)
		if asJSON {
			err = json.NewEncoder(w).Encode(since)
		} else {
			err = show.show(topText(earlier, since, show.live), n == o.count)
		}
		if err != nil {
			return err
		}
		earlier = later
	}
	return nil
}

// topText is one table; since is what happened since earlier.
func topText(earlier, since api.Status, live bool) string {
	var b strings.Builder
	span := since.UptimeSeconds - earlier.UptimeSeconds
	if api.Anew(earlier, since) {
		span = since.AttachedSeconds // Since counts from when it was loaded again
	}
	fmt.Fprintf(&b, "%s: %s\n", time.Now().Format(time.TimeOnly), stateWords(since))
	boosts := since.Boosts.Futex + since.Boosts.Locks + since.Boosts.Wakeups + since.Boosts.Binder
	fmt.Fprintf(&b, "in %s: %s boosts a second, with %s of CPU time%s\n", seconds(span), rate(boosts, span),
		micros(float64(since.Boosts.RuntimeMicros)), speedWords(since))
	_ = writeColumns(&b, 2, topRows(since, span)) // to memory
	if !live {
		b.WriteString("\n")
	}
	return b.String()
}

// topRows are the classes, who had most CPU time first.
func topRows(s api.Status, span float64) [][]string {
	paced := s.Frequency.Mode != "off" && s.Frequency.Mode != ""
	head := []string{"class", "tier", "tasks", "cpu", "runs/s", "wait p50", "p99", "max", "preempted/s", "cap hits/s", "rescues/s"}
	if paced {
		head = append(head, "phi", "P", "progress")
	}
	owned := slices.ContainsFunc(s.Classes, func(c api.Class) bool { return len(c.CPUs) > 0 })
	if owned {
		head = append(head, "cpus")
	}
	rows := [][]string{head}
	classes := slices.SortedStableFunc(slices.Values(s.Classes), func(a, b api.Class) int { return cmp.Compare(b.RuntimeMicros, a.RuntimeMicros) })
	for _, c := range classes {
		row := []string{
			safe(c.Name), safe(c.Tier), number(c.Tasks), fmt.Sprintf("%.1f%%", c.SharePercent), rate(c.Dispatches, span),
			micros(c.WaitP50Micros), micros(c.WaitP99Micros), micros(c.WaitMaxMicros),
			rate(c.Preempted, span), rate(c.CapHits, span), rate(c.Rescues, span),
		}
		if paced {
			row = append(row, fmt.Sprintf("%.0f%%", c.MemoryBoundPercent), paceWords(c), fmt.Sprintf("%.1f%%", c.ProgressSharePercent))
		}
		if owned {
			row = append(row, cmp.Or(cpulist.String(c.CPUs), "-"))
		}
		rows = append(rows, row)
	}
	return rows
}

// paceWords is at which part of full speed a class gets on.
func paceWords(c api.Class) string {
	if c.RuntimeMicros <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*float64(c.ProgressMicros)/float64(c.RuntimeMicros))
}

// speedWords is how fast the CPUs run whose speed is known.
func speedWords(s api.Status) string {
	var speeds []float64
	for _, c := range s.CPUs {
		if c.SpeedPercent > 0 {
			speeds = append(speeds, c.SpeedPercent)
		}
	}
	if len(speeds) == 0 {
		return ""
	}
	return fmt.Sprintf("; %s at %.0f to %.0f%% of full speed", plural(len(speeds), "CPU"), slices.Min(speeds), slices.Max(speeds))
}

// rate is how often a second something happened; unknown without a time.
func rate(n uint64, span float64) string {
	if span <= 0 {
		return "-"
	}
	if r := float64(n) / span; n > 0 && r < 10 {
		return fmt.Sprintf("%.1f", r)
	}
	return fmt.Sprintf("%.0f", float64(n)/span)
}
