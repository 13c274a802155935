package class

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// slowGlob is the obvious definition of a compiled name pattern.
func slowGlob(g glob, s string) bool {
	if len(g) == 0 {
		return s == ""
	}
	if g[0].kind == many {
		if slowGlob(g[1:], s) {
			return true
		}
		if s == "" {
			return false
		}
		_, size := utf8.DecodeRuneInString(s)
		return slowGlob(g, s[size:])
	}
	rest, ok := g[0].take(s)
	return ok && slowGlob(g[1:], rest)
}

// slowPath is the obvious definition of a compiled path pattern.
func slowPath(p path, names []string) bool {
	switch {
	case len(p) == 0:
		return len(names) == 0
	case p[0] == nil:
		return slowPath(p[1:], names) || len(names) > 0 && slowPath(p, names[1:])
	}
	return len(names) > 0 && slowGlob(p[0], names[0]) && slowPath(p[1:], names[1:])
}

func slowMatch(r *rule, w Workload) bool {
	return (!r.byUID || r.uid == w.UID) &&
		(r.user == "" || r.user == w.User) &&
		(r.function == "" || slices.Contains(w.Functions, r.function)) &&
		(r.comm == nil || slowGlob(r.comm, w.Comm)) &&
		(r.cgroup == nil || slowPath(r.cgroup, split(w.Cgroup))) &&
		(r.exe == nil || w.Exe != "" && slowPath(r.exe, split(w.Exe)))
}

// FuzzClassify compares the index and the fast matchers with trying every
// rule in order.
func FuzzClassify(f *testing.F) {
	f.Add("a/**/b*\n\n\n\n\n/x/*\n\nab\n\n\n\n\n\n7\n", "/a/c/bb", "ab", "/x/y", "bob", "", uint32(7))
	f.Add("**/[a-c]?\n*x*\n/\nroot\nf", "/q/bz", "axb", "/", "root", "e f", uint32(0))
	f.Add("\n\n\n\nm:f\n[!a]\n[]]\n\n\n", "/b", "]", "", "", "m:f", uint32(1))
	f.Fuzz(func(t *testing.T, text, cgroup, comm, exe, user, functions string, uid uint32) {
		if len(text)+len(cgroup)+len(comm)+len(exe) > 200 || strings.Count(text, "*") > 8 {
			return // the model is exponential
		}
		var c Classifier
		lines := strings.Split(text, "\n")
		var rules []Rule
		for len(lines) >= 5 {
			r := Rule{Cgroup: lines[0], Comm: lines[1], Exe: lines[2], User: lines[3], Function: lines[4], Class: len(rules) + 1}
			lines = lines[5:]
			if _, err := compileRule(r); err == nil {
				rules = append(rules, r)
			}
		}
		compiled, err := Compile(rules)
		if err != nil {
			t.Fatal(err)
		}
		c = *compiled
		w := Workload{Cgroup: cgroup, Comm: comm, Exe: exe, User: user, UID: uid, Functions: strings.Fields(functions)}
		want := NoRule
		for i := range c.rules {
			if slowMatch(&c.rules[i], w) {
				want = i
				break
			}
		}
		if class, got := c.Classify(w); got != want || class != want+1 {
			t.Fatalf("rules %+v, workload %+v: rule %d, want %d", rules, w, got, want)
		}
	})
}
