package config

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// field is one key that a mapping may have. A field without read belongs to
// a later release.
type field struct {
	name string
	read func(*yaml.Node)
}

// mapping hands each value of n to the field of its key. object names n in
// the faults, as `class "network"`; empty at the top of the file. An absent
// value (`scheduler:`) is an empty mapping.
func (r *reader) mapping(n *yaml.Node, object string, fields []field) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.fault(n.Line, "write keys: "+strings.Join(names(fields), ", "), "%smust have keys, not %s", prefix(object), shape(n))
		return
	}
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if first, twice := seen[key.Value]; twice {
			r.fault(key.Line, "keep one", "%skey %s is already given in line %d", prefix(object), quoted(key.Value), first)
			continue
		}
		seen[key.Value] = key.Line
		r.field(key, value, object, fields)
	}
}

func (r *reader) field(key, value *yaml.Node, object string, fields []field) {
	for _, f := range fields {
		switch {
		case f.name != key.Value:
			continue
		case f.read == nil:
			r.later(key.Line, object, key.Value)
		default:
			f.read(value)
		}
		return
	}
	if key.Kind != yaml.ScalarNode {
		r.fault(key.Line, "write a word", "%sa key must be a word, not %s", prefix(object), shape(key))
		return
	}
	r.fault(key.Line, Meant(key.Value, names(fields)), "%sunknown key %s", prefix(object), quoted(key.Value))
}

func (r *reader) later(line int, object, key string) {
	r.fault(line, "remove it", "%s%s is not yet supported", prefix(object), key)
}

// list hands each entry of n to read.
func (r *reader) list(n *yaml.Node, object string, read func(*yaml.Node)) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.SequenceNode {
		r.fault(n.Line, "begin each entry with -", "%s: must be a list, not %s", object, shape(n))
		return
	}
	for _, entry := range n.Content {
		read(entry)
	}
}

// maxValue is the length in bytes of the longest value: a path.
const maxValue = 4096

// scalar is the text of a value. It reports what has none.
func (r *reader) scalar(n *yaml.Node, object, key string) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode:
		r.fault(n.Line, "write one value", "%s%s: must be a value, not %s", prefix(object), key, shape(n))
	case isNull(n) || n.Value == "":
		r.fault(n.Line, "give it a value or remove it", "%s%s: has no value", prefix(object), key)
	case len(n.Value) > maxValue:
		r.fault(n.Line, "shorten it", "%s%s: %s is longer than %d bytes", prefix(object), key, quoted(n.Value), maxValue)
	default:
		return n.Value, true
	}
	return "", false
}

// value reads a scalar with parse and stores it.
func value[T any](r *reader, object, key string, parse func(string) (T, error), into *T) func(*yaml.Node) {
	return func(n *yaml.Node) {
		text, ok := r.scalar(n, object, key)
		if !ok {
			return
		}
		v, err := parse(text)
		if err != nil {
			r.valueFault(n.Line, object, key, text, err)
			return
		}
		*into = v
	}
}

func (r *reader) valueFault(line int, object, key, text string, err error) {
	fault, fix := err.Error(), ""
	if ve, ok := err.(*valueError); ok {
		fault, fix = ve.fault, ve.fix
	} else if i := strings.LastIndex(fault, ": "); i >= 0 {
		fault, fix = fault[:i], fault[i+2:]
	}
	r.fault(line, fix, "%s%s %s %s", prefix(object), key, quoted(text), fault)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func prefix(object string) string {
	if object == "" {
		return ""
	}
	return object + ": "
}

// names are the keys that are supported now.
func names(fields []field) []string {
	var list []string
	for _, f := range fields {
		if f.read != nil {
			list = append(list, f.name)
		}
	}
	return list
}

func shape(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys"
	case yaml.SequenceNode:
		return "a list"
	}
	return quoted(n.Value)
}
