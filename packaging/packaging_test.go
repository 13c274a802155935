// Package packaging holds the tests of what is shipped around the program: the
// unit of systemd, the example of a configuration and the Debian package.
package packaging

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"rota/internal/class"
	"rota/internal/config"
)

// tool is a program that `make setup` installs; a machine without it is told
// so, and not failed.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed: run make setup", name)
	}
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestUnitIsUnderstoodBySystemd(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "rota")
	unit := filepath.Join(dir, "rota.service")
	text := strings.ReplaceAll(read(t, "systemd/rota.service"), "/usr/bin/rota", program)
	for name, text := range map[string]string{program: "#!/bin/sh\n", unit: text} {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	out := tool(t, "systemd-analyze", "verify", "--man=no", unit)
	for line := range strings.Lines(out) {
		// Other units of the machine and our own mode bits are not the matter.
		if strings.Contains(line, "rota.service") && !strings.Contains(line, "executable") {
			t.Error(line)
		}
	}
}

func TestUnitKeepsItsPromises(t *testing.T) {
	unit := read(t, "systemd/rota.service")
	for _, line := range []string{
		"Type=notify",
		"Restart=on-failure",
		"RestartPreventExitStatus=78", // an unfit kernel stays unfit
		"RuntimeDirectory=rota",       // of api.DefaultSocket
	} {
		if !strings.Contains(unit, "\n"+line+"\n") {
			t.Errorf("rota.service: no line %q", line)
		}
	}
	// These hide what rota has to see.
	for _, key := range []string{"ProtectKernelTunables", "ProtectProc", "ProcSubset", "PrivateUsers", "PrivateNetwork"} {
		if strings.Contains(unit, "\n"+key+"=") {
			t.Errorf("rota.service: %s keeps rota from working", key)
		}
	}
}

var commented = regexp.MustCompile(`(?m)^#  `)

func TestExampleConfiguration(t *testing.T) {
	shipped := read(t, "rota.yaml")
	open := strings.NewReplacer("classes: []", "classes:", "rules: []", "rules:").Replace(shipped)
	for name, test := range map[string]struct {
		text           string
		classes, rules int
	}{
		"as shipped":             {shipped, 1, 0},
		"with its examples open": {commented.ReplaceAllString(open, "  "), 3, 2},
	} {
		c, err := config.Parse("rota.yaml", []byte(test.text), class.Check)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(c.Classes) != test.classes || len(c.Rules) != test.rules {
			t.Errorf("%s: %d classes and %d rules, want %d and %d", name, len(c.Classes), len(c.Rules), test.classes, test.rules)
		}
		if d := config.Default(); c.Slice != d.Slice || c.StarvationBound != d.StarvationBound {
			t.Errorf("%s: slice %v and bound %v are not the defaults, as the text says they are", name, c.Slice, c.StarvationBound)
		}
	}
}

func TestDebianPackage(t *testing.T) {
	program := filepath.Join(t.TempDir(), "rota")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{
		"v1.2":              "1.2",
		"v1.2-3-gabc1234":   "1.2+3.gabc1234",
		"abc1234-dirty":     "0~git.abc1234.dirty",
		"v1.2-0-gabc-dirty": "1.2+0.gabc.dirty",
	} {
		t.Run(version, func(t *testing.T) {
			pkg := strings.TrimSpace(tool(t, "debian/build", program, "amd64", version, t.TempDir()))
			if got := strings.TrimSpace(tool(t, "dpkg-deb", "-f", pkg, "Version")); got != want {
				t.Errorf("version %q, want %q", got, want)
			}
			list := tool(t, "dpkg-deb", "-c", pkg)
			for _, file := range []string{"/usr/bin/rota", "/etc/rota/rota.yaml", "/usr/lib/systemd/system/rota.service", "/usr/share/doc/rota/LICENSE", "/usr/share/doc/rota/examples/desktop.yaml",
				"/usr/share/doc/rota/docs/guide/configuration.md", "/usr/share/doc/rota/docs/decisions/0001-record-decisions.md", "/usr/share/doc/rota/internal/api/openapi.yaml"} {
				if !strings.Contains(list, " ."+file+"\n") {
					t.Errorf("%s is missing in:\n%s", file, list)
				}
			}
			linksResolve(t, pkg)
		})
	}
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

// linksResolve: whatever a document of the package links to is in the package.
func linksResolve(t *testing.T, pkg string) {
	t.Helper()
	root := t.TempDir()
	tool(t, "dpkg-deb", "-x", pkg, root)
	links := 0
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".md") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", strings.TrimPrefix(path, root), m[1])
			}
		}
		return err
	})
	if err != nil || links == 0 {
		t.Errorf("%d links, error %v", links, err)
	}
}
