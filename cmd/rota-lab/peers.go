package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"rota/lab"
	"rota/lab/peers"
)

func peersCommand() *cobra.Command {
	var asJSON bool
	list := func(c *cobra.Command, names []string) error {
		store, err := openPeers()
		if err != nil {
			return err
		}
		return listPeers(c, store, names, asJSON)
	}
	c := &cobra.Command{
		Use:   "peers",
		Short: "List the schedulers that rota is compared with, and whether they are built",
		Long: `List the schedulers that rota is compared with, and whether they are built.

Peers are published Rust crates with pinned versions. Once built, a peer is
named like any other scheduler: rota-lab run wake --sched kernel,rota,bpfland`,
		Example: "  rota-lab peers\n  rota-lab peers build bpfland",
		Args:    cobra.NoArgs,
		RunE:    list,
	}
	c.PersistentFlags().BoolVar(&asJSON, "json", false, "print the list as JSON")
	c.AddCommand(&cobra.Command{
		Use:     "list [PEER...]",
		Short:   "List peers: name, version, whether it is built, path",
		Example: "  rota-lab peers list --json",
		RunE:    list,
	}, buildPeersCommand(list))
	return c
}

func buildPeersCommand(list func(*cobra.Command, []string) error) *cobra.Command {
	var jobs int
	c := &cobra.Command{
		Use:   "build [PEER...]",
		Short: "Build peers with cargo into the cache (all when none is named)",
		Long: `Build peers with cargo into the cache (all when none is named).

What is there in the wanted version is not built again. Nothing is installed on
the machine, and nothing half-built is kept. Progress goes to standard error.`,
		Example: "  rota-lab peers build bpfland lavd",
		RunE: func(c *cobra.Command, names []string) error {
			if jobs < 0 {
				return fmt.Errorf("--jobs %d: must be 1 or more, or 0 for cargo's own choice", jobs)
			}
			store, err := openPeers()
			if err != nil {
				return err
			}
			wanted, err := store.Find(names...)
			if err != nil {
				return err
			}
			store.Jobs = jobs
			if err := store.Build(c.Context(), wanted); err != nil {
				return err
			}
			return list(c, names)
		},
	}
	c.Flags().IntVar(&jobs, "jobs", 0, "compilers that run at once (default: one per CPU)")
	return c
}

func openPeers() (peers.Store, error) {
	dir, err := peers.DefaultDir()
	if err != nil {
		return peers.Store{}, err
	}
	all, err := peers.Parse(lab.PeersLock)
	return peers.Store{Dir: dir, Peers: all, Output: os.Stderr, Log: say}, err
}

// peerLine is what is said about one peer.
type peerLine struct {
	Name    string `json:"name"`
	Crate   string `json:"crate"`
	Version string `json:"version"`
	Built   bool   `json:"built"`
	Path    string `json:"path,omitempty"` // of the program, when it is built
}

func listPeers(c *cobra.Command, s peers.Store, names []string, asJSON bool) error {
	chosen, err := s.Find(names...)
	if err != nil {
		return err
	}
	var lines []peerLine
	for _, p := range chosen {
		line := peerLine{Name: p.Name, Crate: p.Crate, Version: p.Version, Built: s.Built(p)}
		if line.Built {
			line.Path = s.Program(p)
		}
		lines = append(lines, line)
	}
	if asJSON {
		out := json.NewEncoder(c.OutOrStdout())
		out.SetIndent("", "  ")
		return out.Encode(lines)
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PEER\tCRATE\tVERSION\tBUILT\tPATH")
	for _, line := range lines {
		built, path := "no", "-"
		if line.Built {
			built, path = "yes", line.Path
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", line.Name, line.Crate, line.Version, built, path)
	}
	return w.Flush()
}

// schedulerCommand turns what --sched took into what a guest starts and what a
// result calls it. Only peers are something else than they are called.
func schedulerCommand(scheduler string) (command, shown string, err error) {
	store, err := openPeers()
	if err != nil {
		return "", "", err
	}
	command, shown, known, err := store.Command(scheduler)
	if err != nil || known {
		return command, shown, err
	}
	return scheduler, scheduler, nil
}

// peerNames are the names that --sched takes beside kernel and rota.
func peerNames() []string {
	all, err := peers.Parse(lab.PeersLock)
	if err != nil {
		return nil // whoever uses a peer is told
	}
	return peers.Store{Peers: all}.Names()
}

// schedulerWords lists what --sched takes, for an error.
func schedulerWords() string {
	return strings.Join(append([]string{"kernel", "rota"}, peerNames()...), ", ") + ", or a path such as ./scx_simple"
}
