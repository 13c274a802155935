package kernels

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sum = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

const goodLock = `# comment
Row: 6.18
Series: 6.18
Suite: trixie-backports
Flavour: cloud-amd64
Comment: the default
Package: linux-image-6.18.15+deb13-cloud-amd64 6.18.15-1~bpo13+1 ` + sum + ` 100

Row: 7.2
Series: 7.2
Suite: sid
Flavour: cloud-amd64
Unfit: broken BTF
Package: linux-binary-7.2.13+deb14-cloud-amd64 7.2.13-1 ` + sum + ` 5
Package: linux-modules-7.2.13+deb14-cloud-amd64 7.2.13-1 ` + sum + ` 6
`

func mustParse(t *testing.T, text string) Lock {
	t.Helper()
	l, err := ParseLock([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestParseLock(t *testing.T) {
	l := mustParse(t, goodLock)
	want := Lock{Rows: []Row{
		{Name: "6.18", Series: "6.18", Suite: "trixie-backports", Flavour: "cloud-amd64", Comment: "the default",
			Packages: []Package{{"linux-image-6.18.15+deb13-cloud-amd64", "6.18.15-1~bpo13+1", sum, 100, ""}}},
		{Name: "7.2", Series: "7.2", Suite: "sid", Flavour: "cloud-amd64", Unfit: "broken BTF",
			Packages: []Package{{"linux-binary-7.2.13+deb14-cloud-amd64", "7.2.13-1", sum, 5, ""}, {"linux-modules-7.2.13+deb14-cloud-amd64", "7.2.13-1", sum, 6, ""}}},
	}}
	if diff := cmp.Diff(want, l); diff != "" {
		t.Error(diff)
	}
	if l.Rows[1].Bytes() != 11 || l.Index("7.2") != 1 || l.Index("x") != -1 {
		t.Error("bytes or index")
	}
}

func TestParseLockRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":   {"Row: a\nEvil: b\n", `line 2: unknown key "Evil"`},
		"no colon":      {"Row\n", "line 1: "},
		"no package":    {"Row: a\nSeries: a\nSuite: a\nFlavour: amd64\n", "no package"},
		"short package": {"Package: a 1\n", "must be NAME VERSION SHA256 SIZE"},
		"bad sum":       {"Package: a 1 abc 5\n", "64 hexadecimal digits"},
		"bad size":      {"Package: a 1 " + sum + " -5\n", "number of bytes"},
		"option":        {"Package: -oEvil=1 1 " + sum + " 5\n", "not a package name"},
		"bad version":   {"Package: a ../1 " + sum + " 5\n", "not a version"},
		"path in a row": {strings.Replace(goodLock, "Row: 6.18", "Row: ../x", 1), "must be lower-case"},
		"twice":         {goodLock + "\n" + goodLock, "twice"},
		"architecture":  {"Row: a\nSeries: a\nSuite: a\nFlavour: cloud-s390x\nPackage: a 1 " + sum + " 5\n", "must end in amd64 or arm64"},
		"bad suite":     {"Package: a 1 " + sum + " 5 ../x\n", `suite "../x"`},
		"no own kernel": {"Row: a\nSeries: a\nSuite: a\nFlavour: amd64\nPackage: a 1 " + sum + " 5 other\n", "of the row's own suite"},
		"endless line":  {"Row: " + strings.Repeat("x", 1<<17), "token too long"},
	} {
		if _, err := ParseLock([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestWriteIsReadBack(t *testing.T) {
	var b bytes.Buffer
	l := mustParse(t, goodLock)
	if err := l.Write(&b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l, mustParse(t, b.String())); diff != "" {
		t.Error(diff)
	}
}

// The file in the repository has the rows that the documents promise.
func TestOurLock(t *testing.T) {
	text, err := os.ReadFile("../kernels.lock")
	if err != nil {
		t.Fatal(err)
	}
	l := mustParse(t, string(text))
	want := []string{"6.1", "6.1-binder", "6.12", "6.12-binder", "6.17", "6.18", "6.18-binder", "6.18-arm64", "6.19", "7.0", "7.1", "7.2.12", "7.2", "7.2-binder"}
	if diff := cmp.Diff(want, l.Names()); diff != "" {
		t.Error(diff)
	}
	for ask, name := range map[string]string{"6.18": "6.18", "6.18.15": "6.18", "7.2": "7.2", "7.2.13": "7.2", "7.2.12": "7.2.12", "7.1": "7.1"} {
		if r, known := l.Find(ask); !known || r.Name != name {
			t.Errorf("%s: row %q", ask, r.Name)
		}
	}
	for name, want := range map[string][]string{"6.18": {"6.18-binder"}, "6.18-binder": {"6.18"}, "6.18-arm64": nil, "7.2": {"7.2-binder"}, "7.2.12": nil, "7.0": nil} {
		row, _ := l.Find(name)
		if diff := cmp.Diff(want, Lock{Rows: l.Others(row)}.Names()); diff != "" {
			t.Errorf("%s, built differently: %s", name, diff)
		}
	}
	unfit := Lock{Rows: slices.Clone(l.Rows)}
	unfit.Rows[unfit.Index("6.18-binder")].Unfit = "of no use"
	if row, _ := unfit.Find("6.18"); len(unfit.Others(row)) != 0 {
		t.Errorf("an unfit row takes the place of 6.18: %v", unfit.Others(row))
	}
	for _, name := range []string{"7.1", "7.2.12"} {
		if r, _ := l.Find(name); r.Unfit == "" {
			t.Errorf("%s: not marked unfit", name)
		}
	}
	var b bytes.Buffer
	if err := l.Write(&b); err != nil || b.String() != string(text) {
		t.Error("the file is not as Write writes it")
	}
}

func FuzzParseLock(f *testing.F) {
	f.Add([]byte(goodLock))
	f.Add([]byte("Row: a\n\nPackage: x"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := ParseLock(text)
		if err != nil {
			return
		}
		for _, r := range l.Rows {
			if strings.ContainsAny(r.dirName(), "/\x00") || strings.HasPrefix(r.Packages[0].Name, "-") {
				t.Errorf("row %+v", r)
			}
		}
		var b bytes.Buffer
		if err := l.Write(&b); err != nil {
			t.Fatal(err)
		}
		if again, err := ParseLock(b.Bytes()); err != nil || !cmp.Equal(l, again) {
			t.Errorf("not read back: %v", err)
		}
	})
}

func TestNewestRelease(t *testing.T) {
	names := strings.Fields(`linux-image-6.18.9+deb13-cloud-amd64 linux-image-6.18.15+deb13-cloud-amd64
linux-image-6.18.15+deb13-amd64 linux-image-6.18.20+deb13-rt-amd64 linux-image-6.18.15+deb13-cloud-amd64-dbg
linux-image-6.19.1+deb13-cloud-amd64 linux-image-6.1.0-47-cloud-amd64 linux-image-6.1.0-50-cloud-amd64
linux-image-6.18.15+deb13-cloud-amd64-unsigned linux-image-cloud-amd64
linux-binary-7.2.13+deb14-cloud-amd64 linux-modules-7.2.13+deb14-cloud-amd64 linux-base-7.2.13+deb14-cloud-amd64 linux-binary-7.0.1+deb13-amd64`)
	for _, c := range []struct{ series, flavour, want string }{
		{"6.18", "cloud-amd64", "6.18.15+deb13-cloud-amd64"},
		{"6.18", "amd64", "6.18.15+deb13-amd64"},
		{"6.1", "cloud-amd64", "6.1.0-50-cloud-amd64"},
		{"6.2", "cloud-amd64", ""},
	} {
		if got := newestRelease(names, Row{Series: c.series, Flavour: c.flavour}); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.series, c.flavour, got, c.want)
		}
	}
	for release, want := range map[string]int{"7.2.13+deb14-cloud-amd64": 3, "7.0.1+deb13-amd64": 1, "6.18.15+deb13-amd64": 1} {
		if got := packagesOf(names, release); len(got) != want {
			t.Errorf("%s: %q", release, got)
		}
	}
}

func TestDebianURIs(t *testing.T) {
	got := debianURIs(`http://m/debian/ bookworm
http://m/debian/ bookworm-updates
http://m/debian-security/ bookworm-security
http://archive/ubuntu/ noble
https://n/x nodistro
http://other/debian sid
garbage`)
	if diff := cmp.Diff([]string{"http://m/debian", "http://other/debian"}, got); diff != "" {
		t.Error(diff)
	}
}
