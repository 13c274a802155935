package class

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// The keys of a rule's match.
const (
	KeyCgroup = "cgroup"
	KeyComm   = "comm"
	KeyExe    = "exe"
	KeyUser   = "user"
	// KeyFunction is a function of the kernel, or of a module as "module:function".
	KeyFunction = "kernelFunction"
)

// maxComm is the length in bytes to which the kernel cuts a thread's name.
const maxComm = 15

// maxFunction is the length in bytes of a function's name.
const maxFunction = 128

var functionForm = regexp.MustCompile(`^([A-Za-z0-9_]+:)?[A-Za-z0-9_.]+$`)

var userForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.@-]{0,63}\$?$`)

// Check tells whether value can be the value of a match key. The error reads
// "fault: fix".
func Check(key, value string) error {
	switch key {
	case KeyCgroup:
		_, err := compilePath(value)
		return err
	case KeyExe:
		if !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "**") {
			return errors.New("is not a whole path: begin it with / or **/")
		}
		_, err := compilePath(value)
		return err
	case KeyComm:
		return checkComm(value)
	case KeyUser:
		return checkUser(value)
	case KeyFunction:
		return checkFunction(value)
	}
	return errors.New("is not a match key: use cgroup, comm, exe, user or kernelFunction")
}

func checkComm(value string) error {
	g, err := compileGlob(value)
	if err != nil {
		return err
	}
	if prefix := g.prefix(); len(prefix) > maxComm {
		return fmt.Errorf("can match no task, the kernel keeps %d bytes of a name: write %q", maxComm, cut(prefix, maxComm))
	}
	return nil
}

func checkUser(value string) error {
	if _, number := parseUID(value); number || userForm.MatchString(value) {
		return nil
	}
	if value != "" && value[0] >= '0' && value[0] <= '9' {
		return errors.New("is not a user: write a name, or a number up to 4294967295")
	}
	return errors.New("is not a user: write one name or number, without patterns")
}

func checkFunction(value string) error {
	if len(value) > maxFunction || !functionForm.MatchString(value) {
		return errors.New("is not a function: write its name as in /proc/kallsyms, one of a module as module:function")
	}
	return nil
}

// cut shortens s to at most n bytes without cutting a character.
func cut(s string, n int) string {
	return strings.ToValidUTF8(s[:n], "")
}
