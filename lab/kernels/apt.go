package kernels

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Mirror is a Debian archive and the keyring that its release files are
// checked with.
type Mirror struct {
	URI     string
	Keyring string
}

// debianKeyring is where the package debian-archive-keyring puts it.
const debianKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// apt is a private state of apt below the cache: nothing of the machine's
// own state is read, but its sources, and nothing is written.
type apt struct {
	dir  string
	arch string // of the packages
}

// apts are the states that a row's packages come from, by suite.
type apts map[string]*apt

// openApts opens a state for each suite of the row.
func (s Store) openApts(ctx context.Context, row Row) (apts, error) {
	all := apts{}
	for _, p := range row.Packages {
		suite := row.suiteOf(p)
		if all[suite] != nil {
			continue
		}
		a, err := s.openApt(ctx, suite, row.Arch().Name)
		if err != nil {
			return nil, err
		}
		all[suite] = a
	}
	return all, nil
}

// openApt makes the private state and reads the suite's package lists.
func (s Store) openApt(ctx context.Context, suite, arch string) (*apt, error) {
	mirrors := s.Mirrors
	if mirrors == nil {
		var err error
		if mirrors, err = machineMirrors(ctx); err != nil {
			return nil, err
		}
	}
	a := &apt{dir: filepath.Join(s.Dir, "apt", suite+"_"+arch), arch: arch}
	for _, d := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(a.dir, d), 0o755); err != nil {
			return nil, fmt.Errorf("kernel cache: %w", err)
		}
	}
	s.log("reading the package list of %s for %s", suite, arch)
	var failed []error
	for _, m := range mirrors { // not each need have every suite
		err := a.update(ctx, m, suite)
		if err == nil {
			return a, nil
		}
		failed = append(failed, err)
	}
	return nil, fmt.Errorf("read the package list of suite %s: %w", suite, errors.Join(failed...))
}

func (a *apt) update(ctx context.Context, m Mirror, suite string) error {
	if !isFile(m.Keyring) {
		return fmt.Errorf("%s is missing; install the package debian-archive-keyring", m.Keyring)
	}
	line := fmt.Sprintf("deb [arch=%s signed-by=%s] %s %s main\n", a.arch, m.Keyring, m.URI, suite)
	if err := os.WriteFile(filepath.Join(a.dir, "sources.list"), []byte(line), 0o644); err != nil {
		return fmt.Errorf("kernel cache: %w", err)
	}
	_, err := a.run(ctx, "apt-get", "update", "--error-on=any")
	return err
}

// machineMirrors finds the Debian archives among the machine's apt sources,
// in whichever form they are written: apt itself is asked.
func machineMirrors(ctx context.Context) ([]Mirror, error) {
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages").Output()
	if err != nil {
		return nil, fmt.Errorf("apt-get indextargets: %w; fetching kernels needs apt 1.2 or newer, or give --kernel the path of a bzImage", err)
	}
	uris := debianURIs(string(out))
	if len(uris) == 0 {
		return nil, errors.New("no Debian archive among this machine's apt sources; name one with --mirror URI (and install the package debian-archive-keyring), or give --kernel the path of a bzImage")
	}
	var mirrors []Mirror
	for _, uri := range uris {
		mirrors = append(mirrors, Mirror{URI: uri, Keyring: debianKeyring})
	}
	return mirrors, nil
}

// debianURIs picks the archives that carry a suite of Debian itself. Each line
// is "URI SUITE".
func debianURIs(lines string) []string {
	var uris []string
	seen := map[string]bool{}
	for _, line := range strings.Split(lines, "\n") {
		words := strings.Fields(line)
		if len(words) != 2 {
			continue
		}
		uri := strings.TrimSuffix(words[0], "/")
		suite, _, _ := strings.Cut(words[1], "-")
		security := strings.HasSuffix(words[1], "-security") || strings.HasSuffix(words[1], "/updates")
		switch suite {
		case "bookworm", "trixie", "forky", "duke", "sid", "oldstable", "stable", "testing", "unstable":
			if !security && !seen[uri] {
				seen[uri] = true
				uris = append(uris, uri)
			}
		}
	}
	return uris
}

// missing returns the first package whose pinned version is not to be had.
func (all apts) missing(ctx context.Context, row Row) (Package, bool) {
	for _, p := range row.Packages {
		if _, err := all[row.suiteOf(p)].show(ctx, p.Name, p.Version); err != nil {
			return p, true
		}
	}
	return Package{}, false
}

// show returns the archive's description of a package; version "" is the
// newest.
func (a *apt) show(ctx context.Context, name, version string) (Package, error) {
	what := name
	if version != "" {
		what += "=" + version
	}
	out, err := a.run(ctx, "apt-cache", "show", "--no-all-versions", what)
	if err != nil {
		return Package{}, err
	}
	p := Package{}
	for _, line := range strings.Split(out, "\n") {
		key, value, _ := strings.Cut(line, ": ")
		switch key {
		case "Package":
			p.Name = value
		case "Version":
			p.Version = value
		case "SHA256":
			p.SHA256 = value
		case "Size":
			p.Size, _ = strconv.ParseInt(value, 10, 64)
		}
	}
	if version != "" && p.Version != version {
		return Package{}, fmt.Errorf("package %s: version %s is gone", name, version)
	}
	return p, p.check()
}

// download puts the package's file into dir and returns its path.
func (a *apt) download(ctx context.Context, dir string, p Package) (string, error) {
	into, err := os.MkdirTemp(dir, "deb-")
	if err != nil {
		return "", err
	}
	// apt drops privileges to a user that may not enter a private directory.
	if err := os.Chmod(into, 0o755); err != nil {
		return "", err
	}
	cmd := a.command(ctx, "apt-get", "download", "-o", "APT::Sandbox::User=", p.Name+"="+p.Version)
	cmd.Dir = into
	if _, err := run(cmd); err != nil {
		return "", fmt.Errorf("download %s %s: %w", p.Name, p.Version, err)
	}
	debs, _ := filepath.Glob(filepath.Join(into, "*.deb"))
	if len(debs) != 1 {
		return "", fmt.Errorf("download %s %s: apt left %d files instead of one", p.Name, p.Version, len(debs))
	}
	return debs[0], nil
}

func (a *apt) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	private := []string{
		"-o", "Dir::Etc::sourcelist=" + filepath.Join(a.dir, "sources.list"),
		"-o", "Dir::Etc::sourceparts=-",
		"-o", "Dir::Etc::preferences=-", "-o", "Dir::Etc::preferencesparts=-",
		"-o", "Dir::State::lists=" + filepath.Join(a.dir, "lists"),
		"-o", "Dir::State::status=/dev/null",
		"-o", "Dir::Cache=" + filepath.Join(a.dir, "cache"),
		"-o", "Acquire::Languages=none",
		"-o", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
		"-o", "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false",
		"-o", "APT::Architecture=" + a.arch, "-o", "APT::Architectures=" + a.arch,
		"-o", "APT::Sandbox::User=",
	}
	cmd := exec.CommandContext(ctx, program, append(private, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	return cmd
}

func (a *apt) run(ctx context.Context, program string, args ...string) (string, error) {
	return run(a.command(ctx, program, args...))
}

func run(cmd *exec.Cmd) (string, error) {
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, strings.TrimSpace(words.String()))
	}
	return out.String(), nil
}
