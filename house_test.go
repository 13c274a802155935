// Package rota holds the tests that hold the repository to its own rules: how
// the tree is cut, who may import whom, how long things may get, and that the
// documents name only commands that exist. There is no code to import here.
package rota

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const (
	maxFileLines     = 400 // of Go
	maxFunctionLines = 60  // of Go and of C
	maxTestLines     = 100 // of a test, which holds its table
)

// tooLong lists the files and functions that may be longer, each with the
// reason. A name that no longer needs its exception fails the test.
var tooLong = map[string]string{}

// A rule looks at the tree and says what is against it, one fault per line,
// beginning with the file.
type rule func(tree fs.FS) ([]string, error)

func TestHouse(t *testing.T) {
	rules := map[string]rule{
		"folders":   folders,
		"packages":  packageDocs,
		"imports":   imports,
		"lengths":   lengths(tooLong),
		"c lengths": cLengths,
		"bpf":       bpfParts,
		"places":    places,
		"licences":  licences,
		"changelog": changelog,
		"links":     links,
		"commands":  commands,
		"vm tests":  vmTests,
		"libraries": libraries,
	}
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			faults, err := rule(tree{os.DirFS(".")})
			if err != nil {
				t.Fatal(err)
			}
			for _, fault := range faults {
				t.Error(fault)
			}
		})
	}
}

// tree is a file system without what make made and what git keeps.
type tree struct{ fs.FS }

func (t tree) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(t.FS, name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		made := name == "." && slices.Contains([]string{".git", "bin", "out"}, e.Name())
		return made || strings.HasSuffix(e.Name(), ".o") || strings.HasSuffix(e.Name(), ".test")
	}), err
}

// files calls visit for each file whose name fits one of the patterns.
func files(tree fs.FS, visit func(name string, data []byte) error, patterns ...string) error {
	return fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		fits := func(pattern string) bool {
			ok, _ := path.Match(pattern, path.Base(name))
			return ok
		}
		if !slices.ContainsFunc(patterns, fits) {
			return nil
		}
		data, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		return visit(name, data)
	})
}

// goFiles calls visit for each parsed Go file.
func goFiles(tree fs.FS, visit func(name string, set *token.FileSet, file *ast.File)) error {
	return files(tree, func(name string, data []byte) error {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, data, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		visit(name, set, file)
		return nil
	}, "*.go")
}

// folders: a folder is a noun of the domain, not a heap.
func folders(tree fs.FS) (faults []string, err error) {
	heaps := []string{"pkg", "util", "utils", "common", "helpers", "support", "misc", "lib"}
	err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && slices.Contains(heaps, entry.Name()) {
			faults = append(faults, name+": a folder is named after what it is about")
		}
		return err
	})
	return faults, err
}

// packageDocs: each package says what it is, once.
func packageDocs(tree fs.FS) (faults []string, err error) {
	said := map[string][]string{} // folder -> files that say it
	err = goFiles(tree, func(name string, _ *token.FileSet, file *ast.File) {
		folder := path.Dir(name)
		if strings.HasSuffix(name, "_test.go") && folder != "." {
			return
		}
		said[folder] = append(said[folder], "")
		if file.Doc != nil && !strings.HasPrefix(file.Doc.Text(), "Code generated") {
			said[folder] = append(said[folder], name)
		}
	})
	for folder, by := range said {
		by = slices.DeleteFunc(by, func(name string) bool { return name == "" })
		if len(by) != 1 {
			faults = append(faults, fmt.Sprintf("%s: %d package comments, want one: %v", folder, len(by), by))
		}
	}
	return faults, err
}

