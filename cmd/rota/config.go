package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"rota/internal/class"
	"rota/internal/config"
)

func configCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:     "config",
		Short:   "Work with configuration files",
		Example: `  rota config check rota.yaml`,
	}, configCheckCommand())
}

func configCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE]",
		Short: "Tell what is wrong with a configuration file",
		Long: `check reads a file as "rota run" would and prints every fault with its line
and what to do. It needs neither a daemon nor privileges. Without FILE it reads
` + defaultConfig + `, which must be there, though "rota run" can do without.

Exit code: 0 the file is good; 1 it is not.`,
		Example: `  rota config check
  rota config check rota.yaml --json`,
		Args: atMost(1),
		RunE: func(c *cobra.Command, args []string) error {
			path := defaultConfig
			if len(args) > 0 {
				path = args[0]
			}
			checked, err := config.Read(path, class.Check)
			if wantJSON(c) {
				return writeVerdict(c, path, checked, err)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: good: %s, %s\n", path, plural(len(checked.Classes), "class"), plural(len(checked.Rules), "rule"))
			return err
		},
	}
}

type fileVerdict struct {
	File    string         `json:"file"`
	Good    bool           `json:"good"`
	Classes int            `json:"classes"`
	Rules   int            `json:"rules"`
	Faults  []config.Fault `json:"faults"`
	More    int            `json:"more"` // faults beyond those listed
}

func writeVerdict(c *cobra.Command, path string, checked *config.Config, err error) error {
	v := fileVerdict{File: path, Good: err == nil, Faults: []config.Fault{}}
	var faults *config.Faults
	var unread config.Fault
	switch {
	case errors.As(err, &faults):
		v.Faults, v.More = faults.List, faults.More
	case errors.As(err, &unread):
		v.Faults = []config.Fault{unread}
	case err != nil:
		return err
	default:
		v.Classes, v.Rules = len(checked.Classes), len(checked.Rules)
	}
	if err := writeJSON(c, v); err != nil {
		return err
	}
	if !v.Good {
		return &exitError{code: exitFailed}
	}
	return nil
}
