package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"rota/internal/api"
	"rota/internal/cpulist"
)

// leastStatus is for how long the daemon gives the same answer: less would be measured as nothing.
const leastStatus = 100 * time.Millisecond

func statusCommand() *cobra.Command {
	var verbose bool
	var interval time.Duration
	c := &cobra.Command{
		Use:   "status",
		Short: "Show the state of the daemon and what each class got",
		Long: `status shows the state, and for each class its share of CPU time and how long
its tasks waited for a CPU: since the scheduler was attached, or with
--interval during that time from now.`,
		Example: `  rota status
  rota status --interval 1s -v
  rota status --json`,
		Args: atMost(0),
	}
	socket := addSocket(c)
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "show each CPU and the kernel's events")
	c.Flags().DurationVarP(&interval, "interval", "i", 0, "measure from now for this long, as 1s")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if interval != 0 && (interval < leastStatus || interval > time.Hour) {
			return fmt.Errorf("rota status: --interval %v: must be 0 or %v..1h", interval, leastStatus)
		}
		status, err := measure(c.Context(), api.NewClient(*socket), interval)
		switch {
		case err != nil:
			return err
		case wantJSON(c):
			return writeJSON(c, status)
		}
		return writeStatus(c.OutOrStdout(), status, verbose)
	}
	return c
}

// measure asks once, or twice with interval between.
func measure(ctx context.Context, client *api.Client, interval time.Duration) (api.Status, error) {
	earlier, err := client.Status(ctx)
	if err != nil || interval == 0 {
		return earlier, err
	}
	select {
	case <-ctx.Done():
		return earlier, ctx.Err()
	case <-time.After(interval):
	}
	later, err := client.Status(ctx)
	return api.Since(earlier, later), err
}

