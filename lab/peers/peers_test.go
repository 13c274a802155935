package peers

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rota/lab"
)

const sum = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"a scx_a 1.0 1.91":                  "peers.lock:1: 4 words",
		"# x\n\na scx_a 1.0 1.91 00":        `peers.lock:3: SHA256 "00": must be 64`,
		"a scx_a 1.0 1.91 " + sum[1:] + "g": "must be 64 hexadecimal digits",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	list, err := Parse("# x\n\n a  scx_a 1.0 1.91 " + sum + " libx liby\n")
	want := []Peer{{Name: "a", Crate: "scx_a", Version: "1.0", Rust: "1.91", SHA256: sum, Libraries: []string{"libx", "liby"}}}
	if diff := cmp.Diff(want, list); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// The peers of the repository have names that --sched can tell apart.
func TestLockFile(t *testing.T) {
	list, err := Parse(lab.PeersLock)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{"kernel": true, "rota": true}
	for _, p := range list {
		if seen[p.Name] || strings.ContainsAny(p.Name, "/,") || olderVersion(p.Rust, "1.0") {
			t.Errorf("%+v: its name is taken or no name, or its Rust is no version", p)
		}
		seen[p.Name] = true
	}
	for _, name := range []string{"bpfland", "lavd", "rustland"} {
		if !seen[name] {
			t.Errorf("%s: not in the lock file", name)
		}
	}
}

func TestFind(t *testing.T) {
	s := store(t)
	if all, err := s.Find(); err != nil || len(all) != 2 {
		t.Error(all, err)
	}
	if one, err := s.Find("other"); err != nil || len(one) != 1 || one[0].Crate != "scx_other" {
		t.Error(one, err)
	}
	if _, err := s.Find("other", "x"); err == nil || err.Error() != `peer "x": not known; must be one of peer, other` {
		t.Error(err)
	}
}

func TestCommand(t *testing.T) {
	s := store(t)
	for _, scheduler := range []string{"kernel", "/usr/bin/peer", "pee", ""} {
		if _, _, known, err := s.Command(scheduler); known || err != nil {
			t.Errorf("%q: %v %v", scheduler, known, err)
		}
	}
	_, _, known, err := s.Command("peer --fast")
	if want := "peer peer: scx_peer 1.0 is not built; build it with: rota-lab peers build peer"; !known || err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
	write(t, s.Program(s.Peers[0]), "#!/bin/sh\n")
	command, shown, _, err := s.Command(" peer --fast -s 1")
	if err != nil || command != s.Program(s.Peers[0])+" --fast -s 1" || shown != "scx_peer 1.0 --fast -s 1" {
		t.Errorf("%q, %q, %v", command, shown, err)
	}
	s.Dir = filepath.Join(t.TempDir(), "a b")
	write(t, s.Program(s.Peers[0]), "#!/bin/sh\n")
	if _, _, _, err := s.Command("peer"); err == nil || !strings.Contains(err.Error(), "has a space in its path; set ROTA_CACHE") {
		t.Error(err)
	}
}
