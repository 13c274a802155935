package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// toolchain is what a build uses of the machine.
type toolchain struct {
	clang string // command that compiles BPF
	path  string // $PATH for cargo
}

// minClang is the oldest clang that knows the BPF instructions (cpu v4) that the
// peers are compiled to.
const minClang = 18

// clangs are the commands that are tried, $BPF_CLANG before them.
var clangs = []string{"clang", "clang-19", "clang-22", "clang-21", "clang-20", "clang-18"}

// need is something that is missing, and the Debian package that brings it.
type need struct{ fault, debian string }

// findToolchain looks for everything that a build of these peers needs, and
// names all that is missing at once, with the fix.
func findToolchain(ctx context.Context, list []Peer) (toolchain, error) {
	chain := toolchain{path: os.Getenv("PATH")}
	var needs []need
	add := func(n need, missing bool) {
		if missing {
			needs = append(needs, n)
		}
	}
	rust := oldRust(ctx, list)
	for _, program := range [][2]string{{"cc", "gcc"}, {"make", "make"}, {"pkg-config", "pkg-config"}} {
		add(need{program[0] + " is not in PATH", program[1]}, !inPath(program[0]))
	}
	chain.clang = findClang(ctx)
	add(need{fmt.Sprintf("clang %d or newer is not in PATH (BPF_CLANG names another)", minClang), "clang-19"}, chain.clang == "")
	add(need{"libclang.so is not there (LIBCLANG_PATH names its directory)", "libclang1-19"}, !hasLibclang())
	for _, library := range libraries(list) {
		missing := inPath("pkg-config") && exec.CommandContext(ctx, "pkg-config", "--exists", library).Run() != nil
		add(need{"pkg-config knows no " + library, packageOf(library)}, missing)
	}
	switch {
	case ctx.Err() != nil:
		return chain, ctx.Err()
	case rust == "" && len(needs) == 0:
		return chain, nil
	}
	return chain, complaint(rust, needs)
}

// complaint is one error about all that is missing.
func complaint(rust string, needs []need) error {
	var faults, packages []string
	for _, n := range needs {
		faults, packages = append(faults, n.fault), append(packages, n.debian)
	}
	var fixes []string
	if rust != "" {
		faults = append([]string{rust}, faults...)
		fixes = append(fixes, "install Rust with rustup (https://rustup.rs)")
	}
	if len(packages) > 0 {
		fixes = append(fixes, "install on Debian or Ubuntu with: apt-get install "+strings.Join(packages, " "))
	}
	return errors.New("peers cannot be built here: " + strings.Join(faults, "; ") + ". Fix: " + strings.Join(fixes, "; "))
}

// oldRust says what is wrong when cargo is not new enough for all, else "".
func oldRust(ctx context.Context, list []Peer) string {
	oldest := ""
	for _, p := range list {
		if oldest == "" || olderVersion(oldest, p.Rust) {
			oldest = p.Rust
		}
	}
	text, err := exec.CommandContext(ctx, "cargo", "--version").Output() // cargo 1.95.0 (f2d3ce0bd 2026-03-21)
	words := strings.Fields(string(text))
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "cargo is not in PATH, need Rust " + oldest + " or newer"
	case err != nil || len(words) < 2:
		return fmt.Sprintf("cargo --version fails (%v, %q), need Rust %s or newer", err, text, oldest)
	case olderVersion(words[1], oldest):
		return fmt.Sprintf("cargo is %s, need Rust %s or newer", words[1], oldest)
	}
	return ""
}

// olderVersion compares the first two numbers of versions.
func olderVersion(a, b string) bool {
	var x, y [2]int
	fmt.Sscanf(a, "%d.%d", &x[0], &x[1])
	fmt.Sscanf(b, "%d.%d", &y[0], &y[1])
	return x[0] < y[0] || x[0] == y[0] && x[1] < y[1]
}

func inPath(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// findClang returns the first command that is new enough, "" when there is none.
func findClang(ctx context.Context) string {
	candidates := clangs
	if own := os.Getenv("BPF_CLANG"); own != "" {
		candidates = []string{own}
	}
	for _, command := range candidates {
		text, err := exec.CommandContext(ctx, command, "--version").Output() // Debian clang version 19.1.7 (3~deb12u1)
		_, after, found := strings.Cut(string(text), "clang version ")
		number, _, _ := strings.Cut(after, ".")
		if major, wrong := strconv.Atoi(number); err == nil && found && wrong == nil && major >= minClang {
			path, err := exec.LookPath(command)
			if err == nil {
				return path
			}
		}
	}
	return ""
}

// hasLibclang looks where the crate clang-sys does, which bindgen uses.
func hasLibclang() bool {
	dirs := []string{"/usr/local/llvm*/lib*", "/usr/local/lib*/*/*", "/usr/local/lib*/*", "/usr/local/lib*", "/usr/lib*/*/*", "/usr/lib*/*", "/usr/lib*"}
	if own := os.Getenv("LIBCLANG_PATH"); own != "" {
		dirs = []string{own}
		if st, err := os.Stat(own); err == nil && st.Mode().IsRegular() {
			return true
		}
	}
	for _, dir := range dirs {
		for _, name := range []string{"libclang.so*", "libclang-[0-9]*.so*"} {
			if found, _ := filepath.Glob(filepath.Join(dir, name)); len(found) > 0 {
				return true
			}
		}
	}
	return false
}

// libraries are those that the peers link with, each once.
func libraries(list []Peer) []string {
	names := []string{"libelf", "zlib"}
	for _, p := range list {
		for _, library := range p.Libraries {
			if !strings.Contains(" "+strings.Join(names, " ")+" ", " "+library+" ") {
				names = append(names, library)
			}
		}
	}
	return names
}

// packageOf is the Debian package with the headers of a library.
func packageOf(library string) string {
	if library == "zlib" {
		return "zlib1g-dev"
	}
	return library + "-dev"
}
