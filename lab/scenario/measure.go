package scenario

import (
	"fmt"

	"rota/lab/guest"
	"rota/lab/scenario/output"
)

// measured runs one program of the measurement and gives what it printed.
func measured(g *guest.Guest, cpus, path string, args ...string) (string, error) {
	out, err := g.Run(chain(g, guest.Cmd{Path: path, Args: args, CPUs: cpus}))
	return out.Stdout + out.Stderr, err
}

// emit reports a figure unless one of the errors is set.
func emit(g *guest.Guest, name string, value float64, errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	g.Metric(name, value)
	return nil
}

// measureWaits runs a load that prints how long it waited, and emits that: as NAME_mean_us and
// NAME_max_us what the load calls by its own name.
func measureWaits(g *guest.Guest, name string, load guest.Cmd) error {
	out, err := g.Run(load)
	if err != nil {
		return err
	}
	for _, figure := range []string{"_mean_us", "_max_us"} {
		value, err := output.Figure(out.Stdout, load.Path+figure)
		if err := emit(g, name+figure, value, err); err != nil {
			return err
		}
	}
	return nil
}
