package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"rota/internal/api"
	"rota/internal/class"
	"rota/internal/config"
	"rota/internal/daemon"
	"rota/internal/identity"
	"rota/internal/where"
)

// maxAdded is how many rules are made at most: a function that more run says nothing
// about who matters.
const maxAdded = 10

// whereAdder makes rules of what was seen.
type whereAdder struct {
	class, path, socket string
	functions           []string // that it looks at, as rules name them
}

// whereRules are the rules that were made.
type whereRules struct {
	Class    string      `json:"class"`
	File     string      `json:"file"`
	Made     []whereRule `json:"made"`
	Written  bool        `json:"written"`  // to the file
	State    string      `json:"state"`    // whether the daemon has them
	Nameless uint64      `json:"nameless"` // calls of tasks that no rule can find
}

// whereRule is one of them.
type whereRule struct {
	Match  map[string]string `json:"match"`
	Class  string            `json:"class"`
	YAML   string            `json:"yaml"`
	Count  uint64            `json:"count"`  // calls of the tasks that it is for
	Before int               `json:"before"` // it stands before the rule with this number, from 1; 0: behind all
	There  bool              `json:"there"`  // the file has these tasks in the class already
}

// read looks whether the class is there, before anybody waits for an answer.
func (a whereAdder) read() error {
	if a.class == "" {
		return nil
	}
	c, err := config.Read(a.path, class.Check)
	if err != nil {
		return err
	}
	var known []string
	for _, k := range c.Classes {
		if k.Name == a.class {
			return nil
		}
		known = append(known, k.Name)
	}
	return fmt.Errorf("class %q: is unknown in %s: %s", a.class, a.path, config.Meant(a.class, known))
}

// add makes the rules and writes them. Made rules are returned also with an error.
func (a whereAdder) add(ctx context.Context, seen where.Report) (*whereRules, error) {
	matches, nameless := seen.Matches(uint32(os.Getpid()))
	if err := a.worthwhile(matches, nameless, seen); err != nil {
		return nil, err
	}
	r := &whereRules{Class: a.class, File: a.path, Nameless: nameless}
	old, err := config.ReadText(a.path)
	if err != nil {
		return nil, err
	}
	text := old
	for _, m := range matches {
		rule, next, failed := a.rule(text, m)
		r.Made = append(r.Made, rule)
		if err = errors.Join(err, failed); failed == nil {
			text = next
		}
	}
	if err != nil {
		return r, err
	}
	if string(text) == string(old) {
		r.State = "nothing to write"
		return r, nil
	}
	if err := config.Replace(a.path, old, text); err != nil {
		return r, err
	}
	r.Written = true
	r.State, err = a.reload(ctx)
	return r, err
}

// worthwhile tells whether there is something to make rules of.
func (a whereAdder) worthwhile(matches []where.Match, nameless uint64, seen where.Report) error {
	object := fmt.Sprintf("--add-to %q", a.class)
	switch {
	case len(matches) > maxAdded:
		return fmt.Errorf("%s: tasks of %d cgroups or programs execute it, at most %d: choose a function that only those execute who matter", object, len(matches), maxAdded)
	case len(matches) > 0:
		return nil
	case nameless > 0:
		return fmt.Errorf("%s: the tasks are in the root cgroup and had ended before their program was known: put them into a cgroup", object)
	case seen.Count > 0:
		return fmt.Errorf("%s: only interrupts execute it, which have no class: choose a function that a task executes", object)
	}
	return fmt.Errorf("%s: nobody executed it: look longer, with --for", object)
}

// rule makes a rule for the tasks of a match and puts it where it counts.
func (a whereAdder) rule(text []byte, m where.Match) (whereRule, []byte, error) {
	pattern := class.Literal(m.Value)
	rule := config.Rule{Class: a.class}
	switch m.Key {
	case where.KeyCgroup:
		rule.Cgroup = pattern
	case where.KeyExe:
		rule.Exe = pattern
	case where.KeyComm:
		rule.Comm = pattern
	}
	made := whereRule{Match: map[string]string{m.Key: pattern}, Class: a.class, YAML: strings.Join(rule.YAML(), "\n"), Count: m.Count}
	c, err := config.Parse(a.path, text, class.Check)
	if err != nil {
		return made, nil, err
	}
	before, there, err := firstWinner(c, a.class, m.Tasks, a.functions)
	if made.There = there; err != nil || there {
		return made, text, err
	}
	if before < len(c.Rules) {
		made.Before = before + 1
	}
	next, err := config.AddRule(a.path, text, rule, before, class.Check)
	return made, next, err
}

// firstWinner is the number of the first rule that gives one of the tasks another
// class: a rule behind it would come too late. There is that all have the class.
func firstWinner(c *config.Config, name string, tasks []where.Task, functions []string) (before int, there bool, err error) {
	classifier, err := daemon.Compile(c.Rules, func(i int) int { return i })
	if err != nil {
		return 0, false, err
	}
	users := identity.Users{Path: passwdFile}
	before, there = len(c.Rules), true
	for _, t := range tasks {
		w := class.Workload{Cgroup: t.Cgroup, Comm: t.Comm, Exe: t.Exe, UID: t.UID, User: users.Name(t.UID), Functions: functions}
		_, won := classifier.Classify(w)
		switch {
		case won == class.NoRule:
			there = there && name == config.DefaultClass
		case c.Rules[won].Class != name:
			before, there = min(before, won), false
		}
	}
	return before, there, nil
}

// reload puts the file in force, if a daemon runs with it.
func (a whereAdder) reload(ctx context.Context) (state string, err error) {
	client := api.NewClient(a.socket)
	status, err := client.Status(ctx)
	if err != nil {
		return "no daemon answers: in force at the next: rota run", nil
	}
	if !sameFile(status.Config.Path, a.path) {
		return fmt.Sprintf("the daemon reads %s, not this file", sourceWords(status.Config.Path)), nil
	}
	if _, err := client.Reload(ctx); err != nil {
		return "not in force: reload it with: rota reload", fmt.Errorf("reload: %w", err)
	}
	return "in force", nil
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	two, err := os.Stat(b)
	return err == nil && os.SameFile(one, two)
}

// write says what was made, and where it is.
func (r *whereRules) write(w io.Writer) {
	for _, rule := range r.Made {
		place := "behind all rules"
		switch {
		case rule.There:
			place = "in the class already, by another rule or as the default"
		case rule.Before > 0:
			place = fmt.Sprintf("before rule %d, which would win", rule.Before)
		}
		fmt.Fprintf(w, "%s\n  # %s, %s\n", safeLines(rule.YAML), plural(int(rule.Count), "call"), place)
	}
	if r.Nameless > 0 {
		fmt.Fprintf(w, "%s of tasks that no rule can find: they ended, outside of any cgroup\n", plural(int(r.Nameless), "call"))
	}
	switch {
	case r.Written:
		fmt.Fprintf(w, "written to %s: %s\n", safe(r.File), r.State)
	case r.State != "":
		fmt.Fprintln(w, r.State)
	}
}

// safeLines is safe for a text of several lines.
func safeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = safe(lines[i])
	}
	return strings.Join(lines, "\n")
}
