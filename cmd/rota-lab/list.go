package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"rota/lab/scenario"
)

func listCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the scenarios, the questions they answer and their rows",
		Example: "  rota-lab list",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "SCENARIO\tQUESTION\tROWS")
			for _, s := range scenario.All() {
				fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, s.Question, rowNamesOf(s.Rows))
			}
			return w.Flush()
		},
	}
}
