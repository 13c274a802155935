package rota

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

const dependencies = "docs/decisions/0002-dependencies.md"

var moduleRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// libraries: each module that is not ours has a line that says what for, and
// each line a module that is used.
func libraries(tree fs.FS) (faults []string, err error) {
	text, err := fs.ReadFile(tree, dependencies)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, m := range moduleRow.FindAllStringSubmatch(string(text), -1) {
		used[m[1]] = false
	}
	err = goFiles(tree, func(name string, _ *token.FileSet, file *ast.File) {
		for _, spec := range file.Imports {
			what := strings.Trim(spec.Path.Value, `"`)
			if first, _, _ := strings.Cut(what, "/"); !strings.Contains(first, ".") {
				continue
			}
			if module := rowOf(used, what); module != "" {
				used[module] = true
				continue
			}
			faults = append(faults, fmt.Sprintf("%s: imports %s, which has no row in %s", name, what, dependencies))
		}
	})
	for module, use := range used {
		if !use {
			faults = append(faults, fmt.Sprintf("%s: nothing imports %s", dependencies, module))
		}
	}
	slices.Sort(faults)
	return faults, err
}

// rowOf finds the module that a package belongs to.
func rowOf(modules map[string]bool, pkg string) string {
	for module := range modules {
		if strings.HasPrefix(pkg+"/", module+"/") {
			return module
		}
	}
	return ""
}