func writeStatus(w io.Writer, s api.Status, verbose bool) error {
	t := table(w)
	fmt.Fprintf(t, "state\t%s\n", stateWords(s))
	fmt.Fprintf(t, "version\t%s, PID %d, up %s\n", safe(s.Version), s.PID, seconds(s.UptimeSeconds))
	fmt.Fprintf(t, "kernel\t%s\n", safe(s.Kernel))
	fmt.Fprintf(t, "configuration\t%s\n", configWords(s.Config))
	if s.LastExit != nil {
		fmt.Fprintf(t, "last exit\t%s, %s\n", s.LastExit.Time.Format(time.RFC3339), safe(exitWords(*s.LastExit)))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, f := range s.Config.Refused {
		fmt.Fprintf(w, "refused: %s\n", safe(f.String()))
	}
	if len(s.Classes) > 0 {
		fmt.Fprintln(w)
		if err := writeShares(w, s.Classes); err != nil {
			return err
		}
	}
	writeOwners(w, s.Classes)
	writeFunctions(w, s.Functions)
	writePaces(w, s)
	if !verbose {
		return nil
	}
	return writeDetails(w, s)
}

// writeOwners says which CPUs belong to classes, and which class lacks some.
func writeOwners(w io.Writer, classes []api.Class) {
	for _, c := range classes {
		if len(c.CPUs) == 0 && c.CPUsNote == "" {
			continue
		}
		words := "no CPUs of its own"
		if len(c.CPUs) > 0 {
			words = "CPUs " + cpulist.String(c.CPUs)
		}
		switch {
		case c.CPUsLentAfterMicros > 0:
			words += fmt.Sprintf(", lent after %v without a task of the class", time.Duration(c.CPUsLentAfterMicros)*time.Microsecond)
			if c.CPUsReturned > 0 {
				words += fmt.Sprintf(", came back %d times, %d before they were wanted", c.CPUsReturned, c.CPUsExpected)
			}
		case c.CPUsLent:
			words += ", lent while idle"
		}
		if c.CPUsNote != "" {
			words += ": " + safe(c.CPUsNote)
		}
		fmt.Fprintf(w, "class %s has %s\n", safe(c.Name), words)
	}
}

// writePaces says what frequencies do to the classes, where that counts.
func writePaces(w io.Writer, s api.Status) {
	switch {
	case s.Frequency.Mode == "off" || s.Frequency.Mode == "":
		return
	case s.Frequency.Note != "" && !slices.ContainsFunc(s.CPUs, func(c api.CPU) bool { return c.SpeedPercent > 0 }):
		fmt.Fprintf(w, "frequency fairness: time counts as it is: %s\n", safe(s.Frequency.Note))
		return
	case s.Frequency.Note != "":
		fmt.Fprintf(w, "frequency fairness: where no speed is known time counts as it is: %s\n", safe(s.Frequency.Note))
	}
	writeCounters(w, s.Frequency)
	for _, c := range s.Classes {
		if c.RuntimeMicros == 0 {
			continue
		}
		words := "memory bound"
		if c.MemoryBoundCounted {
			words += ", as counted"
		}
		fmt.Fprintf(w, "class %s gets on at %.1f%% of full speed (%.0f%% %s): %.1f%% of all progress\n", safe(c.Name),
			100*float64(c.ProgressMicros)/float64(c.RuntimeMicros), c.MemoryBoundPercent, words, c.ProgressSharePercent)
	}
}

// writeCounters says what counts how much tasks wait for memory, or why nothing does.
func writeCounters(w io.Writer, f api.Frequency) {
	switch {
	case f.Counters != "" && f.CountersNote != "":
		fmt.Fprintf(w, "counters: %s, not in use: %s\n", safe(f.Counters), safe(f.CountersNote))
	case f.Counters != "":
		fmt.Fprintf(w, "counters: %s\n", safe(f.Counters))
	case f.CountersNote != "":
		fmt.Fprintf(w, "counters: none, what waits for memory is as declared: %s\n", safe(f.CountersNote))
	}
}

// writeFunctions says how many tasks execute the functions of the rules.
func writeFunctions(w io.Writer, functions []api.Function) {
	for _, f := range functions {
		words := plural(f.Tasks, "task") + " lately"
		if f.Note != "" {
			words += ": " + safe(f.Note)
		}
		fmt.Fprintf(w, "function %s: %s\n", safe(f.Name), words)
	}
}

func stateWords(s api.Status) string {
	words := safe(string(s.State))
	if s.State == api.Running {
		words += " for " + seconds(s.AttachedSeconds)
	}
	if s.Restarts > 0 {
		words += ", loaded again " + plural(s.Restarts, "time")
	}
	if s.KernelState != "" {
		words += ", sched_ext " + safe(s.KernelState)
	}
	if s.Reason != "" {
		words += ": " + safe(s.Reason)
	}
	return words
}

func configWords(c api.Config) string {
	words := fmt.Sprintf("%s, %s, in force since %s", sourceWords(c.Path), plural(c.Rules, "rule"), c.Loaded.Format(time.RFC3339))
	if len(c.Refused) > 0 {
		words += "; the newer file is refused"
	}
	return words
}

func exitWords(e api.Exit) string {
	if e.Message == "" || e.Message == e.Reason {
		return e.Reason
	}
	return e.Reason + ": " + e.Message
}

func writeShares(w io.Writer, classes []api.Class) error {
	rows := [][]string{{"class", "tier", "tasks", "cpu", "wait p50", "p99", "max", "preempts", "cap hits", "rescues"}}
	for _, c := range classes {
		rows = append(rows, []string{
			safe(c.Name), safe(c.Tier), number(c.Tasks), fmt.Sprintf("%.1f%%", c.SharePercent),
			micros(c.WaitP50Micros), micros(c.WaitP99Micros), micros(c.WaitMaxMicros),
			number(c.Preempting), number(c.CapHits), number(c.Rescues),
		})
	}
	return writeColumns(w, 2, rows)
}

func writeDetails(w io.Writer, s api.Status) error {
	rows := [][]string{{"cpu", "priority", "fair", "background", "direct", "handed", "preempted", "steals", "rescues", "cap hits", "limited"}}
	for _, c := range s.CPUs {
		rows = append(rows, []string{
			strconv.Itoa(c.CPU), number(c.Priority), number(c.Fair), number(c.Background), number(c.Direct),
			number(c.Handed), number(c.Preemptions), number(c.Steals), number(c.Rescues), number(c.CapHits), number(c.Limited),
		})
	}
	fmt.Fprintln(w)
	if err := writeColumns(w, 0, rows); err != nil {
		return err
	}
	if err := writeOthers(w, s.CPUs); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := writeColumns(w, 0, boostRows(s.Boosts)); err != nil {
		return err
	}
	fmt.Fprintln(w)
	rows = [][]string{{"classes: by the daemon", "known"}, {number(s.Answers.Asked), number(s.Answers.Known)}}
	if err := writeColumns(w, 0, rows); err != nil {
		return err
	}
	rows = [][]string{{"kernel event", "count"}}
	for _, name := range slices.Sorted(maps.Keys(s.KernelEvents)) {
		rows = append(rows, []string{safe(name), strconv.FormatInt(s.KernelEvents[name], 10)})
	}
	fmt.Fprintln(w)
	return writeColumns(w, 1, rows)
}

// writeOthers says what tasks had of CPUs on which they do not belong.
func writeOthers(w io.Writer, cpus []api.CPU) error {
	rows := [][]string{{"cpu", "bound", "guests", "stray", "owner"}}
	for _, c := range cpus {
		if c.Owner == "" && c.BoundMicros+c.GuestMicros+c.StrayMicros == 0 {
			continue
		}
		rows = append(rows, []string{
			strconv.Itoa(c.CPU), micros(float64(c.BoundMicros)), micros(float64(c.GuestMicros)), micros(float64(c.StrayMicros)),
			cmp.Or(safe(c.Owner), "-"),
		})
	}
	if len(rows) == 1 {
		return nil
	}
	fmt.Fprintln(w, "\nCPU time of others on CPUs that belong, or belonged, to a class")
	return writeColumns(w, 0, rows)
}

func boostRows(b api.Boosts) [][]string {
	return [][]string{
		{"boosts: futex", "locks", "wakeups", "binder", "chained", "fetched", "ended", "spent", "cpu time"},
		{
			number(b.Futex), number(b.Locks), number(b.Wakeups), number(b.Binder), number(b.Chained),
			number(b.Fetched), number(b.Ended), number(b.Spent), micros(float64(b.RuntimeMicros)),
		},
	}
}

// micros shows microseconds in the unit that a person would choose.
func micros(us float64) string {
	switch {
	case us >= 1e6:
		return fmt.Sprintf("%.2fs", us/1e6)
	case us >= 1e3:
		return fmt.Sprintf("%.2fms", us/1e3)
	}
	return fmt.Sprintf("%.0fus", us)
}

func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
