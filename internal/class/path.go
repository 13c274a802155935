package class

import (
	"errors"
	"strings"
)

// path is a compiled path pattern: one glob per component, nil for **.
type path []glob

// compilePath compiles a path pattern. Slashes at both ends and doubled ones
// mean nothing. The compiled pattern ends in **, which makes it match
// everything below, too.
func compilePath(pattern string) (path, error) {
	p := path{}
	for _, component := range split(pattern) {
		switch {
		case component == "**":
			p = p.below()
			continue
		case strings.Contains(component, "**"):
			return nil, errors.New("has ** inside a name: put it between slashes, or write *")
		case component == "." || component == "..":
			return nil, errors.New("has . or .. in it: write the path itself")
		}
		g, err := compileGlob(component)
		if err != nil {
			return nil, err
		}
		p = append(p, g)
	}
	return p.below(), nil
}

func (p path) below() path {
	if len(p) > 0 && p[len(p)-1] == nil {
		return p
	}
	return append(p, nil)
}

// split cuts a path into its components.
func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.FieldsFunc(s, func(c rune) bool { return c == '/' })
}

// match works on components as glob.match does on characters.
func (p path) match(components []string) bool {
	i, j, star, mark := 0, 0, -1, 0
	for {
		switch {
		case i < len(p) && p[i] == nil:
			if i == len(p)-1 {
				return true
			}
			star, mark = i, j
			i++
			continue
		case i == len(p) && j == len(components):
			return true
		case i < len(p) && j < len(components) && p[i].match(components[j]):
			i++
			j++
			continue
		}
		if star < 0 || mark == len(components) {
			return false
		}
		mark++
		i, j = star+1, mark
	}
}
