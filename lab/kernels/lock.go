package kernels

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"rota/lab/arch"
)

// Lock is the lock file: every kernel of the lab, pinned.
type Lock struct {
	Rows []Row
}

// Row is one kernel of the lock file.
type Row struct {
	Name     string    // what --kernel takes: "6.18", "6.18-binder"
	Series   string    // "6.18": the newest of it may take the place of a version that is gone
	Suite    string    // of the Debian archive
	Flavour  string    // "cloud-amd64", "amd64", "cloud-arm64": what follows the last dash is the architecture
	Comment  string    // what the row is for
	Unfit    string    // why it is for tests only, "" when it is fit for scenarios
	Packages []Package // in unpacking order; the one with the image first
}

// Package is one pinned Debian package.
type Package struct {
	Name, Version string
	SHA256        string // 64 hexadecimal digits
	Size          int64  // bytes of the package file
	Suite         string // "" = the row's
}

// Find returns the row called want, or the first row of that series, or the
// one whose version number ("6.18.15") it is.
func (l Lock) Find(want string) (Row, bool) {
	for _, fits := range []func(Row) bool{
		func(r Row) bool { return r.Name == want },
		func(r Row) bool { return r.Series == want && r.Unfit == "" },
		func(r Row) bool { return strings.HasPrefix(r.Packages[0].Version, want+"-") },
	} {
		for _, r := range l.Rows {
			if fits(r) {
				return r, true
			}
		}
	}
	return Row{}, false
}

// Names returns the names of all rows, in order.
func (l Lock) Names() []string {
	var names []string
	for _, r := range l.Rows {
		names = append(names, r.Name)
	}
	return names
}

// Index returns the place of the row called name, -1 when there is none.
func (l Lock) Index(name string) int {
	for i, r := range l.Rows {
		if r.Name == name {
			return i
		}
	}
	return -1
}

// Others are the rows with the same version of the kernel for the same architecture, built
// differently, that are fit for scenarios.
func (l Lock) Others(row Row) []Row {
	var others []Row
	for _, r := range l.Rows {
		if r.Name != row.Name && r.Unfit == "" && r.Arch().Name == row.Arch().Name && r.Packages[0].Version == row.Packages[0].Version {
			others = append(others, r)
		}
	}
	return others
}

// Arch is what the row's kernel runs on.
func (r Row) Arch() arch.Arch {
	a, _ := arch.OfFlavour(r.Flavour)
	return a
}

// suiteOf is where one of the row's packages is.
func (r Row) suiteOf(p Package) string {
	if p.Suite != "" {
		return p.Suite
	}
	return r.Suite
}

// Bytes is the size of the row's package files together.
func (r Row) Bytes() int64 {
	var sum int64
	for _, p := range r.Packages {
		sum += p.Size
	}
	return sum
}

// dirName is the row's directory in the cache: another version is another
// directory.
func (r Row) dirName() string { return r.Name + "_" + r.Packages[0].Version }

// ParseLock reads a lock file: stanzas of "Key: value" lines separated by
// empty lines, # comments, one "Package: NAME VERSION SHA256 SIZE [SUITE]" per package.
func ParseLock(text []byte) (Lock, error) {
	var l Lock
	var r Row
	seen := map[string]bool{}
	finish := func(n int) error {
		if r.Name == "" && len(r.Packages) == 0 {
			return nil
		}
		if err := r.check(); err != nil {
			return fmt.Errorf("kernels.lock: line %d: %w", n, err)
		}
		if seen[r.Name] {
			return fmt.Errorf("kernels.lock: line %d: row %q is there twice", n, r.Name)
		}
		seen[r.Name] = true
		l.Rows = append(l.Rows, r)
		r = Row{}
		return nil
	}
	in := bufio.NewScanner(bytes.NewReader(text))
	n := 0
	for in.Scan() {
		n++
		line := strings.TrimSpace(in.Text())
		switch {
		case strings.HasPrefix(line, "#"):
		case line == "":
			if err := finish(n); err != nil {
				return l, err
			}
		default:
			if err := r.set(line); err != nil {
				return l, fmt.Errorf("kernels.lock: line %d: %w", n, err)
			}
		}
	}
	if in.Err() != nil {
		return l, fmt.Errorf("kernels.lock: line %d: %w", n+1, in.Err())
	}
	return l, finish(n)
}

