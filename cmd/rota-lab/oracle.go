package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"rota/lab/oracle"
)

func oracleCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "oracle RECORD",
		Short: "Judge the decisions of a recorded scheduler",
		Long: `oracle reads what rota run --record wrote and replays it against EEVDF as its
authors define it: every task's virtual time and deadline, the virtual time of
every queue, every pick. It says what is wrong, and fails if anything is. What
two CPUs did at the same moment may be written in another order than it
happened in; where that explains a fault it is counted as a race.`,
		Example: `  sudo rota run --record /tmp/rota.record
  rota-lab oracle /tmp/rota.record`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			record, err := readFile("record", args[0], oracle.Read)
			if err != nil {
				return err
			}
			report := oracle.Check(record)
			if asJSON {
				text, err := json.MarshalIndent(report, "", "  ")
				if err != nil {
					return err
				}
				fmt.Fprintln(c.OutOrStdout(), string(text))
			} else {
				fmt.Fprint(c.OutOrStdout(), report)
			}
			if wrong := report.Wrong(); wrong > 0 {
				return fmt.Errorf("%s: %d faults in %d events", args[0], wrong, report.Events)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return c
}
