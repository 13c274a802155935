package identity

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCgroup(t *testing.T) {
	for data, want := range map[string]string{
		"0::/a/b\n":                             "/a/b",
		"12:cpu:/x\n1:name=systemd:/y\n0::/z\n": "/z",
		"0::/gone (deleted)\n":                  "/gone",
		"0::/../outside\n":                      "/../outside",
		"0::/no newline":                        "/no newline",
		"1:cpu:/x\n":                            "",
		"":                                      "",
		"1:cpu:/0::/fake\n0::/true\n":           "/true",
	} {
		if got := Cgroup(data); got != want {
			t.Errorf("%q: %q, want %q", data, got, want)
		}
	}
}

func TestUsers(t *testing.T) {
	u := &Users{Path: filepath.Join(t.TempDir(), "passwd")}
	write := func(text string) {
		if err := os.WriteFile(u.Path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := u.Name(1); got != "" {
		t.Errorf("without a file: %q", got)
	}
	write("a:x:1:\nsecond:x:1:\nbroken\n:x:2:\nb:x:y:\n")
	if got := u.Name(1) + u.Name(2); got != "a" {
		t.Errorf("%q", got)
	}
	write("a:x:1:\nlater:x:2:\n")
	if err := os.Chtimes(u.Path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := u.Name(2); got != "later" {
		t.Errorf("after a change: %q", got)
	}
}

func FuzzIdentity(f *testing.F) {
	f.Add("0::/a\n")
	f.Add("root:x:0:0::/:/bin/sh\n")
	f.Fuzz(func(t *testing.T, data string) {
		if strings.Contains(Cgroup(data), "\n") {
			t.Error("a path of two lines")
		}
		for _, name := range parsePasswd(data) {
			if name == "" || strings.ContainsAny(name, ":\n") {
				t.Errorf("name %q", name)
			}
		}
	})
}
