package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const editClasses = "classes: # ours\n  - name: voice\n    tier: priority\n"

func TestAddRule(t *testing.T) {
	entry := func(indent string) string {
		return indent + "- match: {cgroup: \"/a \\\"b\\\"\"}\n" + indent + "  class: voice\n"
	}
	for _, tt := range []struct {
		name, text string
		before     int
		want       string
	}{
		{"no rules", editClasses + "\n# the end\n", 9, editClasses + "\n# the end\nrules:\n" + entry("  ")},
		{"no line end", strings.TrimSuffix(editClasses, "\n"), 9, editClasses + "rules:\n" + entry("  ")},
		{"empty rules", "rules:   # none yet\n" + editClasses, 9, "rules:   # none yet\n" + entry("  ") + editClasses},
		{"an empty list", "rules: [] # none yet\n" + editClasses, 9, "rules: # none yet\n" + entry("  ") + editClasses},
		{
			"behind", editClasses + "rules:\n- match: {comm: x} # why\n  class: voice\n  # of x\n\n# the end\n", 9,
			editClasses + "rules:\n- match: {comm: x} # why\n  class: voice\n  # of x\n" + entry("") + "\n# the end\n",
		},
		{
			"behind, in the middle", "rules:\n    - class: voice\n      match:\n        comm: x\n\n# classes\n" + editClasses, 9,
			"rules:\n    - class: voice\n      match:\n        comm: x\n" + entry("    ") + "\n# classes\n" + editClasses,
		},
		{
			"in front of the second", editClasses + "rules:\n  - match: {comm: x}\n    class: voice\n  # for y\n  # alone\n  - match: {comm: y}\n    class: voice\n", 1,
			editClasses + "rules:\n  - match: {comm: x}\n    class: voice\n" + entry("  ") + "  # for y\n  # alone\n  - match: {comm: y}\n    class: voice\n",
		},
		{
			"in front of the first", editClasses + "rules:\n  # for x\n  - match: {comm: x}\n    class: voice", 0,
			editClasses + "rules:\n" + entry("  ") + "  # for x\n  - match: {comm: x}\n    class: voice",
		},
		{
			"lines of another system", strings.ReplaceAll(editClasses+"rules:\n  - match: {comm: x}\n    class: voice", "\n", "\r\n"), 9,
			strings.ReplaceAll(editClasses+"rules:\n  - match: {comm: x}\n    class: voice\n"+entry("  "), "\n", "\r\n"),
		},
	} {
		got, err := AddRule("rota.yaml", []byte(tt.text), Rule{Cgroup: `/a "b"`, Class: "voice"}, tt.before, anyPattern)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: error %v\n%q, want\n%q", tt.name, err, got, tt.want)
		}
	}
}

func TestAddRuleRefuses(t *testing.T) {
	const byHand = "rota.yaml: its rules are not one below the other: add the rule by hand"
	rule := Rule{Comm: "y", Class: "voice"}
	for _, tt := range []struct {
		text string
		rule Rule
		want string
	}{
		{`{"classes": [{"name": "voice"}]}`, rule, byHand},
		{editClasses + "rules: [{match: {comm: x}, class: voice}]\n", rule, byHand},
		{editClasses + "rules:\n  -\n    match: {comm: x}\n    class: voice\n", rule, ""},
		{editClasses + "...\n", rule, byHand},
		{editClasses, Rule{Comm: "bad[", Class: "voice"}, `rota.yaml: rule: comm "bad[" has a [ without ]: close it`},
		{editClasses, Rule{Comm: "y", Class: "none"}, `rota.yaml: class "none" is unknown: add it to classes`},
		{"clases:\n", rule, `rota.yaml:1: unknown key "clases": did you mean classes?`},
	} {
		_, err := AddRule("rota.yaml", []byte(tt.text), tt.rule, 9, anyPattern)
		if (err == nil) != (tt.want == "") || err != nil && err.Error() != tt.want {
			t.Errorf("%q: %v, want %s", tt.text, err, tt.want)
		}
	}
}

// FuzzAddRule: a rule is added as it was meant, or not at all, and nothing is lost.
func FuzzAddRule(f *testing.F) {
	f.Add(editClasses+"rules:\n  - match: {comm: x}\n    class: voice\n", "/a\x01\"b", 0)
	f.Add(editClasses+"rules: []\n", "é", 1)
	f.Add("rules:\n- class: default\n  match: {comm: 'x\n    y'}\n# end", "a", 5)
	f.Add("{}", "a", 5)
	f.Fuzz(func(t *testing.T, text, comm string, before int) {
		if before < 0 || comm == "" || strings.ToValidUTF8(comm, "") != comm || len(comm) > maxValue {
			return
		}
		got, err := AddRule("f", []byte(text), Rule{Comm: comm, Class: DefaultClass}, before, func(string, string) error { return nil })
		if err != nil {
			return
		}
		c, err := Parse("f", got, func(string, string) error { return nil })
		if err != nil || len(c.Rules) == 0 || c.Rules[min(before, len(c.Rules)-1)].Comm != comm {
			t.Errorf("%q became %q: error %v", text, got, err)
		}
	})
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "rota.yaml"), filepath.Join(dir, "link.yaml")
	if err := os.WriteFile(file, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("rota.yaml", link); err != nil {
		t.Fatal(err)
	}
	if err := Replace(link, []byte("old"), []byte("new")); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(file)
	info, err := os.Lstat(link)
	if err != nil || string(text) != "new" || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("%q, link %v, error %v", text, info, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o640 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	if err := Replace(file, []byte("old"), []byte("newer")); err == nil || err.Error() != file+": was changed meanwhile: try again" {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
}
