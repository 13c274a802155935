package rota

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

//go:generate go test -run ^TestGuaranteesTable$ . -update

var update = flag.Bool("update", false, "write the table of guarantees into README.md")

// A test that proves a guarantee says so in its comment, up to the next blank
// line: "Guarantee G5, safe exit: when the daemon dies, ...".
var guarantee = regexp.MustCompile(`(?s)Guarantee (G\d), ([^:]+): (.*?)\.?(\n\n|$)`)

const (
	tableBegin = "<!-- guarantees: written by make generate -->\n"
	tableEnd   = "<!-- /guarantees -->\n"
)

// guaranteesTable is the table in the README: what is promised, and the test
// that holds it.
func guaranteesTable(tree fs.FS) (string, error) {
	var rows []string
	err := goFiles(tree, func(name string, _ *token.FileSet, file *ast.File) {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Doc == nil || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			if m := guarantee.FindStringSubmatch(f.Doc.Text()); m != nil {
				text := strings.Join(strings.Fields(m[3]), " ")
				rows = append(rows, fmt.Sprintf("| %s %s | %s | [`%s`](%s) |\n", m[1], m[2], text, f.Name.Name, name))
			}
		}
	})
	slices.Sort(rows)
	return "| guarantee | what it says | the test that holds it |\n|---|---|---|\n" + strings.Join(rows, ""), err
}

// TestGuaranteesTable holds the README to what the tests prove, in their words.
func TestGuaranteesTable(t *testing.T) {
	table, err := guaranteesTable(tree{os.DirFS(".")})
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(readme), tableBegin)
	now, after, ok := strings.Cut(rest, tableEnd)
	switch {
	case !ok:
		t.Fatalf("README.md: no place for the table between %q and %q", tableBegin, tableEnd)
	case !*update && now != table:
		t.Errorf("README.md: the table of guarantees is not that of the tests (run make generate):\n%s", now)
	case *update:
		err = os.WriteFile("README.md", []byte(before+tableBegin+table+tableEnd+after), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestGuaranteesTableReadsTheComment(t *testing.T) {
	table, err := guaranteesTable(fstest.MapFS{"lab/a/a_test.go": {Data: []byte("package a\n" + `
// TestSafeExit kills the daemon.
//
// Guarantee G5, safe exit: when the daemon dies, the kernel's own scheduler
// has every task at once.
//
// It takes a minute.
func TestSafeExit(t *testing.T) {}
`)}})
	want := "| G5 safe exit | when the daemon dies, the kernel's own scheduler has every task at once | [`TestSafeExit`](lab/a/a_test.go) |\n"
	if err != nil || !strings.HasSuffix(table, want) {
		t.Errorf("table %q, error %v, want the row %q", table, err, want)
	}
}
