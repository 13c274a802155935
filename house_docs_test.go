package rota

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	// Folders of one person's machine.
	machinePath = regexp.MustCompile(`(^|[\s"'` + "`" + `=(:])/(home|root|work|Users|mnt)/[\w.-]`)
	// Machines that packages come from: which ones is the machine's own affair.
	packageHost = regexp.MustCompile(`\b((deb|archive|security|snapshot|ftp|ports)\.[\w.]*(debian|ubuntu)\.(org|com)|\w+\.pkg\.dev|(proxy|sum)\.golang\.org|registry\.\w+\.\w+)\b`)
)

// places: nothing in the tree points at one machine or at one registry.
func places(tree fs.FS) (faults []string, err error) {
	err = files(tree, func(name string, data []byte) error {
		if strings.HasPrefix(name, "house_") || path.Base(name) == "go.sum" {
			return nil
		}
		n := 0
		for line := range strings.Lines(string(data)) {
			n++
			for _, bad := range []*regexp.Regexp{machinePath, packageHost} {
				if found := bad.FindString(line); found != "" {
					faults = append(faults, fmt.Sprintf("%s:%d: %q belongs to one machine", name, n, strings.TrimSpace(found)))
				}
			}
		}
		return nil
	}, "*")
	return faults, err
}

// changelog: what a user notices is written down when it is made.
func changelog(tree fs.FS) ([]string, error) {
	data, err := fs.ReadFile(tree, "CHANGELOG.md")
	if err != nil {
		return nil, err
	}
	if _, rest, ok := strings.Cut(string(data), "\n## Unreleased\n"); !ok || !strings.Contains(rest, "\n- ") {
		return []string{"CHANGELOG.md: no line under \"## Unreleased\""}, nil
	}
	return nil, nil
}

var link = regexp.MustCompile(`(?:\]\(|src=")([^)"#\s]+)`)

// links: what a document points at in the tree is there.
func links(tree fs.FS) (faults []string, err error) {
	err = files(tree, func(name string, data []byte) error {
		for _, m := range link.FindAllStringSubmatch(withoutCode(string(data)), -1) {
			if strings.Contains(m[1], ":") {
				continue
			}
			if _, err := fs.Stat(tree, path.Join(path.Dir(name), m[1])); err != nil {
				faults = append(faults, fmt.Sprintf("%s: links to %s, which is not there", name, m[1]))
			}
		}
		return nil
	}, "*.md")
	return faults, err
}

var (
	fence  = regexp.MustCompile("(?ms)^```.*?^```$")
	inline = regexp.MustCompile("`[^`\n]+`")
	target = regexp.MustCompile(`(?m)^([a-z0-9]+):`)
	// A command line of ours: at the beginning of a line of code, after a
	// prompt or sudo, as make, rota or rota-lab.
	ours   = regexp.MustCompile(`(?m)^(?:\$ |# )?(?:sudo )?(?:bin/|/usr/bin/)?(make|rota-lab|rota)(?: ([^#\n|>&]*)|$)`)
	option = regexp.MustCompile(`^--([a-z][a-z0-9_-]*)`)
	word   = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
)

func withoutCode(text string) string {
	return inline.ReplaceAllString(fence.ReplaceAllString(text, ""), "")
}

// codeOf is the code in a document: the fenced blocks, and each inline span
// on a line of its own.
func codeOf(text string) string {
	code := strings.Join(fence.FindAllString(text, -1), "\n")
	for _, span := range inline.FindAllString(fence.ReplaceAllString(text, ""), -1) {
		code += "\n" + strings.Trim(span, "`")
	}
	return code
}

// program is what a command line program of ours understands.
type program struct {
	commands []string // the words of cobra's Use, first words only
	strings  []string // every string in its source: flags are among them
}

func programs(tree fs.FS) (map[string]*program, error) {
	found := map[string]*program{}
	err := goFiles(tree, func(name string, _ *token.FileSet, file *ast.File) {
		if !strings.HasPrefix(name, "cmd/") || strings.HasSuffix(name, "_test.go") {
			return
		}
		p := found[path.Base(path.Dir(name))]
		if p == nil {
			p = &program{commands: []string{"help", "completion"}, strings: []string{"help", "version"}}
			found[path.Base(path.Dir(name))] = p
		}
		ast.Inspect(file, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Use" {
					p.commands = append(p.commands, strings.Fields(literal(n.Value))[:1]...)
				}
			case *ast.BasicLit:
				p.strings = append(p.strings, literal(n))
			}
			return true
		})
	})
	return found, err
}

// literal is the value of a string literal, and "?" of anything else.
func literal(expr ast.Expr) string {
	if lit, ok := expr.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		if s, err := strconv.Unquote(lit.Value); err == nil && strings.TrimSpace(s) != "" {
			return s
		}
	}
	return "?"
}

// commands: each command and flag that a document names exists.
func commands(tree fs.FS) (faults []string, err error) {
	known, err := programs(tree)
	if err != nil {
		return nil, err
	}
	makefile, err := fs.ReadFile(tree, "Makefile")
	if err != nil {
		return nil, err
	}
	known["make"] = &program{}
	for _, m := range target.FindAllStringSubmatch(string(makefile), -1) {
		known["make"].commands = append(known["make"].commands, m[1])
	}
	err = files(tree, func(name string, data []byte) error {
		if strings.HasPrefix(name, "docs/decisions/") {
			return nil // they speak of what was and of what may come
		}
		for _, m := range ours.FindAllStringSubmatch(codeOf(string(data)), -1) {
			if fault := understands(known[m[1]], strings.Fields(m[2])); fault != "" {
				faults = append(faults, fmt.Sprintf("%s: `%s`: %s", name, strings.TrimSpace(m[0]), fault))
			}
		}
		return nil
	}, "*.md")
	return faults, err
}

// understands says what of a command line p does not know.
func understands(p *program, words []string) string {
	if p == nil {
		return "there is no such program"
	}
	if len(words) > 0 && word.MatchString(words[0]) && !slices.Contains(p.commands, words[0]) {
		return fmt.Sprintf("no command %q", words[0])
	}
	for _, w := range words {
		if m := option.FindStringSubmatch(w); m != nil && !slices.Contains(p.strings, m[1]) {
			return "no flag --" + m[1]
		}
	}
	return ""
}

// brokenWords is what the rules about documents and C must find.
func brokenWords() []broken {
	return append(brokenBPF(), []broken{
		{"home", places, "a.go", `x := "/` + `home/me/rota"`, "belongs to one machine"},
		{"host", places, "a.sh", "curl deb." + "debian.org/x", "belongs to one machine"},
		{"path of the system", places, "a.go", `x := "/run/rota/rota.sock"`, ""},
		{"empty changelog", changelog, "CHANGELOG.md", "# Changelog\n\n## Unreleased\n", "no line under"},
		{"dead link", links, "README.md", "[x](docs/x.md)", "not there"},
		{"live link", links, "README.md", "[x](Makefile) [y](https://example.org) `[z](z.md)`", ""},
		{"make target", commands, "README.md", "run `make build`", ""},
		{"no make target", commands, "README.md", "run `make coffee`", `no command "coffee"`},
		{"no program", commands, "README.md", "```\nsudo rota run\n```", "no such program"},
		{"command", commands, "README.md", "```\nbin/rota-lab run ping --seed 2\n```", ""},
		{"no command", commands, "README.md", "```\n$ rota-lab walk ping\n```", `no command "walk"`},
		{"no flag", commands, "README.md", "`rota-lab run ping --sed 2`", "no flag --sed"},
		{"prose", commands, "README.md", "to make coffee, rota waits", ""},
	}...)
}
