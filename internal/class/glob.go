package class

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// glob is a compiled pattern for one name: a path component or a comm.
type glob []element

type kind uint8

const (
	literal kind = iota // text
	any1                // ?: one character
	many                // *: any number of characters
	set                 // [...]: one character of ranges
)

type element struct {
	kind   kind
	text   string
	ranges []span
	negate bool
}

// span is a range of characters, both ends included.
type span struct{ low, high rune }

// compileGlob compiles *, ? and [...]. A backslash is an ordinary character,
// because systemd writes cgroup names with them; [*] is a literal star.
func compileGlob(pattern string) (glob, error) {
	if pattern == "" {
		return nil, errors.New("is empty: write a pattern")
	}
	g := glob{}
	for rest := pattern; rest != ""; {
		switch rest[0] {
		case '*':
			// Neighbouring stars are one: they would only cost time.
			if len(g) == 0 || g[len(g)-1].kind != many {
				g = append(g, element{kind: many})
			}
			rest = rest[1:]
		case '?':
			g = append(g, element{kind: any1})
			rest = rest[1:]
		case '[':
			e, after, err := compileSet(rest[1:])
			if err != nil {
				return nil, err
			}
			g = append(g, e)
			rest = after
		default:
			end := strings.IndexAny(rest, "*?[")
			if end < 0 {
				end = len(rest)
			}
			g = append(g, element{kind: literal, text: rest[:end]})
			rest = rest[end:]
		}
	}
	return g, nil
}

// compileSet compiles what follows a [ and returns what follows its ].
func compileSet(rest string) (element, string, error) {
	e := element{kind: set}
	if strings.HasPrefix(rest, "!") || strings.HasPrefix(rest, "^") {
		e.negate = true
		rest = rest[1:]
	}
	// A ] in first place is a member, as in the shell.
	for first := true; ; first = false {
		if rest == "" {
			return e, "", errors.New("has a [ without ]: close it, or write [[] for the character itself")
		}
		low, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
		if low == ']' && !first {
			return e, rest, nil
		}
		high := low
		if len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
			high, size = utf8.DecodeRuneInString(rest[1:])
			rest = rest[1+size:]
		}
		if high < low {
			return e, "", errors.New("has a range that runs backwards: write the lower character first")
		}
		e.ranges = append(e.ranges, span{low, high})
	}
}

// prefix is the text that every match begins with.
func (g glob) prefix() string {
	if len(g) > 0 && g[0].kind == literal {
		return g[0].text
	}
	return ""
}

// match tells whether the whole of s matches. It remembers only the last
// star: an earlier one never needs to take more, so time is at most
// len(g) x len(s).
func (g glob) match(s string) bool {
	i, star, mark := 0, -1, ""
	for {
		switch {
		case i < len(g) && g[i].kind == many:
			star, mark = i, s
			i++
			continue
		case i == len(g) && s == "":
			return true
		case i < len(g):
			if after, ok := g[i].take(s); ok {
				s = after
				i++
				continue
			}
		}
		if star < 0 || mark == "" {
			return false
		}
		_, size := utf8.DecodeRuneInString(mark)
		mark = mark[size:]
		s, i = mark, star+1
	}
}

// take matches the beginning of s and returns the rest.
func (e *element) take(s string) (string, bool) {
	if e.kind == literal {
		return strings.CutPrefix(s, e.text)
	}
	if s == "" {
		return "", false
	}
	c, size := utf8.DecodeRuneInString(s)
	return s[size:], e.kind == any1 || e.contains(c) != e.negate
}

func (e *element) contains(c rune) bool {
	for _, r := range e.ranges {
		if r.low <= c && c <= r.high {
			return true
		}
	}
	return false
}

// Literal is the pattern that matches one text only. Bytes that are not UTF-8 can't
// stand in a file: any character matches in their place.
func Literal(text string) string {
	var b strings.Builder
	for text != "" {
		c, size := utf8.DecodeRuneInString(text)
		switch {
		case c == utf8.RuneError && size == 1:
			b.WriteByte('?')
		case c == '*', c == '?', c == '[':
			b.WriteString("[" + string(c) + "]")
		default:
			b.WriteRune(c)
		}
		text = text[size:]
	}
	return b.String()
}
