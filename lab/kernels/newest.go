package kernels

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// newest returns the row with the packages of the newest kernel of its series
// and flavour that the suite has, and the newest of those of other suites.
func (all apts) newest(ctx context.Context, row Row) (Row, error) {
	a := all[row.Suite]
	out, err := a.run(ctx, "apt-cache", "pkgnames", "linux-")
	if err != nil {
		return row, err
	}
	names := strings.Fields(out)
	release := newestRelease(names, row)
	if release == "" {
		return row, fmt.Errorf("suite %s has no kernel of series %s with flavour %s", row.Suite, row.Series, row.Flavour)
	}
	var wanted []Package
	for _, name := range packagesOf(names, release) {
		wanted = append(wanted, Package{Name: name})
	}
	for _, p := range row.Packages {
		if p.Suite != "" {
			wanted = append(wanted, Package{Name: p.Name, Suite: p.Suite})
		}
	}
	row.Packages = nil
	for _, w := range wanted {
		p, err := all[row.suiteOf(w)].show(ctx, w.Name, "")
		if err != nil {
			return row, err
		}
		p.Suite = w.Suite
		row.Packages = append(row.Packages, p)
	}
	return row, nil
}

// newestRelease finds among package names the newest release of the row's
// series and flavour: "6.18.15+deb13-cloud-amd64".
func newestRelease(names []string, row Row) string {
	pattern := regexp.MustCompile(`^linux-image-(` + regexp.QuoteMeta(row.Series) + `\.[0-9][0-9a-z.+]*(?:-[0-9]+)?-` + regexp.QuoteMeta(row.Flavour) + `)$`)
	best := ""
	for _, name := range names {
		if m := pattern.FindStringSubmatch(name); m != nil && (best == "" || olderRelease(best, m[1])) {
			best = m[1]
		}
	}
	return best
}

// packagesOf are the packages that make up a release, the one with the image
// first: since 6.19 image, modules and configuration come apart, and an
// archive may keep the image longer than the rest.
func packagesOf(names []string, release string) []string {
	have := map[string]bool{}
	for _, name := range names {
		have[name] = true
	}
	if !have["linux-binary-"+release] {
		return []string{"linux-image-" + release}
	}
	packages := []string{"linux-binary-" + release}
	for _, part := range []string{"linux-modules-", "linux-base-"} {
		if have[part+release] {
			packages = append(packages, part+release)
		}
	}
	return packages
}

// olderRelease compares the numbers in two releases, left to right.
func olderRelease(a, b string) bool {
	numbers := regexp.MustCompile(`[0-9]+`)
	x, y := numbers.FindAllString(a, -1), numbers.FindAllString(b, -1)
	for i := 0; i < len(x) && i < len(y); i++ {
		p, _ := strconv.Atoi(x[i])
		q, _ := strconv.Atoi(y[i])
		if p != q {
			return p < q
		}
	}
	return len(x) < len(y)
}

// Update pins the newest kernel of the row's series and returns the new row
// and whether it differs. The lock file is the caller's to write.
func (s Store) Update(ctx context.Context, row Row) (Row, bool, error) {
	a, err := s.openApts(ctx, row)
	if err != nil {
		return row, false, fmt.Errorf("kernel %s: %w", row.Name, err)
	}
	newer, err := a.newest(ctx, row)
	if err != nil {
		return row, false, fmt.Errorf("kernel %s: %w", row.Name, err)
	}
	same := len(newer.Packages) == len(row.Packages)
	for i := 0; same && i < len(row.Packages); i++ {
		same = newer.Packages[i] == row.Packages[i]
	}
	return newer, !same, nil
}
