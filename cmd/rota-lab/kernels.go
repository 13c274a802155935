package main

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"text/tabwriter"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"rota/lab/kernels"
)

func kernelsCommand() *cobra.Command {
	var mirror, keyring string
	store := func() (kernels.Store, error) {
		if mirror == "" {
			return openStore(nil)
		}
		return openStore([]kernels.Mirror{{URI: mirror, Keyring: keyring}})
	}
	c := &cobra.Command{
		Use:     "kernels",
		Short:   "List the kernels of the lab and whether they are in the cache",
		Example: "  rota-lab kernels\n  rota-lab kernels fetch 6.18 7.2",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			s, err := store()
			if err != nil {
				return err
			}
			return listKernels(c, s)
		},
	}
	c.PersistentFlags().StringVar(&mirror, "mirror", "", "Debian archive to fetch from instead of the machine's own apt sources")
	c.PersistentFlags().StringVar(&keyring, "keyring", "/usr/share/keyrings/debian-archive-keyring.gpg", "keyring that --mirror is checked with")
	c.AddCommand(fetchCommand(store), updateCommand(store))
	return c
}

func listKernels(c *cobra.Command, s kernels.Store) error {
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ROW\tVERSION\tSUITE\tFLAVOUR\tSIZE\tCACHE\tREMARK")
	for _, r := range s.Lock.Rows {
		state, remark := "-", r.Comment
		if s.Cached(r) {
			state = "cached"
		}
		if r.Unfit != "" {
			remark = "unfit: " + r.Unfit
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d MB\t%s\t%s\n", r.Name, r.Packages[0].Version, r.Suite, r.Flavour, r.Bytes()>>20, state, remark)
	}
	return w.Flush()
}

func fetchCommand(store func() (kernels.Store, error)) *cobra.Command {
	return &cobra.Command{
		Use:     "fetch [ROW...]",
		Short:   "Fetch kernels into the cache (all that are fit for scenarios when none is named)",
		Example: "  rota-lab kernels fetch 6.18",
		RunE: func(c *cobra.Command, args []string) error {
			s, err := store()
			if err != nil {
				return err
			}
			var failed []error
			for _, name := range rowNames(s, args) {
				k, err := s.Get(c.Context(), name)
				if err != nil {
					failed = append(failed, err)
					continue
				}
				fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", name, k.Release)
				if k.Note != "" {
					say("%s", k.Note)
				}
			}
			return errors.Join(failed...)
		},
	}
}

func updateCommand(store func() (kernels.Store, error)) *cobra.Command {
	return &cobra.Command{
		Use:     "update [ROW...]",
		Short:   "Pin the newest kernel of each series in lab/kernels.lock",
		Example: "  rota-lab kernels update 7.2",
		RunE: func(c *cobra.Command, args []string) error {
			path := lockFile()
			if path == "" {
				return errors.New("lab/kernels.lock: not found beside this program; run bin/rota-lab of a checkout")
			}
			s, err := store()
			if err != nil {
				return err
			}
			return update(c, s, path, rowNames(s, args))
		},
	}
}

func update(c *cobra.Command, s kernels.Store, path string, names []string) error {
	for _, name := range names {
		i := s.Lock.Index(name)
		if i < 0 {
			return fmt.Errorf("kernel %q: not a row of %s", name, path)
		}
		row, changed, err := s.Update(c.Context(), s.Lock.Rows[i])
		if err != nil {
			return err
		}
		if !changed {
			fmt.Fprintf(c.OutOrStdout(), "%s: %s is the newest\n", name, row.Packages[0].Version)
			continue
		}
		fmt.Fprintf(c.OutOrStdout(), "%s: now %s\n", name, row.Packages[0].Version)
		s.Lock.Rows[i] = row
	}
	var text bytes.Buffer
	if err := s.Lock.Write(&text); err != nil {
		return err
	}
	return renameio.WriteFile(path, text.Bytes(), 0o644, renameio.WithTempDir(filepath.Dir(path)))
}

// rowNames are the rows that were named, or all that scenarios may use.
func rowNames(s kernels.Store, args []string) []string {
	if len(args) > 0 {
		return args
	}
	var names []string
	for _, r := range s.Lock.Rows {
		if r.Unfit == "" {
			names = append(names, r.Name)
		}
	}
	return names
}
