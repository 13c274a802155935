package guest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// featuresPath is where the kernel has the switches of its own scheduler.
const featuresPath = "/sys/kernel/debug/sched/features"

// setFeatures sets the row's features of the kernel's own scheduler, and reads
// them back: the kernel knows other ones in every version.
func (g *Guest) setFeatures(path string) error {
	for _, feature := range g.Row.Features {
		err := writeTo(path, feature)
		if errors.Is(err, unix.EINVAL) {
			return g.noFeature(feature)
		}
		if err != nil {
			return fmt.Errorf("row %q: set feature %q: %w", g.Row.Name, feature, err)
		}
	}
	if len(g.Row.Features) == 0 {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("row %q: read the features back: %w", g.Row.Name, err)
	}
	for _, feature := range g.Row.Features {
		if !slices.Contains(strings.Fields(string(text)), feature) {
			return g.noFeature(feature)
		}
	}
	g.Event("features", strings.TrimSpace(string(text)))
	return nil
}

func (g *Guest) noFeature(feature string) error {
	return fmt.Errorf("row %q: feature %q: the scheduler of kernel %s has none of this name", g.Row.Name, feature, g.Release)
}

// writeTo writes a word to a file that is there.
func writeTo(path, word string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(word)
	return errors.Join(err, f.Close())
}
