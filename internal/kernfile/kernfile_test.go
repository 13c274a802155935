package kernfile

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

func TestNumber(t *testing.T) {
	root := fstest.MapFS{
		"sys/good": {Data: []byte("42\n")}, "sys/word": {Data: []byte("4x\n")}, "sys/empty": {},
		"sys/large": {Data: []byte("18446744073709551616\n")}, "sys/long": {Data: []byte(strings.Repeat("9\xff", 500))},
	}
	if n, err := Number(root, "sys/good", 1, 42); n != 42 || err != nil {
		t.Error(n, err)
	}
	for name, words := range map[string]string{
		"sys/word": `/sys/word: "4x\n" is not a number of 1..41`, "sys/empty": `/sys/empty: ""`, "sys/large": "not a number",
		"sys/good": "not a number of 1..41", "sys/long": `9?9?`,
	} {
		_, err := Number(root, name, 1, 41)
		if err == nil || !strings.Contains(err.Error(), words) || len(err.Error()) > 3*maxQuote {
			t.Errorf("%s: %v, want %s", name, err, words)
		}
	}
	if _, err := Number(root, "sys/none", 0, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Number(root, "sys/good", 43, 50); err == nil {
		t.Error("less than the least")
	}
}

func TestRead(t *testing.T) {
	root := fstest.MapFS{"proc/long": {Data: make([]byte, maxRead+1)}}
	if text, err := Read(root, "proc/long"); len(text) != maxRead || err != nil {
		t.Error(len(text), err)
	}
}
