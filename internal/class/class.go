// Package class finds the class of a workload by the rules of the
// configuration.
//
// It is pure: it reads no file and no process. Package daemon gathers what is
// known about a task (a Workload) and hands it in; package config lets it
// check the patterns of a file (Check). It imports nothing of ours.
//
// Patterns know *, ? and [...] inside one path component and ** for any
// number of whole components. A cgroup or exe pattern matches that path and
// everything below it.
package class

import (
	"fmt"
	"slices"
	"strconv"
)

// Workload is what is known about one task. Everything in it but the UID was
// chosen by the task or its owner, so nothing in it can be trusted.
type Workload struct {
	Cgroup string // path in the cgroup v2 tree, "/" is its root
	Comm   string // name of the thread
	Exe    string // path of the program; empty for a kernel thread
	User   string // name of UID; empty when it has none
	UID    uint32 // effective user
	// Functions are those of the rules that it was lately seen to execute.
	Functions []string
}

// Rule gives a class to the workloads that match every key it has. Empty
// keys are absent.
type Rule struct {
	Cgroup, Comm, Exe, User string
	Function                string // of the kernel, that it executes
	Class                   int    // what Classify returns
}

// Needs tells which parts of a Workload some rule looks at: nobody has to
// gather the others.
type Needs struct{ Cgroup, Comm, Exe, User, UID, Functions bool }

// NoRule is the rule that Classify returns for an unmatched workload.
const NoRule = -1

// Classifier is a compiled list of rules. It is never changed after Compile,
// so any number of goroutines may use it.
type Classifier struct {
	rules []rule
	index index
	needs Needs
}

type rule struct {
	cgroup, exe path
	comm        glob
	user        string // a name; empty: none
	function    string
	uid         uint32
	byUID       bool
	class       int
}

// Compile prepares rules. The error names the rule by its number, from 1.
func Compile(rules []Rule) (*Classifier, error) {
	c := &Classifier{rules: make([]rule, len(rules))}
	for i, r := range rules {
		compiled, err := compileRule(r)
		if err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		c.rules[i] = compiled
		c.needs.add(compiled)
	}
	c.index = buildIndex(c.rules)
	return c, nil
}

func compileRule(r Rule) (rule, error) {
	out := rule{class: r.Class}
	for _, match := range []struct{ key, value string }{
		{KeyCgroup, r.Cgroup}, {KeyComm, r.Comm}, {KeyExe, r.Exe}, {KeyUser, r.User}, {KeyFunction, r.Function},
	} {
		if match.value == "" {
			continue
		}
		if err := out.add(match.key, match.value); err != nil {
			return rule{}, fmt.Errorf("%s %q %w", match.key, match.value, err)
		}
	}
	return out, nil
}

// add compiles one match key into r.
func (r *rule) add(key, value string) error {
	err := Check(key, value)
	if err != nil {
		return err
	}
	switch key {
	case KeyCgroup:
		r.cgroup, err = compilePath(value)
	case KeyExe:
		r.exe, err = compilePath(value)
	case KeyComm:
		r.comm, err = compileGlob(value)
	case KeyUser:
		if uid, number := parseUID(value); number {
			r.uid, r.byUID = uid, true
		} else {
			r.user = value
		}
	case KeyFunction:
		r.function = value
	}
	return err
}

func parseUID(s string) (uint32, bool) {
	uid, err := strconv.ParseUint(s, 10, 32)
	return uint32(uid), err == nil
}

func (n *Needs) add(r rule) {
	n.Cgroup = n.Cgroup || r.cgroup != nil
	n.Comm = n.Comm || r.comm != nil
	n.Exe = n.Exe || r.exe != nil
	n.User = n.User || r.user != ""
	n.Functions = n.Functions || r.function != ""
	n.UID = n.UID || r.user != "" || r.byUID
}

// Needs tells what to gather for Classify.
func (c *Classifier) Needs() Needs { return c.needs }

// ByFunction tells whether a rule, by its index, looks at what a task executes: then its
// class is not for the task's children.
func (c *Classifier) ByFunction(rule int) bool {
	return rule >= 0 && rule < len(c.rules) && c.rules[rule].function != ""
}

// Classify returns the class of the first rule that matches w and that
// rule's index, or 0 and NoRule.
func (c *Classifier) Classify(w Workload) (class, rule int) {
	cgroup, exe := split(w.Cgroup), split(w.Exe)
	first := len(c.rules)
	c.index.each(w, cgroup, exe, func(candidates []int32) {
		for _, i := range candidates {
			if int(i) >= first {
				return
			}
			if c.rules[i].matches(w, cgroup, exe) {
				first = int(i)
				return
			}
		}
	})
	if first == len(c.rules) {
		return 0, NoRule
	}
	return c.rules[first].class, first
}

func (r *rule) matches(w Workload, cgroup, exe []string) bool {
	switch {
	case r.byUID && r.uid != w.UID:
		return false
	case r.user != "" && r.user != w.User:
		return false
	case r.function != "" && !slices.Contains(w.Functions, r.function):
		return false
	case r.comm != nil && !r.comm.match(w.Comm):
		return false
	case r.cgroup != nil && !r.cgroup.match(cgroup):
		return false
	}
	// A kernel thread has no program: no pattern, not even **, matches it.
	return r.exe == nil || (w.Exe != "" && r.exe.match(exe))
}
