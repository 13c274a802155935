package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"

	"rota/internal/api"
)

// wantJSON tells whether --json was given.
func wantJSON(c *cobra.Command) bool {
	yes, err := c.Flags().GetBool("json")
	return err == nil && yes
}

func writeJSON(c *cobra.Command, v any) error {
	e := json.NewEncoder(c.OutOrStdout())
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// table aligns columns; the caller flushes it.
func table(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 8, 2, ' ', 0) }

// writeColumns writes rows, of which the first is the header. The first words
// columns are text and stand left; the others are numbers and stand right.
func writeColumns(w io.Writer, words int, rows [][]string) error {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			width := widths[i]
			if i < words {
				width = -width
			}
			fmt.Fprintf(&line, "%*s  ", width, cell)
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// number is a counter as text.
func number(n uint64) string { return strconv.FormatUint(n, 10) }

// plural is a number of things: 1 time, 2 times, 2 classes.
func plural(n int, thing string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(thing, "s"):
		thing += "es"
	default:
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}

// safe shows text from elsewhere without what a terminal would obey.
func safe(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

// addSocket gives a command the flag that says where the daemon listens.
func addSocket(c *cobra.Command) *string {
	return c.Flags().String("socket", api.DefaultSocket, "where the daemon listens")
}

// atMost accepts that many arguments.
func atMost(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > n {
			return fmt.Errorf("%s: one argument too many: %q; see: %s --help", c.CommandPath(), args[n], c.CommandPath())
		}
		return nil
	}
}

// group is a command that only holds others.
func group(c *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	c.SuggestionsMinimumDistance = 2
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		meant := ""
		if list := c.SuggestionsFor(args[0]); len(list) > 0 {
			meant = ": did you mean " + list[0] + "?"
		}
		return fmt.Errorf("%s: unknown command %q%s; see: %s --help", c.CommandPath(), args[0], meant, c.CommandPath())
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	c.AddCommand(commands...)
	return c
}
