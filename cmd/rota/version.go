package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: `  rota version --json`,
		Args:    atMost(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if wantJSON(c) {
				return writeJSON(c, map[string]string{"version": version, "go": runtime.Version(), "arch": runtime.GOARCH})
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "rota %s (%s, linux/%s)\n", version, runtime.Version(), runtime.GOARCH)
			return err
		},
	}
}
