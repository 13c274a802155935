// Package docs holds the tests of what the documents say about the code: the
// examples of a configuration are configurations, values and names are those
// of the program.
package docs

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"rota/internal/class"
	"rota/internal/config"
	"rota/lab/scenario"
)

var example = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

func TestExamplesOfConfiguration(t *testing.T) {
	found := 0
	err := fs.WalkDir(os.DirFS(".."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".md") {
			return err
		}
		text, err := os.ReadFile("../" + name)
		for _, m := range example.FindAllSubmatch(text, -1) {
			found++
			if _, err := config.Parse(name, m[1], class.Check); err != nil {
				t.Errorf("%v, in:\n%s", err, m[1])
			}
		}
		return err
	})
	if err != nil || found == 0 {
		t.Errorf("%d examples, error %v", found, err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// us writes a duration as the configuration does.
func us(d time.Duration) string { return strings.Replace(d.String(), "µs", "us", 1) }

func TestReferenceHasTheProgramsValues(t *testing.T) {
	text := read(t, "guide/configuration.md")
	for _, row := range []string{
		fmt.Sprintf("| `slice` | `%dus` | `%s`..`%s` |", config.DefaultSlice.Microseconds(), us(config.MinSlice), us(config.MaxSlice)),
		fmt.Sprintf("| `starvationBound` | `%s` | `%s`..`%s` |", us(config.DefaultStarvationBound), us(config.MinStarvationBound), us(config.MaxStarvationBound)),
		fmt.Sprintf("| `weight` | `%d` | %d..%d |", config.DefaultWeight, config.MinWeight, config.MaxWeight),
		fmt.Sprintf("| `cap` | `%d%%` in tier priority |", config.DefaultCap/10),
		fmt.Sprintf("At most %d can be defined", config.MaxClasses-1),
		fmt.Sprintf("At most %d,%03d rules", config.MaxRules/1000, config.MaxRules%1000),
		fmt.Sprintf("files above %d MB", config.MaxFile>>20),
		"The name `" + config.ReservedClass + "` is taken",
	} {
		if !strings.Contains(text, row) {
			t.Errorf("guide/configuration.md: does not say %q", row)
		}
	}
}

var scenarioRow = regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| .*\\?")

func TestGuideListsTheScenarios(t *testing.T) {
	var listed, there []string
	for _, m := range scenarioRow.FindAllStringSubmatch(read(t, "guide/lab.md"), -1) {
		listed = append(listed, m[1])
	}
	for _, s := range scenario.All() {
		there = append(there, s.Name)
	}
	if fmt.Sprint(listed) != fmt.Sprint(there) {
		t.Errorf("guide/lab.md lists the scenarios %v, there are %v", listed, there)
	}
}
