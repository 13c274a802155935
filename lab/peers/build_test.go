package peers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// store has two peers, an empty cache, and fake programs in PATH that find
// everything. The fake cargo fetches a crate with the text "crate" and installs a
// program, unless a file of the directory orders says otherwise.
func store(t *testing.T) Store {
	t.Helper()
	home := t.TempDir()
	t.Setenv("ORDERS", t.TempDir())
	t.Setenv("CARGO_HOME", home)
	t.Setenv("CARGO_TARGET_DIR", "")
	t.Setenv("BPF_CLANG", "")
	programs := t.TempDir()
	t.Setenv("LIBCLANG_PATH", programs)
	write(t, filepath.Join(programs, "libclang-19.so.1"), "")
	t.Setenv("PATH", programs)
	for name, script := range map[string]string{
		"cargo": fakeCargo, "cc": "", "make": "", "pkg-config": "",
		"clang":    `echo "Debian clang version 14.0.6"`,
		"clang-19": `echo "Debian clang version 19.1.7 (3)"`,
	} {
		write(t, filepath.Join(programs, name), "#!/bin/sh\nPATH=/usr/bin:/bin\n"+script+"\n")
	}
	hash := sha256.Sum256([]byte("crate"))
	crate := func(name string, libraries ...string) Peer {
		return Peer{Name: name, Crate: "scx_" + name, Version: "1.0", Rust: "1.91", SHA256: hex.EncodeToString(hash[:]), Libraries: libraries}
	}
	return Store{Dir: filepath.Join(t.TempDir(), "peers"), Peers: []Peer{crate("peer"), crate("other", "libseccomp")}}
}

const fakeCargo = `
echo "$@ clang=$BPF_CLANG" >>"$ORDERS/said"
case $1 in
--version) [ -e "$ORDERS/old" ] && echo "cargo 1.85.1 (x)" || echo "cargo 1.95.0 (x)" ;;
info)
	crate=${3%@*}
	mkdir -p "$CARGO_HOME/registry/cache/index"
	printf crate >"$CARGO_HOME/registry/cache/index/$crate-${3#*@}.crate"
	[ ! -e "$ORDERS/tampered" ] || echo x >>"$CARGO_HOME/registry/cache/index/$crate-${3#*@}.crate" ;;
install)
	while [ $# -gt 0 ]; do
		case $1 in
		--root) root=$2 ;;
		--target-dir) mkdir -p "$2" && echo half >"$2/half" ;;
		scx_*) crate=$1 ;;
		esac
		shift
	done
	mkdir -p "$root/bin"
	echo "compiling $crate" >&2
	[ ! -e "$ORDERS/hang" ] || { echo $$ >"$ORDERS/hung"; sleep 60 & wait; }
	[ ! -e "$ORDERS/break-$crate" ] || exit 101
	[ -e "$ORDERS/empty" ] || echo "$crate" >"$root/bin/$crate" ;;
esac
`

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
		t.Fatal(err)
	}
}

func order(t *testing.T, what string) {
	t.Helper()
	write(t, filepath.Join(os.Getenv("ORDERS"), what), "")
}

func said(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(os.Getenv("ORDERS"), "said"))
	if err != nil {
		return ""
	}
	return string(text)
}

// left lists what is in the cache, without the lock.
func left(t *testing.T, s Store) string {
	t.Helper()
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Name() != ".lock" {
			names = append(names, e.Name())
		}
	}
	return strings.Join(names, " ")
}

func TestBuild(t *testing.T) {
	s := store(t)
	s.Jobs = 3
	var words bytes.Buffer
	s.Output = &words
	write(t, filepath.Join(s.Dir, ".new-killed", "half"), "")
	if err := s.Build(context.Background(), s.Peers[:1]); err != nil {
		t.Fatal(err)
	}
	if !s.Built(s.Peers[0]) || s.Built(s.Peers[1]) || left(t, s) != "peer_1.0" {
		t.Errorf("the cache has %q", left(t, s))
	}
	if words.String() != "compiling scx_peer\n" {
		t.Errorf("cargo's words: %q", words.String())
	}
	for _, want := range []string{"info --quiet scx_peer@1.0", "--locked --no-track", "--jobs 3 scx_peer --version =1.0", "/clang-19\n"} {
		if !strings.Contains(said(t), want) {
			t.Errorf("cargo was not told %q:\n%s", want, said(t))
		}
	}
	before := said(t)
	if err := s.Build(context.Background(), s.Peers[:1]); err != nil || said(t) != before {
		t.Errorf("built again: %v, %s", err, said(t))
	}
	// Another version of it is another build.
	s.Peers[0].Version = "1.1"
	if err := s.Build(context.Background(), s.Peers); err != nil || left(t, s) != "other_1.0 peer_1.0 peer_1.1" {
		t.Errorf("%v, the cache has %q", err, left(t, s))
	}
}

