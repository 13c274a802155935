package where

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"rota/internal/nearest"
)

const (
	symbolsFile = "proc/kallsyms"
	// maxLine bounds a line of the kernel's lists: interrupts have 11 letters a CPU, of which
	// there are 1024 at most, and a name has 511.
	maxLine = 16384
	// maxNear is how many names are offered for an unknown one.
	maxNear = 4
)

// symbol is a line of kallsyms.
type symbol struct {
	address uint64 // 0: the kernel hides it
	kind    byte
	name    string
	module  string // empty: the kernel itself
}

// function tells whether the symbol is code, not data.
func (s symbol) function() bool { return strings.IndexByte("tTwW", s.kind) >= 0 }

// parseSymbol reads "address kind name [module]". What BPF and ftrace have made is
// not part of the kernel.
func parseSymbol(line string) (s symbol, ok bool) {
	number, rest, _ := strings.Cut(line, " ")
	kind, rest, _ := strings.Cut(rest, " ")
	name, module, modular := strings.Cut(strings.TrimRight(rest, " "), "\t")
	if len(kind) != 1 || name == "" || strings.Contains(name, " ") {
		return s, false
	}
	address, err := strconv.ParseUint(number, 16, 64)
	if err != nil {
		return s, false
	}
	s = symbol{address: address, kind: kind[0], name: name}
	if modular {
		s.module = strings.TrimSuffix(strings.TrimPrefix(module, "["), "]")
		if s.module == "bpf" || strings.HasPrefix(s.module, "__builtin__") {
			return s, false
		}
	}
	return s, true
}

// eachLine calls visit for each line of a file of the kernel.
func eachLine(root fs.FS, path string, visit func(line string)) error {
	f, err := root.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return scan(f, visit)
}

func scan(r io.Reader, visit func(line string)) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, maxLine), maxLine)
	for s.Scan() {
		visit(s.Text())
	}
	return s.Err()
}

// listing is what kallsyms says about one name.
type listing struct {
	exact   []symbol            // functions of this name
	clones  []symbol            // functions that the compiler made of it
	data    bool                // it is a variable
	any     bool                // there are functions at all
	modules map[string]struct{} // those that have functions
	marks   map[string]uint64   // where sections begin and end
}

// list looks a name up in the whole kernel.
func list(root fs.FS, name string) (l listing, err error) {
	l = listing{modules: map[string]struct{}{}, marks: map[string]uint64{}}
	wanted := map[string]bool{}
	for _, s := range sections {
		wanted[s.from], wanted[s.to] = true, true
	}
	err = eachLine(root, symbolsFile, func(line string) {
		s, ok := parseSymbol(line)
		switch {
		case !ok:
			return
		case wanted[s.name] && s.module == "":
			l.marks[s.name] = s.address
		case !s.function():
			l.data = l.data || s.name == name
			return
		case s.name == name:
			l.exact = append(l.exact, s)
		case strings.HasPrefix(s.name, name+"."):
			l.clones = append(l.clones, s)
		}
		l.any = true
		l.modules[s.module] = struct{}{}
	})
	if err != nil {
		return l, fmt.Errorf("/%s: %w: mount /proc", symbolsFile, err)
	}
	if !l.any {
		return l, fmt.Errorf("/%s: names no function: boot a kernel that is built with CONFIG_KALLSYMS=y", symbolsFile)
	}
	return l, nil
}

// in keeps the symbols of one module.
func in(module string, all []symbol) (kept []symbol) {
	for _, s := range all {
		if s.module == module {
			kept = append(kept, s)
		}
	}
	return kept
}

// nearNames are the functions that may have been meant: a few letters away, or with
// the word in their name, nearest first. anywhere is that no module was named.
func nearNames(root fs.FS, word, module string, anywhere bool) []string {
	type match struct {
		name     string
		distance int
	}
	var found []match
	low := strings.ToLower(word)
	_ = eachLine(root, symbolsFile, func(line string) {
		s, ok := parseSymbol(line)
		if !ok || !s.function() || s.module != module && !anywhere || padding(s.name) != "" || strings.Contains(s.name, ".") {
			return
		}
		if d, near := nearness(low, strings.ToLower(s.name)); near {
			found = append(found, match{s.name, d})
		}
	})
	slices.SortFunc(found, func(a, b match) int {
		return cmp.Or(a.distance-b.distance, len(a.name)-len(b.name), strings.Compare(a.name, b.name))
	})
	found = slices.CompactFunc(found, func(a, b match) bool { return a.name == b.name })
	var names []string
	for _, m := range found[:min(len(found), maxNear)] {
		names = append(names, m.name)
	}
	return names
}

// nearness is how far a name is from a word: the letters to change, at most a third
// of the word, or else that the word is a part of it.
func nearness(word, name string) (distance int, near bool) {
	most := len(word) / 3
	if d := len(name) - len(word); d <= most && -d <= most {
		if d := nearest.Distance(word, name); d <= most {
			return d, true
		}
	}
	return most + 1, len(word) >= 4 && strings.Contains(name, word)
}

// padding is the function that a symbol fills the space before, empty if none.
func padding(name string) string {
	for _, prefix := range []string{"__pfx_", "__cfi_"} {
		if of, ok := strings.CutPrefix(name, prefix); ok {
			return of
		}
	}
	return ""
}
