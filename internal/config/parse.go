package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxSeparators bounds the memory that a file can make the YAML reader take:
// every value needs a comma, a colon or a line of its own. 10,000 rules with
// every key in use need 130,000.
const maxSeparators = 300_000

// Parse checks the text of a file called name (for the faults only).
func Parse(name string, data []byte, check Check) (*Config, error) {
	r := &reader{file: name, check: check}
	c := Default()
	if root := r.tree(data); root != nil {
		r.root(root, c)
	}
	if len(r.faults.List) > 0 {
		return nil, &r.faults
	}
	return c, nil
}

// reader walks the tree of one file and collects its faults.
type reader struct {
	file   string
	check  Check
	faults Faults
}

func (r *reader) fault(line int, fix, format string, args ...any) {
	r.faults.add(Fault{File: r.file, Line: line, Fault: fmt.Sprintf(format, args...), Fix: fix})
}

// tree turns the text into nodes; nil when there is nothing to walk.
func (r *reader) tree(data []byte) *yaml.Node {
	if !r.text(data) {
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		r.syntax(data, err)
		return nil
	}
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		r.syntax(data, err)
		return nil
	default:
		r.fault(second.Line, "keep one", "a second document begins")
		return nil
	}
	if !r.plain(&document) {
		return nil
	}
	return document.Content[0]
}

// text refuses what is no text, with the line: the YAML reader would not say it.
func (r *reader) text(data []byte) bool {
	line := 1
	separators := 0
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		switch {
		case c == utf8.RuneError && size == 1:
			r.fault(line, "save the file as UTF-8", "byte 0x%02x is not valid UTF-8", data[i])
			return false
		case c == '\n':
			line++
			separators++
		case c == ',' || c == ':':
			separators++
		case c < ' ' && c != '\t' && c != '\r', c == 0x7f:
			r.fault(line, "remove it", "control character 0x%02x", c)
			return false
		}
		i += size
	}
	if separators > maxSeparators {
		r.fault(0, "join rules with patterns (*, **)", "has more than %d entries", maxSeparators)
		return false
	}
	return true
}

var syntaxForm = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?(.*)$`)

// syntax reports an error of the YAML reader. It counts lines from 0 in the
// errors of its parser, from 1 in those of its scanner, and knows a line
// after the last.
func (r *reader) syntax(data []byte, err error) {
	line, text := 0, strings.ReplaceAll(err.Error(), "\n", " ")
	if m := syntaxForm.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = m[2]
	}
	if line == 0 || strings.HasPrefix(text, "did not find expected") {
		line++
	}
	line = min(line, bytes.Count(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))+1)
	r.fault(line, "check the indentation, brackets and quotes from this line on", "not YAML: %s", text)
}

// plain refuses anchors, aliases and tags: nothing in this file needs them,
// and an alias can make a short file stand for an endless one.
func (r *reader) plain(n *yaml.Node) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		r.fault(n.Line, "write the value out", "alias *%s is not allowed", quoted(n.Value))
		return false
	case n.Anchor != "":
		r.fault(n.Line, "write the value where it is needed", "anchor &%s is not allowed", quoted(n.Anchor))
		return false
	case n.Style&yaml.TaggedStyle != 0:
		r.fault(n.Line, "remove it", "tag %s is not allowed", quoted(n.Tag))
		return false
	}
	for _, child := range n.Content {
		if !r.plain(child) {
			return false
		}
	}
	return true
}
