package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// root reads the whole file into c. Rules come last whatever their place in
// the file, since they name classes.
func (r *reader) root(n *yaml.Node, c *Config) {
	var rules *yaml.Node
	r.mapping(n, "", []field{
		{"scheduler", func(n *yaml.Node) { r.scheduler(n, c) }},
		{"classes", func(n *yaml.Node) { r.classes(n, c) }},
		{"rules", func(n *yaml.Node) { rules = n }},
	})
	if rules != nil {
		r.rules(rules, c)
	}
	// Rules written above their classes were read out of order.
	slices.SortStableFunc(r.faults.List, func(a, b Fault) int { return a.Line - b.Line })
}

func (r *reader) scheduler(n *yaml.Node, c *Config) {
	const object = "scheduler"
	// First, whatever its place: the other keys say where it does not hold.
	if preset := child(n, "preset"); preset != nil {
		r.preset(preset, c)
	}
	r.mapping(n, object, []field{
		{"preset", func(*yaml.Node) {}},
		{"slice", value(r, object, "slice", parseSlice, &c.Slice)},
		{"starvationBound", value(r, object, "starvationBound", parseBound, &c.StarvationBound)},
		{"fair", func(n *yaml.Node) { r.fair(n, &c.Fair) }},
		{"inherit", func(n *yaml.Node) { r.inherit(n, &c.Inherit) }},
		{"frequencyFairness", value(r, object, "frequencyFairness", parseFrequency, &c.Frequency)},
		{"counters", value(r, object, "counters", parseCounters, &c.Counters)},
		{"accessLatency", value(r, object, "accessLatency", parseLatency, &c.AccessLatency)},
	})
	r.latencyOfEvent(n, c)
}

// latencyOfEvent refuses an access latency of what is not accesses, and accesses that take
// no time.
func (r *reader) latencyOfEvent(n *yaml.Node, c *Config) {
	switch given := child(n, "accessLatency"); {
	case given != nil && (c.Counters == CountersAuto || c.Counters == CountersOff):
		r.fault(given.Line, "name the event of an access in counters, or remove it", "scheduler: accessLatency: counters: %s counts no accesses", c.Counters)
	case given != nil && strings.Contains(c.Counters, "/"):
		r.fault(given.Line, "remove it, or name one event", "scheduler: accessLatency: counters %s counts cycles, no accesses", quoted(c.Counters))
	case given == nil && strings.Contains(c.Counters, ":") && !strings.Contains(c.Counters, "/"):
		r.fault(child(n, "counters").Line, "add accessLatency, as 80ns", "scheduler: counters %s counts no cycles, and nothing says how long each takes", quoted(c.Counters))
	}
}

func (r *reader) preset(n *yaml.Node, c *Config) {
	var chosen preset
	value(r, "scheduler", "preset", parsePreset, &chosen)(n)
	if chosen.name != "" {
		c.Slice, c.Fair = chosen.slice, chosen.fair
	}
}

func (r *reader) fair(n *yaml.Node, fair *Fair) {
	const object = "scheduler: fair"
	r.mapping(n, object, []field{
		{"runToParity", value(r, object, "runToParity", parseSwitch, &fair.RunToParity)},
		{"preemptShort", value(r, object, "preemptShort", parseSwitch, &fair.PreemptShort)},
		{"eligibilityCheck", value(r, object, "eligibilityCheck", parseSwitch, &fair.EligibilityCheck)},
		{"briefRequests", value(r, object, "briefRequests", parseSwitch, &fair.BriefRequests)},
		{"lazyPreemption", value(r, object, "lazyPreemption", parseSwitch, &fair.LazyPreemption)},
		{"handOver", value(r, object, "handOver", parseSwitch, &fair.HandOver)},
	})
}

func (r *reader) inherit(n *yaml.Node, inherit *Inherit) {
	const object = "scheduler: inherit"
	r.mapping(n, object, []field{
		{"futex", value(r, object, "futex", parseSwitch, &inherit.Futex)},
		{"locks", value(r, object, "locks", parseSwitch, &inherit.Locks)},
		{"wakeups", value(r, object, "wakeups", parseSwitch, &inherit.Wakeups)},
		{"binder", value(r, object, "binder", parseSwitch, &inherit.Binder)},
	})
}

func parsePreset(s string) (preset, error) {
	var names []string
	for _, p := range presets() {
		if p.name == s {
			return p, nil
		}
		names = append(names, p.name)
	}
	return preset{}, &valueError{"is unknown", Meant(s, names)}
}

func parseSwitch(s string) (bool, error) {
	if s != "true" && s != "false" {
		return false, &valueError{"is not a switch", "write true or false"}
	}
	return s == "true", nil
}

func parseSlice(s string) (time.Duration, error) { return parseDuration(s, MinSlice, MaxSlice) }
func parseBound(s string) (time.Duration, error) {
	return parseDuration(s, MinStarvationBound, MaxStarvationBound)
}
func parseWeight(s string) (uint32, error) { return parseInteger(s, MinWeight, MaxWeight) }

