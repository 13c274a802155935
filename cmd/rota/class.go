package main

import (
	"fmt"
	"io"
	"strconv"

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
		Args: atMost(0),
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
	rows := [][]string{{"class", "tier", "weight", "slice", "cap", "rules", "tasks"}}
	for _, c := range classes {
		most := "-"
		if c.CapPercent > 0 {
			most = fmt.Sprintf("%g%%", c.CapPercent)
		}
		rows = append(rows, []string{safe(c.Name), safe(c.Tier), number(uint64(c.Weight)), micros(float64(c.SliceMicros)), most, strconv.Itoa(c.Rules), number(c.Tasks)})
	}
	return writeColumns(w, 2, rows)
}
