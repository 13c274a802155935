package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"rota/internal/api"
)

func reloadCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "reload",
		Short: "Make the daemon read its configuration again",
		Long: `reload puts the file in force for running tasks, too, without detaching the
scheduler. A file with faults is refused, and everything stays as it was.`,
		Example: `  rota config check /etc/rota/rota.yaml && rota reload`,
		Args:    atMost(0),
	}
	socket := addSocket(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		answer, err := api.NewClient(*socket).Reload(c.Context())
		var refused *api.Error
		switch {
		case errors.As(err, &refused) && wantJSON(c):
			return errors.Join(writeJSON(c, refused), &exitError{code: exitFailed})
		case err != nil:
			return err
		case wantJSON(c):
			return writeJSON(c, answer)
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %s and %s in force; %s classified\n",
			sourceWords(answer.Config.Path), plural(answer.Classes, "class"), plural(answer.Config.Rules, "rule"), plural(answer.Tasks, "task"))
		return err
	}
	return c
}

func sourceWords(path string) string {
	if path == "" {
		return "built-in defaults"
	}
	return safe(path)
}
