// Package peers keeps other sched_ext schedulers that rota is compared with:
// published Rust crates, pinned in peers.lock, which cargo builds once into a
// cache.
//
// It installs nothing on the machine and runs no scheduler. cmd/rota-lab calls it.
package peers

import (
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"rota/lab/cache"
)

// Peer is one scheduler of the lock file.
type Peer struct {
	Name      string   // what --sched takes: "bpfland"
	Crate     string   // also the name of its program: "scx_bpfland"
	Version   string   // "1.1.4"
	Rust      string   // the oldest Rust that builds it: "1.91"
	SHA256    string   // of the crate's file, 64 hexadecimal digits
	Libraries []string // beyond libelf and zlib, as pkg-config names them
}

// String is the crate and its version.
func (p Peer) String() string { return p.Crate + " " + p.Version }

// Parse reads the text of a lock file.
func Parse(text string) ([]Peer, error) {
	var list []Peer
	number := 0
	for line := range strings.Lines(text) {
		number++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) < 5 {
			return nil, fmt.Errorf("peers.lock:%d: %d words, must be NAME CRATE VERSION RUST SHA256 [LIBRARY...]", number, len(words))
		}
		p := Peer{Name: words[0], Crate: words[1], Version: words[2], Rust: words[3], SHA256: words[4], Libraries: words[5:]}
		if sum, err := hex.DecodeString(p.SHA256); err != nil || len(sum) != 32 {
			return nil, fmt.Errorf("peers.lock:%d: SHA256 %q: must be 64 hexadecimal digits", number, p.SHA256)
		}
		list = append(list, p)
	}
	return list, nil
}

// Store is a cache directory and what belongs in it.
type Store struct {
	Dir    string    // see DefaultDir
	Peers  []Peer    // of the lock file
	Jobs   int       // how much cargo does at once; 0 is its own default
	Output io.Writer // takes cargo's words, nil for nobody
	Log    func(format string, args ...any)
}

// DefaultDir is where peers are kept.
func DefaultDir() (string, error) { return cache.Dir("peers") }

// Names returns the names of all peers, in order.
func (s Store) Names() []string {
	var names []string
	for _, p := range s.Peers {
		names = append(names, p.Name)
	}
	return names
}

// Find returns the peers with these names, all when there are none.
func (s Store) Find(names ...string) ([]Peer, error) {
	if len(names) == 0 {
		return s.Peers, nil
	}
	var found []Peer
	for _, name := range names {
		p, known := s.find(name)
		if !known {
			return nil, fmt.Errorf("peer %q: not known; must be one of %s", name, strings.Join(s.Names(), ", "))
		}
		found = append(found, p)
	}
	return found, nil
}

func (s Store) find(name string) (Peer, bool) {
	for _, p := range s.Peers {
		if p.Name == name {
			return p, true
		}
	}
	return Peer{}, false
}

// Program is the path of the peer's program, whether it is built or not.
func (s Store) Program(p Peer) string { return filepath.Join(s.folder(p), "bin", p.Crate) }

// Built reports whether the wanted version of the peer is there.
func (s Store) Built(p Peer) bool {
	st, err := os.Stat(s.Program(p))
	return err == nil && st.Mode().IsRegular()
}

func (s Store) folder(p Peer) string { return filepath.Join(s.Dir, p.Name+"_"+p.Version) }

// Command resolves a scheduler whose first word is the name of a peer: the
// command line that starts it, and the words that name it in a result. known is
// false for any other scheduler. A peer that is not built is an error.
func (s Store) Command(scheduler string) (command, shown string, known bool, err error) {
	name, options, _ := strings.Cut(strings.TrimSpace(scheduler), " ")
	p, known := s.find(name)
	if !known {
		return "", "", false, nil
	}
	if !s.Built(p) {
		return "", "", true, fmt.Errorf("peer %s: %s is not built; build it with: rota-lab peers build %s", p.Name, p, p.Name)
	}
	if strings.ContainsAny(s.Dir, " \t") {
		return "", "", true, fmt.Errorf("peer %s: the cache %q has a space in its path; set ROTA_CACHE to another directory and build again", p.Name, s.Dir)
	}
	return strings.TrimSpace(s.Program(p) + " " + options), strings.TrimSpace(p.String() + " " + options), true, nil
}

func (s Store) log(format string, args ...any) {
	if s.Log != nil {
		s.Log(format, args...)
	}
}
