package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// screen shows a text that is renewed, where it goes to a terminal.
type screen struct {
	w     io.Writer
	live  bool // it is a terminal
	size  func() (rows, columns int)
	lines int // that are shown
}

func newScreen(w io.Writer) *screen {
	f, ok := w.(*os.File)
	if !ok {
		return &screen{w: w}
	}
	size := func() (rows, columns int) {
		s, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		if err != nil {
			return 0, 0
		}
		return int(s.Row), int(s.Col)
	}
	_, columns := size()
	return &screen{w: w, live: columns > 0, size: size}
}

// show puts the text in the place of the one before. The last one stays as it is;
// one before is cut to the terminal, or the way back up would be too short.
func (s *screen) show(text string, last bool) error {
	if !s.live {
		_, err := io.WriteString(s.w, text)
		return err
	}
	back := ""
	if s.lines > 0 {
		back = fmt.Sprintf("\x1b[%dA", s.lines)
	}
	if !last {
		text = s.cut(text)
	}
	s.lines = strings.Count(text, "\n")
	_, err := io.WriteString(s.w, back+"\r\x1b[J"+text)
	return err
}

// cut keeps what fits: a line less than the terminal has, which the cursor is on.
func (s *screen) cut(text string) string {
	rows, columns := s.size()
	var b strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		if n++; rows > 0 && n >= rows {
			break
		}
		letters := []rune(strings.TrimSuffix(line, "\n"))
		if columns > 0 && len(letters) > columns {
			letters = letters[:columns]
		}
		b.WriteString(string(letters) + "\n")
	}
	return b.String()
}