// mayImport says which packages of ours a folder may import, by prefix; the
// first row that fits counts. Nothing else of ours may be imported, and an
// empty list means nothing at all.
var mayImport = []struct {
	from string
	to   []string
}{
	{"cmd/rota-lab", []string{"rota/lab/"}},
	{"cmd/rota", []string{"rota/internal/", "rota/bench/"}},
	{"internal/daemon", []string{"rota/internal/config", "rota/internal/class", "rota/internal/sched", "rota/internal/api", "rota/internal/dedicate", "rota/internal/cpulist", "rota/internal/identity", "rota/internal/where", "rota/internal/frequency", "rota/internal/counters"}},
	{"internal/config", []string{"rota/internal/nearest", "rota/internal/cpulist"}},
	{"internal/sched", []string{"rota/internal/cpulist", "rota/internal/preemptcount", "rota/internal/btftest"}},
	{"internal/preemptcount", []string{"rota/internal/btftest"}},
	{"internal/counters", []string{"rota/internal/cpulist", "rota/internal/kernfile"}},
	{"internal/frequency", []string{"rota/internal/kernfile"}},
	{"internal/dedicate", []string{"rota/internal/cpulist", "rota/internal/kernfile"}},
	{"internal/where", []string{"rota/internal/nearest", "rota/internal/identity", "rota/internal/preemptcount"}},
	{"internal/", nil},
	{"bench/cpufreq", []string{"rota/internal/kernfile"}},
	{"bench/", []string{"rota/bench/"}},
	{"packaging", []string{"rota/internal/config", "rota/internal/class"}},
	{"examples", []string{"rota/internal/config", "rota/internal/class"}},
	{"docs", []string{"rota/internal/config", "rota/internal/class", "rota/lab/scenario"}},
	{"lab/", []string{"rota/lab/"}},
}

// loaders are the packages that load a BPF object, prepare one, or make types for their tests.
var loaders = []string{"internal/sched", "internal/where", "internal/preemptcount", "internal/btftest", "bench/runnable"}

// imports: the direction is cmd -> daemon -> {config, class, sched}, cmd -> api
// and cmd -> bench; the lab knows rota only as a program to run; who has a BPF
// object of its own knows about BPF objects.
func imports(tree fs.FS) (faults []string, err error) {
	err = goFiles(tree, func(name string, _ *token.FileSet, file *ast.File) {
		folder := path.Dir(name)
		for _, spec := range file.Imports {
			what := strings.Trim(spec.Path.Value, `"`)
			if strings.HasPrefix(what, "github.com/cilium/ebpf") && !slices.Contains(loaders, folder) {
				faults = append(faults, fmt.Sprintf("%s: imports %s: only %s may", name, what, strings.Join(loaders, " and ")))
			}
			if what != "rota/"+folder && strings.HasPrefix(what, "rota/") && !allowed(folder, what) {
				faults = append(faults, fmt.Sprintf("%s: must not import %s", name, what))
			}
		}
	})
	return faults, err
}

func allowed(folder, what string) bool {
	for _, row := range mayImport {
		if strings.HasPrefix(folder+"/", row.from+"/") || strings.HasSuffix(row.from, "/") && strings.HasPrefix(folder, row.from) {
			return slices.ContainsFunc(row.to, func(to string) bool { return strings.HasPrefix(what+"/", strings.TrimSuffix(to, "/")+"/") })
		}
	}
	return false
}

// lengths: what is short can be read. Exceptions that are not needed are
// faults, too.
func lengths(exceptions map[string]string) rule {
	return func(tree fs.FS) (faults []string, err error) {
		used := map[string]bool{}
		long := func(what string, lines, most int) {
			if lines <= most {
				return
			}
			used[what] = true
			if exceptions[what] == "" {
				faults = append(faults, fmt.Sprintf("%s: %d lines, at most %d", what, lines, most))
			}
		}
		err = goFiles(tree, func(name string, set *token.FileSet, file *ast.File) {
			long(name, set.File(file.FileStart).LineCount(), maxFileLines)
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok {
					lines := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1
					most := maxFunctionLines
					if strings.HasSuffix(name, "_test.go") {
						most = maxTestLines
					}
					long(name+" "+f.Name.Name, lines, most)
				}
			}
		})
		for what := range exceptions {
			if !used[what] {
				faults = append(faults, what+": not too long any more: take it off the list")
			}
		}
		return faults, err
	}
}

var (
	testFunction = regexp.MustCompile(`(?m)^func (Test|Fuzz|Benchmark)\w*\(`)
	vmTag        = regexp.MustCompile(`(?m)^//go:build vm$`)
)

// vmTests: what starts a virtual machine is marked as such, so that the unit
// tests stay fast and run anywhere.
func vmTests(tree fs.FS) (faults []string, err error) {
	err = files(tree, func(name string, data []byte) error {
		head, _, _ := strings.Cut(string(data), "\npackage ")
		if strings.Contains(head, "//go:build") && !vmTag.MatchString(head) {
			faults = append(faults, name+`: the tag of a test is "vm" alone, or make would not run it`)
		}
		if vmTag.MatchString(head) && !testFunction.Match(data) {
			faults = append(faults, name+": tagged vm and holds no test")
		}
		return nil
	}, "*_test.go")
	return faults, err
}

