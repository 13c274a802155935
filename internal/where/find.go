package where

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Kernel names the kernel itself where a module is asked for.
const Kernel = "vmlinux"

// maxName is the length of a name in bytes that is accepted.
const maxName = 128

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_.]+$`)

// Function is a function of the running kernel that can be watched. Find makes it.
type Function struct {
	Name   string
	Module string // empty: the kernel itself

	addresses []uint64 // several functions may have one name; none: the kernel hides them
	shared    bool     // another place has a function of this name, too
}

func (f Function) String() string {
	if f.Module == "" {
		return fmt.Sprintf("function %q", f.Name)
	}
	return fmt.Sprintf("function %q of module %s", f.Name, f.Module)
}

// Copies is how many functions have that name.
func (f Function) Copies() int { return max(1, len(f.addresses)) }

// Check tells whether name and module can be names at all. They may come from
// anybody. An empty module means that none was named.
func Check(name, module string) error {
	if err := checkName("function", name); err != nil {
		return err
	}
	if module == "" {
		return nil
	}
	return checkName("module", module)
}

func checkName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s: has no name: write one, as in /proc/kallsyms", what)
	case len(name) > maxName:
		return fmt.Errorf("%s %q...: is longer than %d letters: write the name as in /proc/kallsyms", what, strings.ToValidUTF8(name[:32], "?"), maxName)
	case what == "module" && nameForm.MatchString(strings.ReplaceAll(name, "-", "_")) && strings.Contains(name, "-"):
		return fmt.Errorf("%s %q: has a - in it: write %s, as the kernel does", what, name, strings.ReplaceAll(name, "-", "_"))
	case !nameForm.MatchString(name):
		return fmt.Errorf("%s %q: is not a name: use . _ A-Z a-z and 0-9 only", what, name)
	}
	return nil
}

// Find looks a function up and refuses what can't or must not be watched. The file
// system is that of the machine, from its root. module may be empty when only one
// place has the function, and Kernel for the kernel itself.
func Find(root fs.FS, name, module string) (Function, error) {
	if err := Check(name, module); err != nil {
		return Function{}, err
	}
	if of := padding(name); of != "" {
		return Function{}, fmt.Errorf("function %q: is the space before a function: name that: %s", name, of)
	}
	l, err := list(root, name)
	if err != nil {
		return Function{}, err
	}
	if err := loaded(root, module, l); err != nil {
		return Function{}, err
	}
	place, exact, anywhere := module, l.exact, module == ""
	if place == Kernel {
		place = ""
	}
	if !anywhere {
		exact = in(place, exact)
	}
	if len(exact) == 0 {
		return Function{}, unknown(root, name, place, anywhere, l)
	}
	if places := placesOf(exact); len(places) > 1 {
		return Function{}, fmt.Errorf("function %q: is in %s: say which with --module, as --module %s", name, placeWords(places), flagWord(places[len(places)-1]))
	}
	f := Function{Name: name, Module: exact[0].module, shared: len(l.exact) > 1}
	for _, s := range exact {
		if s.address != 0 && !slices.Contains(f.addresses, s.address) {
			f.addresses = append(f.addresses, s.address)
		}
	}
	return f, refuse(root, f, l.marks)
}

// loaded tells whether a module that was named is there.
func loaded(root fs.FS, module string, l listing) error {
	if _, there := l.modules[module]; there || module == "" || module == Kernel {
		return nil
	}
	if builtIn(root, module) {
		return fmt.Errorf("module %q: is a part of this kernel: leave --module away", module)
	}
	return fmt.Errorf("module %q: is not loaded: load it with: modprobe %s", module, module)
}

// builtIn looks for a module that is no file of its own.
func builtIn(root fs.FS, module string) bool {
	if _, err := fs.Stat(root, path.Join("sys/module", module)); err == nil {
		_, err := fs.Stat(root, path.Join("sys/module", module, "initstate"))
		return errors.Is(err, fs.ErrNotExist)
	}
	release, err := fs.ReadFile(root, "proc/sys/kernel/osrelease")
	if err != nil {
		return false
	}
	found := false
	_ = eachLine(root, path.Join("lib/modules", strings.TrimSpace(string(release)), "modules.builtin"), func(line string) {
		file := strings.TrimSuffix(path.Base(line), ".ko")
		found = found || strings.ReplaceAll(file, "-", "_") == module
	})
	return found
}

// unknown says why there is no such function, and what there is.
func unknown(root fs.FS, name, place string, anywhere bool, l listing) error {
	clones := l.clones
	if !anywhere {
		clones = in(place, clones)
	}
	switch {
	case len(clones) > 0:
		return cloned(name, clones)
	case len(l.exact) > 0:
		where := placesOf(l.exact)
		return fmt.Errorf("function %q: is not in %s but in %s: write --module %s", name, placeWords([]string{place}), placeWords(where), flagWord(where[0]))
	case l.data:
		return fmt.Errorf("function %q: is data, not a function: name a function that uses it", name)
	}
	object := fmt.Sprintf("function %q", name)
	if !anywhere {
		object += " of " + placeWords([]string{place})
	}
	if near := nearNames(root, name, place, anywhere); len(near) > 0 {
		return fmt.Errorf("%s: is unknown: did you mean %s?", object, strings.Join(near, " or "))
	}
	return fmt.Errorf("%s: is unknown: look for it in /proc/kallsyms; a module must be loaded first (modprobe), and what is inlined everywhere is nowhere", object)
}

var partOf = regexp.MustCompile(`\.(cold|part\.[0-9]+)$`)

// cloned says what the compiler has made of a function.
func cloned(name string, clones []symbol) error {
	var whole, parts []string
	for _, s := range clones {
		if partOf.MatchString(s.name) {
			parts = append(parts, s.name)
		} else {
			whole = append(whole, s.name)
		}
	}
	if len(whole) > 0 {
		return fmt.Errorf("function %q: the compiler has made %s of it: name that", name, strings.Join(whole, " and "))
	}
	return fmt.Errorf("function %q: is inlined into its callers, but for the rare part %s: name that, or a function that calls it", name, strings.Join(parts, " and "))
}

// placesOf are the modules of symbols, each once.
func placesOf(symbols []symbol) (places []string) {
	for _, s := range symbols {
		if !slices.Contains(places, s.module) {
			places = append(places, s.module)
		}
	}
	slices.Sort(places)
	return places
}

// placeWords names modules, of which the empty one is the kernel.
func placeWords(places []string) string {
	var words []string
	for _, p := range places {
		if p == "" {
			words = append(words, "the kernel")
		} else {
			words = append(words, "module "+p)
		}
	}
	return strings.Join(words, " and ")
}

// flagWord is the word for a place behind --module.
func flagWord(place string) string {
	if place == "" {
		return Kernel
	}
	return place
}
