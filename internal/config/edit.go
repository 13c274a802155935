package config

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// errLayout is that a file is good, but not laid out so that a rule can be put in
// without writing the rest anew.
var errLayout = errors.New("its rules are not one below the other: add the rule by hand")

// YAML is the rule as an entry of "rules", without indentation.
func (r Rule) YAML() []string {
	var words []string
	for _, key := range r.keys() {
		words = append(words, key.name+": "+strconv.Quote(key.value))
	}
	return []string{"- match: {" + strings.Join(words, ", ") + "}", "  class: " + r.Class}
}

type matchKey struct{ name, value string }

// keys are the match keys that the rule has.
func (r Rule) keys() []matchKey {
	all := []matchKey{{"cgroup", r.Cgroup}, {"comm", r.Comm}, {"exe", r.Exe}, {"user", r.User}, {"kernelFunction", r.KernelFunction}}
	return slices.DeleteFunc(all, func(k matchKey) bool { return k.value == "" })
}

// AddRule puts a rule into the text of a file, in front of the rule with the number
// before, from 0, or behind all. Everything else stays as it is written, comments
// too. The new text has passed every check.
func AddRule(file string, data []byte, rule Rule, before int, check Check) ([]byte, error) {
	old, err := Parse(file, data, check)
	if err != nil {
		return nil, err
	}
	if err := checkRule(rule, old, check); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	before = min(before, len(old.Rules))
	text, err := insertRule(data, rule.YAML(), before)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	now, err := Parse(file, text, check)
	if err != nil || !asWanted(*now, *old, rule, before) {
		return nil, fmt.Errorf("%s: %w", file, errLayout)
	}
	return text, nil
}

// checkRule tells whether a rule could stand in the file.
func checkRule(rule Rule, c *Config, check Check) error {
	if len(c.Rules) >= MaxRules {
		return fmt.Errorf("rules: there are %d, no more fit: join some with patterns (*, **)", len(c.Rules))
	}
	if !slices.ContainsFunc(c.Classes, func(class Class) bool { return class.Name == rule.Class }) {
		return fmt.Errorf("class %s is unknown: add it to classes", quoted(rule.Class))
	}
	for _, key := range rule.keys() {
		if err := check(key.name, key.value); err != nil {
			return fmt.Errorf("rule: %s %s %w", key.name, quoted(key.value), err)
		}
	}
	return nil
}

// asWanted tells whether now is old with the rule in its place, and nothing else.
func asWanted(now, old Config, rule Rule, before int) bool {
	old.Rules = slices.Insert(slices.Clone(old.Rules), before, rule)
	for _, c := range []*Config{&now, &old} {
		c.Rules, c.Classes = slices.Clone(c.Rules), slices.Clone(c.Classes)
		for i := range c.Rules {
			c.Rules[i].Line = 0
		}
		for i := range c.Classes {
			c.Classes[i].Line = 0
		}
	}
	return reflect.DeepEqual(now, old)
}

// insertRule puts lines into the text, in front of the entry with that number.
func insertRule(data []byte, entry []string, before int) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, err
	}
	lines := strings.SplitAfter(string(data), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	at, indent := len(lines), 2
	switch rules, next, err := findRules(document, len(lines)); {
	case err != nil:
		return nil, err
	case rules == nil:
		entry = append([]string{"rules:"}, indented(entry, 2)...)
		indent = 0
	case rules.Kind == yaml.SequenceNode && len(rules.Content) > 0:
		indent = rules.Column - 1
		if at = behind(lines, rules, next, indent); before < len(rules.Content) {
			at = inFront(lines, rules.Content[before].Line-1)
		}
	case rules.Kind == yaml.SequenceNode: // []
		line := lines[rules.Line-1]
		start := rules.Column - 1
		if start > len(line) || !strings.HasPrefix(line[start:], "[]") {
			return nil, errLayout
		}
		lines[rules.Line-1] = strings.TrimRight(line[:start], " ") + line[start+2:]
		at = rules.Line
	default: // nothing behind the key
		at = rules.Line
	}
	return splice(lines, at, indented(entry, indent)), nil
}

// findRules finds the value of the key rules, nil when there is no such key, and the
// line of the next key, from 0. Lists and keys in brackets can't be added to.
func findRules(document yaml.Node, end int) (rules *yaml.Node, next int, err error) {
	if len(document.Content) == 0 || isNull(document.Content[0]) {
		return nil, end, nil
	}
	root := document.Content[0]
	if root.Style&yaml.FlowStyle != 0 {
		return nil, 0, errLayout
	}
	next = end
	for i := 0; i+1 < len(root.Content); i += 2 {
		if rules != nil {
			return rules, root.Content[i].Line - 1, nil
		}
		if root.Content[i].Value == "rules" {
			rules = root.Content[i+1]
		}
	}
	if rules != nil && rules.Style&yaml.FlowStyle != 0 && len(rules.Content) > 0 {
		return nil, 0, errLayout
	}
	return rules, next, nil
}

// inFront is the line above the comment of an entry.
func inFront(lines []string, at int) int {
	for at > 0 && strings.HasPrefix(strings.TrimSpace(lines[at-1]), "#") {
		at--
	}
	return at
}

// behind is the line behind the last entry: what is indented deeper belongs to it.
func behind(lines []string, rules *yaml.Node, end, indent int) int {
	last := rules.Content[len(rules.Content)-1].Line
	for end > last {
		text := strings.TrimLeft(lines[end-1], " ")
		comment := strings.HasPrefix(text, "#") && len(lines[end-1])-len(text) <= indent
		if !comment && strings.TrimSpace(text) != "" {
			break
		}
		end--
	}
	return end
}

func indented(lines []string, n int) (out []string) {
	for _, line := range lines {
		out = append(out, strings.Repeat(" ", n)+line)
	}
	return out
}

// splice puts new lines in front of line at, with the ends that the others have.
func splice(lines []string, at int, entry []string) []byte {
	end := "\n"
	if len(lines) > 0 && strings.HasSuffix(lines[0], "\r\n") {
		end = "\r\n"
	}
	var b bytes.Buffer
	for i := 0; i <= len(lines); i++ {
		if i == at {
			if i > 0 && !strings.HasSuffix(lines[i-1], "\n") {
				b.WriteString(end)
			}
			b.WriteString(strings.Join(entry, end) + end)
		}
		if i < len(lines) {
			b.WriteString(lines[i])
		}
	}
	return b.Bytes()
}
