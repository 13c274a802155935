// Package docs holds the tests of the documents that need more than reading
// them: the examples of a configuration are configurations.
package docs

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"rota/internal/class"
	"rota/internal/config"
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