// broken is a file and what a rule must find in it.
type broken struct {
	name string
	rule rule
	file string
	text string
	want string // "" means nothing to find
}

// TestRules breaks each rule once, to see that it notices.
func TestRules(t *testing.T) {
	long := "package a\n" + strings.Repeat("\n", maxFileLines)
	longer := "package a\n\nfunc f() {\n" + strings.Repeat("\n", maxFunctionLines) + "}\n"
	tests := []broken{
		{"heap", folders, "internal/util/a.go", "package util", "named after what it is about"},
		{"no heap", folders, "internal/utility/a.go", "package utility", ""},
		{"no comment", packageDocs, "lab/a/a.go", "package a", "0 package comments"},
		{"comment", packageDocs, "lab/a/a.go", "// Package a is.\npackage a", ""},
		{"bpf outside", imports, "internal/daemon/a.go", `package daemon; import "github.com/cilium/ebpf/link"`, "only internal/sched"},
		{"bpf inside", imports, "internal/sched/a.go", `package sched; import "github.com/cilium/ebpf/link"`, ""},
		{"bpf of a bench", imports, "bench/runnable/a.go", `package runnable; import "github.com/cilium/ebpf/link"`, ""},
		{"upwards", imports, "internal/sched/a.go", `package sched; import "rota/internal/daemon"`, "must not import"},
		{"sideways", imports, "internal/config/a.go", `package config; import "rota/internal/class"`, "must not import"},
		{"downwards", imports, "internal/daemon/a.go", `package daemon; import "rota/internal/sched"`, ""},
		{"lab inwards", imports, "lab/guest/a.go", `package guest; import "rota/internal/config"`, "must not import"},
		{"lab sideways", imports, "lab/guest/a.go", `package guest; import "rota/lab/machine"`, ""},
		{"bench inwards", imports, "bench/a/a.go", `package a; import "rota/internal/sched"`, "must not import"},
		{"program of the lab", imports, "cmd/rota-lab/a.go", `package main; import "rota/internal/config"`, "must not import"},
		{"own tests", imports, "internal/config/a_test.go", `package config_test; import "rota/internal/config"`, ""},
		{"long file", lengths(nil), "lab/a/a.go", long, "401 lines"},
		{"long function", lengths(nil), "lab/a/a.go", longer, "62 lines"},
		{"excused", lengths(map[string]string{"lab/a/a.go": "a table"}), "lab/a/a.go", long, ""},
		{"excuse not needed", lengths(map[string]string{"lab/a/a.go": "a table"}), "lab/a/a.go", "package a", "take it off"},
		{"library without a row", libraries, "lab/a/a.go", `package a; import "example.org/ab"`, "no row"},
		{"row without a library", libraries, "lab/a/a.go", `package a; import "fmt"`, "nothing imports example.org/a"},
		{"library", libraries, "lab/a/a.go", `package a; import "example.org/a/b"`, ""},
		{"tag", vmTests, "a_test.go", "//go:build vm && linux\n\npackage a", `is "vm" alone`},
		{"tag without test", vmTests, "a_test.go", "//go:build vm\n\npackage a", "holds no test"},
		{"tag with test", vmTests, "a_test.go", "//go:build vm\n\npackage a\n\nfunc TestX(t *testing.T) {}", ""},
	}
	for _, test := range append(tests, brokenWords()...) {
		t.Run(test.name, func(t *testing.T) {
			files := fstest.MapFS{test.file: {Data: []byte(test.text)}}
			if files[dependencies] == nil {
				files[dependencies] = &fstest.MapFile{Data: []byte("| `example.org/a` | x |\n")}
			}
			if test.file == "README.md" {
				files["Makefile"] = &fstest.MapFile{Data: []byte("build: bin ## x\n")}
				files["cmd/rota-lab/main.go"] = &fstest.MapFile{Data: []byte(`package main; var run = cobra.Command{Use: "run SCENARIO"}; var flag = "seed"`)}
			}
			faults, err := test.rule(files)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(faults, "\n")
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("faults %q, want %q", got, test.want)
			}
		})
	}
}