func parseFrequency(s string) (string, error) {
	modes := []string{FrequencyOff, FrequencyOn, FrequencyOnly}
	if !slices.Contains(modes, s) {
		return "", &valueError{"is unknown", "write " + strings.Join(modes, ", ")}
	}
	return s, nil
}

func parseCounters(s string) (string, error) {
	if s != CountersAuto && s != CountersOff && !eventForm.MatchString(s) {
		return "", &valueError{"is no counter", "write auto, off, a raw event of the processor as r20cb, a tracepoint as GROUP:NAME, or two events with / between"}
	}
	return s, nil
}

func parseLatency(s string) (time.Duration, error) {
	return parseDuration(s, MinAccessLatency, MaxAccessLatency)
}

func (r *reader) classes(n *yaml.Node, c *Config) {
	first, owners := map[string]int{}, map[int]string{}
	r.list(n, "classes", func(n *yaml.Node) {
		class := r.class(n)
		r.ownedOnce(n, &class, owners)
		switch line, twice := first[class.Name]; {
		case class.Name == "":
			return
		case twice:
			r.fault(n.Line, "give each class a name of its own", "class %q is already given in line %d", class.Name, line)
			return
		}
		first[class.Name] = n.Line
		switch {
		case class.Name == DefaultClass:
			c.Classes[0] = class
		case len(c.Classes) < MaxClasses:
			c.Classes = append(c.Classes, class)
		case len(first) >= MaxClasses:
			r.fault(n.Line, fmt.Sprintf("keep at most %d, class %q included", MaxClasses, DefaultClass), "class %q is one too many", class.Name)
		}
	})
}

// class reads one class; its name is empty when it has none that can be used.
func (r *reader) class(n *yaml.Node) Class {
	class := Class{Tier: TierFair, Weight: DefaultWeight, Line: n.Line}
	object := "class"
	if name := child(n, "name"); name != nil && name.Kind == yaml.ScalarNode {
		object = "class " + quoted(name.Value)
	}
	r.mapping(n, object, []field{
		{"name", value(r, "class", "name", parseName, &class.Name)},
		{"tier", value(r, object, "tier", parseTier, &class.Tier)},
		{"weight", value(r, object, "weight", parseWeight, &class.Weight)},
		{"slice", value(r, object, "slice", parseSlice, &class.Slice)},
		{"cap", value(r, object, "cap", parsePercent, &class.Cap)},
		{"inherit", value(r, object, "inherit", parseSwitch, &class.Inherit)},
		{"dynamicSlice", value(r, object, "dynamicSlice", parseSwitch, &class.DynamicSlice)},
		{"cpus", func(n *yaml.Node) { r.cpus(n, object, &class) }},
		{"memoryBound", value(r, object, "memoryBound", parseFraction, &class.MemoryBound)},
	})
	if child(n, "name") == nil {
		r.fault(n.Line, "add name", "class: has no name")
	}
	r.capOfTier(n, object, &class)
	r.switchOfTier(n, object, "inherit", "has nothing to inherit", &class, &class.Inherit)
	r.switchOfTier(n, object, "dynamicSlice", "has no dynamic slices", &class, &class.DynamicSlice)
	r.cpusOfTier(n, object, &class)
	return class
}

// capOfTier gives priority classes their default cap and refuses the caps of
// others, which would do nothing.
func (r *reader) capOfTier(n *yaml.Node, object string, class *Class) {
	given := child(n, "cap")
	switch {
	case class.Tier == TierPriority && class.Cap == 0:
		class.Cap = DefaultCap
	case class.Tier != TierPriority && given != nil:
		r.fault(given.Line, "remove it, or set tier: priority", "%s: tier %s has no cap", object, class.Tier)
		class.Cap = 0
	}
}

// switchOfTier turns on for priority classes, unless they say otherwise, what others
// do not have.
func (r *reader) switchOfTier(n *yaml.Node, object, key, without string, class *Class, on *bool) {
	given := child(n, key)
	switch {
	case class.Tier == TierPriority && given == nil:
		*on = true
	case class.Tier != TierPriority && *on:
		r.fault(given.Line, "remove it, or set tier: priority", "%s: tier %s %s", object, class.Tier, without)
		*on = false
	}
}

func parseName(s string) (string, error) {
	switch {
	case !nameForm.MatchString(s):
		return "", &valueError{"is not a class name", "use at most 32 of a-z, 0-9 and -, a letter first"}
	case s == ReservedClass:
		return "", &valueError{"is the class of rota's own threads", "choose another name"}
	}
	return s, nil
}

func parseTier(s string) (string, error) {
	tiers := []string{TierPriority, TierFair, TierBackground}
	if !slices.Contains(tiers, s) {
		return "", &valueError{"is unknown", Meant(s, tiers)}
	}
	return s, nil
}

// child is the value of a key, nil when n has none.
func child(n *yaml.Node, key string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
