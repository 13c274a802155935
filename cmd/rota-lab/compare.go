package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"rota/lab/report"
	"rota/lab/scenario"
)

func compareCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "compare A.json B.json",
		Short: "Say how the results of one file differ from those of another",
		Long: `Say how the results of one file differ from those of another.

It fails when runs failed in the second file that did not fail in the first.`,
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
	return readFile("results", path, report.Read)
}

// readFile reads a file of a kind; the error names both.
func readFile[T any](kind, path string, read func(io.Reader) (T, error)) (T, error) {
	f, err := os.Open(path)
	if err != nil {
		var none T
		return none, fmt.Errorf("%s: %w", kind, err)
	}
	defer f.Close()
	content, err := read(f)
	if err != nil {
		return content, fmt.Errorf("%s %s: %w", kind, path, err)
	}
	return content, nil
}
