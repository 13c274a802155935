package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"rota/internal/api"
)

func classCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:     "class",
		Short:   "Look at classes",
		Example: `  rota class list`,
	}, classListCommand())
}

func classListCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List the classes in force and what they promise",
		Example: `  rota class list
  rota class list --json`,
		Args: cobra.NoArgs,
	}
	socket := addSocket(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		answer, err := api.NewClient(*socket).Classes(c.Context())
		switch {
		case err != nil:
			return err
		case wantJSON(c):
			return writeJSON(c, answer)
		}
		return writeClasses(c.OutOrStdout(), answer.Classes)
	}
	return c
}

func writeClasses(w io.Writer, classes []api.Class) error {
	t := aligned(w)
	fmt.Fprintln(t, "class\ttier\tweight\tslice\tcap\trules\ttasks\t")
	for _, c := range classes {
		most := "-"
		if c.CapPercent > 0 {
			most = fmt.Sprintf("%g%%", c.CapPercent)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%d\t%d\t\n", c.Name, c.Tier, c.Weight, micros(float64(c.SliceMicros)), most, c.Rules, c.Tasks)
	}
	return t.Flush()
}
