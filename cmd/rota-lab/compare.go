package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"rota/lab/report"
	"rota/lab/scenario"
)

func compareCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "compare A.json B.json",
		Short:   "Say how the results of one file differ from those of another",
		Example: "  rota-lab compare before.json after.json",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := readResults(args[0])
			if err != nil {
				return err
			}
			b, err := readResults(args[1])
			if err != nil {
				return err
			}
			var info report.Info
			if s, known := scenario.Find(a.Scenario); known {
				info = s.Info("")
			}
			return report.Compare(c.OutOrStdout(), a, b, info, report.Style{Color: isTerminal(c.OutOrStdout())})
		},
	}
}

func readResults(path string) (report.Results, error) {
	f, err := os.Open(path)
	if err != nil {
		return report.Results{}, fmt.Errorf("results: %w", err)
	}
	defer f.Close()
	r, err := report.Read(f)
	if err != nil {
		return r, fmt.Errorf("results %s: %w", path, err)
	}
	return r, nil
}
