package config

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

func (r *reader) rules(n *yaml.Node, c *Config) {
	known := make([]string, len(c.Classes))
	for i, class := range c.Classes {
		known[i] = class.Name
	}
	if n.Kind == yaml.SequenceNode && len(n.Content) > MaxRules {
		r.fault(n.Content[MaxRules].Line, "join rules with patterns (*, **)", "rules: %d are too many, at most %d", len(n.Content), MaxRules)
		return
	}
	number := 0
	r.list(n, "rules", func(n *yaml.Node) {
		number++
		c.Rules = append(c.Rules, r.rule(n, number, known))
	})
	r.functions(n, c)
}

// functions bounds what the daemon has to watch.
func (r *reader) functions(n *yaml.Node, c *Config) {
	if names := c.KernelFunctions(); len(names) > MaxFunctions {
		r.fault(n.Line, fmt.Sprintf("leave out all but those that tell most, at most %d", MaxFunctions),
			"rules: %d kernel functions are too many", len(names))
	}
}

func (r *reader) rule(n *yaml.Node, number int, known []string) Rule {
	rule := Rule{Line: n.Line}
	object := fmt.Sprintf("rule %d", number)
	faults := len(r.faults.List) + r.faults.More
	r.mapping(n, object, []field{
		{"match", func(n *yaml.Node) { r.match(n, object, &rule) }},
		{"class", value(r, object, "class", func(s string) (string, error) { return parseClass(s, known) }, &rule.Class)},
	})
	if faults != len(r.faults.List)+r.faults.More {
		return rule
	}
	if len(rule.keys()) == 0 {
		r.fault(n.Line, "add match with at least one of cgroup, comm, exe, user, kernelFunction", "%s: matches no task", object)
	}
	if rule.Class == "" {
		r.fault(n.Line, "add class", "%s: has no class", object)
	}
	return rule
}

func (r *reader) match(n *yaml.Node, object string, rule *Rule) {
	pattern := func(key string, into *string) field {
		return field{key, value(r, object, key, func(s string) (string, error) { return s, r.check(key, s) }, into)}
	}
	r.mapping(n, object, []field{
		pattern("cgroup", &rule.Cgroup),
		pattern("comm", &rule.Comm),
		pattern("exe", &rule.Exe),
		pattern("user", &rule.User),
		pattern("kernelFunction", &rule.KernelFunction),
		{"unit", nil},
		{"cmdline", nil},
		{"policy", nil},
		{"nice", nil},
	})
}

func parseClass(s string, known []string) (string, error) {
	if !slices.Contains(known, s) {
		return "", &valueError{"is unknown", Meant(s, known)}
	}
	return s, nil
}
