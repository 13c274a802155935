package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rota/internal/api"
)

func explainCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "explain PID",
		Short: "Say why a task runs as it does: its class, its level, who waits for it",
		Long: `explain shows each thread of a process, or the one thread whose number it is
given: the class and the rule that gives it, the level at which it runs, for whom it
waits, and who gives it a boost through which chain of waits, for how long.`,
		Example: `  rota explain 4711
  rota explain $(pidof surfaceflinger) --json`,
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s: no PID; see: %s --help", c.CommandPath(), c.CommandPath())
		}
		return atMost(1)(c, args)
	}
	socket := addSocket(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		pid, err := strconv.ParseUint(args[0], 10, 22)
		if err != nil || pid == 0 {
			return fmt.Errorf("%s: %q is not the number of a task; find it with: pidof NAME", c.CommandPath(), args[0])
		}
		answer, err := api.NewClient(*socket).Explain(c.Context(), int(pid))
		switch {
		case err != nil:
			return err
		case wantJSON(c):
			return writeJSON(c, answer)
		}
		for i, t := range answer.Threads {
			if i > 0 {
				fmt.Fprintln(c.OutOrStdout())
			}
			writeThread(c.OutOrStdout(), t)
		}
		return nil
	}
	return c
}

func writeThread(w io.Writer, t api.Thread) {
	fmt.Fprintf(w, "thread %d  %s\n", t.TID, safe(t.Name))
	line := func(what, words string) { fmt.Fprintf(w, "  %-9s  %s\n", what, words) }
	rule := "no rule: the built-in class, or that of the parent"
	if t.Rule != "" {
		rule = "rule at " + safe(t.Rule)
	}
	line("class", fmt.Sprintf("%s, tier %s (%s)", safe(t.Class), t.Tier, rule))
	switch {
	case t.Boosted:
		line("level", fmt.Sprintf("%s: boosted, %s of CPU time so far", safe(t.Level), micros(float64(t.BoostedMicros))))
	case t.Spent:
		line("level", fmt.Sprintf("%s: a boost has used up its time", safe(t.Level)))
	default:
		line("level", "its own")
	}
	if t.Weight == 0 {
		line("weight", "not known before it runs next")
	} else {
		line("weight", fmt.Sprintf("%d (1024: nice 0), slice %s", t.Weight, micros(float64(t.SliceMicros))))
	}
	if t.LagMicros != 0 {
		line("lag", lagWords(t.LagMicros))
	}
	state := fmt.Sprintf("%s, CPU %d", t.State, t.CPU)
	if t.ReadyMicros > 0 {
		state += ", for " + micros(float64(t.ReadyMicros))
	}
	line("state", state)
	if len(t.WaitsFor) > 0 {
		line("waits for", linkWords(t.WaitsFor))
	}
	if t.Calls.Given > 0 {
		line("binder", fmt.Sprintf("answered %d calls of more important tasks, %d of them boosted", t.Calls.Given, t.Calls.Boosted))
	}
	for _, g := range t.Givers {
		line("boost by", fmt.Sprintf("%d %s (class %s) -> %s", g.TID, safe(g.Name), safe(g.Class), linkWords(g.Chain)))
	}
}

// lagWords says on which side of its share a task is: EEVDF chooses among those who are owed.
func lagWords(us int64) string {
	if us > 0 {
		return micros(float64(us)) + ": it is owed so much CPU time"
	}
	return "-" + micros(float64(-us)) + ": it had so much more than its share, and those go first who are owed"
}

// linkWords is a chain: each task with why, and for how long, it is waited for.
func linkWords(chain []api.Link) string {
	var words []string
	for _, l := range chain {
		words = append(words, fmt.Sprintf("%d %s (%s, %s)", l.TID, safe(l.Name), l.Reason, micros(float64(l.AgeMicros))))
	}
	return strings.Join(words, " -> ")
}