func TestBuildInAnOwnTargetDirectory(t *testing.T) {
	s := store(t)
	t.Setenv("CARGO_TARGET_DIR", t.TempDir())
	if err := s.Build(context.Background(), s.Peers[:1]); err != nil || strings.Contains(said(t), "--target-dir") {
		t.Errorf("%v: %s", err, said(t))
	}
}

func TestBuildKeepsNothingHalfBuilt(t *testing.T) {
	for what, want := range map[string]string{
		"break-scx_peer": "peer peer: cargo install: exit status 101; cargo says why above",
		"empty":          "cargo built scx_peer 1.0 without the program scx_peer",
		"tampered":       "crate scx_peer 1.0: wrong checksum: SHA-256 of ",
	} {
		s := store(t)
		order(t, what)
		err := s.Build(context.Background(), s.Peers[:1])
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
		if left(t, s) != "" {
			t.Errorf("%s: the cache has %q", what, left(t, s))
		}
		if what == "tampered" && strings.Contains(said(t), "install") {
			t.Errorf("a crate with a wrong checksum was built: %s", said(t))
		}
	}
}

// One that fails does not keep the others from being built.
func TestBuildGoesOn(t *testing.T) {
	s := store(t)
	order(t, "break-scx_peer")
	if err := s.Build(context.Background(), s.Peers); err == nil || !strings.Contains(err.Error(), "peer peer: ") || left(t, s) != "other_1.0" {
		t.Errorf("%v, the cache has %q", err, left(t, s))
	}
}

func TestBuildFindsTheCrateNowhere(t *testing.T) {
	s := store(t)
	write(t, filepath.Join(os.Getenv("PATH"), "cargo"), "#!/bin/sh\necho cargo 1.95.0\n")
	if err := s.Build(context.Background(), s.Peers[:1]); err == nil || !strings.Contains(err.Error(), "set CARGO_HOME") {
		t.Error(err)
	}
}

// An interrupted build ends what it started and leaves nothing.
func TestBuildInterrupted(t *testing.T) {
	s := store(t)
	order(t, "hang")
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for i := 0; i < 1000; i++ {
			if _, err := os.Stat(filepath.Join(os.Getenv("ORDERS"), "hung")); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	}()
	start := time.Now()
	err := s.Build(ctx, s.Peers)
	if !errors.Is(err, context.Canceled) || left(t, s) != "" || time.Since(start) > 30*time.Second {
		t.Errorf("%v after %v, the cache has %q", err, time.Since(start), left(t, s))
	}
	if err == nil || !strings.HasPrefix(err.Error(), "peer peer: interrupted, nothing of it was kept") {
		t.Error(err)
	}
	if strings.Contains(said(t), "scx_other") {
		t.Errorf("it went on with the next peer: %s", said(t))
	}
}

// Cargo does not go on when we are killed, and nobody can ask it to end.
func TestCargoEndsWithUs(t *testing.T) {
	const builder = "ROTA_TEST_BUILDER"
	if orders := os.Getenv(builder); orders != "" { // started below, to be killed
		s := store(t)
		t.Setenv("ORDERS", orders)
		s.Build(context.Background(), s.Peers[:1])
		return
	}
	orders := t.TempDir()
	write(t, filepath.Join(orders, "hang"), "")
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	c.Env = append(os.Environ(), builder+"="+orders, "TMPDIR="+t.TempDir())
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	cargo := 0
	for range 1000 {
		text, _ := os.ReadFile(filepath.Join(orders, "hung"))
		if cargo, _ = strconv.Atoi(strings.TrimSpace(string(text))); cargo != 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.Process.Kill()
	c.Wait()
	if cargo == 0 {
		t.Fatal("it started no cargo")
	}
	defer syscall.Kill(-cargo, syscall.SIGKILL)
	for range 1000 {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cargo))
		if err != nil || strings.Contains(string(state), ") Z ") { // who adopts it may not wait for it
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("cargo goes on")
}
