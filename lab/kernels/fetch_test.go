package kernels

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// entry is one file of a package made for a test.
type entry struct {
	name, text string
	link       bool
}

// image is the smallest bzImage: a boot header that names a release, and a
// payload of no known compression.
func image(release string) string {
	b := make([]byte, 0x1000)
	b[0x1f1] = 1
	copy(b[0x202:], "HdrS")
	b[0x20e], b[0x20f] = 0x00, 0x01 // the version string is at 0x200 + 0x100
	copy(b[0x300:], release+" (somebody) #1 SMP\x00")
	b[0x24c] = 0x10
	return string(b)
}

func tarOf(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: 0o644, Size: int64(len(e.text)), Typeflag: tar.TypeReg}
		if e.link {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, e.text, 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if !e.link {
			io.WriteString(w, e.text)
		}
	}
	w.Close()
	return b.Bytes()
}

// deb writes a package by hand: an ar archive of three members.
func deb(t *testing.T, path string, data []byte) {
	t.Helper()
	control := tarOf(t, entry{name: "control", text: "Package: x\nVersion: 1\nArchitecture: amd64\nMaintainer: x <x@example.org>\nDescription: x\n"})
	b := bytes.NewBufferString("!<arch>\n")
	for _, m := range []struct {
		name string
		data []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar", control}, {"data.tar", data}} {
		fmt.Fprintf(b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", m.name, 0, 0, 0, "100644", len(m.data))
		b.Write(m.data)
		if len(m.data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func needDpkg(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("dpkg-deb is not on this machine")
	}
}

func kernelFiles(prefix string) []entry {
	return []entry{
		{name: "./boot/vmlinuz-6.18.15-x", text: image("6.18.15-x")},
		{name: "./boot/config-6.18.15-x", text: "CONFIG_X=y"},
		{name: "./boot/System.map-6.18.15-x", text: "unwanted"},
		{name: "." + prefix + "/lib/modules/6.18.15-x/kernel/a.ko", text: "module"},
		{name: "./usr/share/doc/x", text: "unwanted"},
	}
}

func TestVerify(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.deb")
	if err := os.WriteFile(file, []byte("package"), 0o600); err != nil {
		t.Fatal(err)
	}
	right := sha256.Sum256([]byte("package"))
	if err := verify(file, Package{Name: "x", SHA256: hex.EncodeToString(right[:])}); err != nil {
		t.Error(err)
	}
	if err := verify(file, Package{Name: "x", SHA256: sum}); err == nil || !strings.Contains(err.Error(), "wrong checksum") {
		t.Error(err)
	}
}

// fakeApt stands in for apt-get and apt-cache: one package in one version,
// whose file lies in the directory.
func fakeApt(t *testing.T, dir, name, version, sha string) {
	t.Helper()
	for program, body := range map[string]string{
		"apt-get": `for a; do case "$a" in download) cp "` + dir + `/x.deb" . ;; esac; done`,
		"apt-cache": `for a; do last="$a"; case "$a" in pkgnames) echo "` + name + `"; exit;; esac; done
case "$last" in "` + name + `"|"` + name + `=` + version + `") printf 'Package: ` + name + `\nVersion: ` + version + `\nSHA256: ` + sha + `\nSize: 5\n';; *) exit 100;; esac`,
	} {
		if err := os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// store is a store with one row, and an archive that has version.
func store(t *testing.T, pinned, has string, spoil bool) (Store, Row) {
	t.Helper()
	needDpkg(t)
	dir := t.TempDir()
	deb(t, filepath.Join(dir, "x.deb"), tarOf(t, kernelFiles("")...))
	data, err := os.ReadFile(filepath.Join(dir, "x.deb"))
	if err != nil {
		t.Fatal(err)
	}
	s := sha256.Sum256(data)
	sha := hex.EncodeToString(s[:])
	if spoil {
		sha = sum
	}
	const name = "linux-image-6.18.15-cloud-amd64"
	fakeApt(t, dir, name, has, sha)
	row := Row{Name: "6.18", Series: "6.18", Suite: "trixie", Flavour: "cloud-amd64", Packages: []Package{{name, pinned, sha, 5, ""}}}
	return Store{Dir: filepath.Join(t.TempDir(), "cache"), Lock: Lock{Rows: []Row{row}}, Mirrors: []Mirror{{"http://m", filepath.Join(dir, "apt-get")}}}, row
}

func TestGet(t *testing.T) {
	s, row := store(t, "1-1", "1-1", false)
	k, err := s.Get(context.Background(), "6.18")
	if err != nil || k.Release != "6.18.15-x" || k.Note != "" || k.Version != "1-1" || k.Boot != k.Image {
		t.Fatalf("%+v, %v", k, err)
	}
	if !s.Cached(row) {
		t.Error("not in the cache afterwards")
	}
	s.Mirrors = []Mirror{}
	t.Setenv("PATH", "")
	if again, err := s.Get(context.Background(), "6.18"); err != nil || again != k {
		t.Errorf("from the cache: %+v, %v", again, err)
	}
}

func TestGoneVersionIsReplacedLoudly(t *testing.T) {
	s, _ := store(t, "1-1", "1-2", false)
	var said []string
	s.Log = func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	k, err := s.Get(context.Background(), "6.18")
	if err != nil || !strings.Contains(k.Note, "1-1 is gone") || !strings.Contains(k.Note, "1-2 took its place") {
		t.Errorf("%+v, %v", k, err)
	}
	if !strings.Contains(strings.Join(said, "\n"), "is gone") {
		t.Errorf("said only %q", said)
	}
}

func TestOfflineTakesAnotherVersionLoudly(t *testing.T) {
	s, row := store(t, "1-1", "1-1", false)
	if _, err := s.Get(context.Background(), "6.18"); err != nil {
		t.Fatal(err)
	}
	s.Lock.Rows[0].Packages = []Package{{row.Packages[0].Name, "1-2", sum, 5, ""}}
	s.Mirrors = []Mirror{{"http://m", "/no/such/keyring"}}
	k, err := s.Get(context.Background(), "6.18")
	if err != nil || k.Version != "1-1" || !strings.Contains(k.Note, "could not be fetched; 6.18.15-x took its place") {
		t.Errorf("%+v, %v", k, err)
	}
	s.Lock.Rows[0].Name = "other"
	if _, err := s.Get(context.Background(), "other"); err == nil || !strings.Contains(err.Error(), "debian-archive-keyring") {
		t.Errorf("nothing to fall back on: %v", err)
	}
}

func TestNothingIsLeftOfAFailure(t *testing.T) {
	s, row := store(t, "1-1", "1-1", true)
	_, err := s.Get(context.Background(), "6.18")
	if err == nil || !strings.Contains(err.Error(), "wrong checksum") {
		t.Fatal(err)
	}
	if s.Cached(row) {
		t.Error("a package with the wrong checksum is in the cache")
	}
	left, _ := os.ReadDir(s.Dir)
	for _, e := range left {
		if e.Name() != "apt" && e.Name() != ".lock" {
			t.Errorf("left %s", e.Name())
		}
	}
}

// A row of the cache that is damaged is fetched anew, and what a killed fetch left goes.
func TestGetOfADamagedRow(t *testing.T) {
	s, row := store(t, "1-1", "1-1", false)
	damaged, killed := filepath.Join(s.Dir, row.dirName(), "boot"), filepath.Join(s.Dir, ".new-killed", "tree")
	for _, dir := range []string{damaged, killed} {
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "vmlinuz-half"), []byte("half"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if k, err := s.Get(context.Background(), "6.18"); err != nil || k.Release != "6.18.15-x" {
		t.Errorf("%+v, %v", k, err)
	}
	for _, gone := range []string{filepath.Join(damaged, "vmlinuz-half"), filepath.Dir(killed)} {
		if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", gone, err)
		}
	}
}

func TestGetOfUnknown(t *testing.T) {
	s, _ := store(t, "1-1", "1-1", false)
	for want, words := range map[string]string{
		"5.4":          "neither a row (6.18) nor a file",
		"/no/such/img": "no such file",
		"./" + "x":     "no such file",
	} {
		if _, err := s.Get(context.Background(), want); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", want, err)
		}
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(context.Background(), text); err == nil || !strings.Contains(err.Error(), "not a bzImage") {
		t.Error(err)
	}
}

func TestUpdate(t *testing.T) {
	s, row := store(t, "1-1", "1-2", false)
	newer, changed, err := s.Update(context.Background(), row)
	if err != nil || !changed || newer.Packages[0].Version != "1-2" || newer.Name != "6.18" {
		t.Errorf("%+v, %v, %v", newer, changed, err)
	}
	if _, changed, err := s.Update(context.Background(), newer); err != nil || changed {
		t.Errorf("the newest is not the newest: %v, %v", changed, err)
	}
}

func TestSeries(t *testing.T) {
	for release, want := range map[string]string{"6.18.15+deb13-amd64": "6.18", "6.1.0-50-cloud-amd64": "6.1", "7.2-rc1": "7.2", "7": "7."} {
		if got := series(release); got != want {
			t.Errorf("%s: %s", release, got)
		}
	}
}

func FuzzImage(f *testing.F) {
	f.Add([]byte(image("6.18.15-x")))
	f.Add([]byte("HdrS"))
	f.Add([]byte(arm64Image("Linux version 6.18.15-y (somebody)")))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "image")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, release, err := identify(path); err == nil && strings.ContainsAny(release, "/\n ") {
			t.Errorf("release %q", release)
		}
		uncompress(path, io.Discard)
	})
}

func FuzzFindNote(f *testing.F) {
	f.Add([]byte("\x04\x00\x00\x00\x00\x00\x00\x00\x12\x00\x00\x00Xen\x00"))
	f.Fuzz(func(t *testing.T, notes []byte) { findNote(notes, "Xen", 18) })
}

func TestFindNote(t *testing.T) {
	notes := []byte("\x06\x00\x00\x00\x04\x00\x00\x00\x01\x00\x00\x00Linux\x00\x00\x00abcd\x04\x00\x00\x00\x00\x00\x00\x00\x12\x00\x00\x00Xen\x00")
	if !findNote(notes, "Xen", 18) || findNote(notes, "Xen", 17) || findNote(notes, "Linux", 18) || findNote(notes[:39], "Xen", 18) {
		t.Error("notes are read wrongly")
	}
}