func (r *Row) set(line string) error {
	key, value, found := strings.Cut(line, ":")
	if !found {
		return fmt.Errorf("%.60q: must be \"Key: value\"", line)
	}
	value = strings.TrimSpace(value)
	switch key {
	case "Row":
		r.Name = value
	case "Series":
		r.Series = value
	case "Suite":
		r.Suite = value
	case "Flavour":
		r.Flavour = value
	case "Comment":
		r.Comment = value
	case "Unfit":
		r.Unfit = value
	case "Package":
		p, err := parsePackage(value)
		if err != nil {
			return err
		}
		r.Packages = append(r.Packages, p)
	default:
		return fmt.Errorf("unknown key %.40q: must be Row, Series, Suite, Flavour, Comment, Unfit or Package", key)
	}
	return nil
}

func parsePackage(value string) (Package, error) {
	words := strings.Fields(value)
	if len(words) == 4 {
		words = append(words, "")
	}
	if len(words) != 5 {
		return Package{}, fmt.Errorf("package %.60q: must be NAME VERSION SHA256 SIZE, and a SUITE that is not the row's", value)
	}
	p := Package{Name: words[0], Version: words[1], SHA256: words[2], Suite: words[4]}
	var err error
	if p.Size, err = strconv.ParseInt(words[3], 10, 64); err != nil || p.Size <= 0 {
		return p, fmt.Errorf("package %q: size %q: must be a number of bytes", p.Name, words[3])
	}
	return p, p.check()
}

// wordPattern is what rows, series, suites and flavours may be called.
const wordPattern = `^[a-z0-9][a-z0-9.-]*$`

// check refuses what must not reach a command line or a path.
func (p Package) check() error {
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]*$`).MatchString(p.Name) {
		return fmt.Errorf("package %.60q: not a package name", p.Name)
	}
	if !regexp.MustCompile(`^[0-9][A-Za-z0-9.+~:-]*$`).MatchString(p.Version) {
		return fmt.Errorf("package %q: %.60q is not a version", p.Name, p.Version)
	}
	if sum, err := hex.DecodeString(p.SHA256); err != nil || len(sum) != 32 {
		return fmt.Errorf("package %q: SHA-256 %.70q: must be 64 hexadecimal digits", p.Name, p.SHA256)
	}
	if p.Suite != "" && !regexp.MustCompile(wordPattern).MatchString(p.Suite) {
		return fmt.Errorf("package %q: suite %.40q: must be lower-case letters, digits, dots and dashes", p.Name, p.Suite)
	}
	return nil
}

func (r Row) check() error {
	word := regexp.MustCompile(wordPattern)
	for _, field := range [][2]string{{"Row", r.Name}, {"Series", r.Series}, {"Suite", r.Suite}, {"Flavour", r.Flavour}} {
		if !word.MatchString(field[1]) {
			return fmt.Errorf("row %q: %s %.40q: must be lower-case letters, digits, dots and dashes", r.Name, field[0], field[1])
		}
	}
	if _, known := arch.OfFlavour(r.Flavour); !known {
		return fmt.Errorf("row %q: flavour %q: must end in amd64 or arm64", r.Name, r.Flavour)
	}
	if len(r.Packages) == 0 {
		return fmt.Errorf("row %q: no package", r.Name)
	}
	if own := r.Packages[0]; own.Suite != "" {
		return fmt.Errorf("row %q: package %q: the first is the kernel, of the row's own suite", r.Name, own.Name)
	}
	return nil
}

// lockHead explains the file to whoever opens it.
const lockHead = `# The kernels of the lab, one stanza each: Package lines are NAME VERSION SHA256 SIZE,
# and the SUITE of a package that is not of the row's.
# Refresh a row with: rota-lab kernels update ROW
`

// Write writes the lock file.
func (l Lock) Write(w io.Writer) error {
	var b strings.Builder
	b.WriteString(lockHead)
	for _, r := range l.Rows {
		fmt.Fprintf(&b, "\nRow: %s\nSeries: %s\nSuite: %s\nFlavour: %s\n", r.Name, r.Series, r.Suite, r.Flavour)
		if r.Comment != "" {
			fmt.Fprintf(&b, "Comment: %s\n", r.Comment)
		}
		if r.Unfit != "" {
			fmt.Fprintf(&b, "Unfit: %s\n", r.Unfit)
		}
		for _, p := range r.Packages {
			line := fmt.Sprintf("Package: %s %s %s %d %s", p.Name, p.Version, p.SHA256, p.Size, p.Suite)
			b.WriteString(strings.TrimSpace(line) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
