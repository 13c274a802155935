package daemon

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func dup(f *os.File) (int, error) { return syscall.Dup(int(f.Fd())) }

func TestParseCgroup(t *testing.T) {
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
		if got := parseCgroup(data); got != want {
			t.Errorf("%q: %q, want %q", data, got, want)
		}
	}
}

func TestParseUID(t *testing.T) {
	if uid, err := parseUID("Name:\ta\\nUid:\t9\t9\nState:\tR\nUid:\t1\t2\t3\t4\n"); uid != 2 || err != nil {
		t.Error(uid, err)
	}
	for _, bad := range []string{"", "Uid:\n", "Uid:\t1\n", "Uid:\t1\tx\n", "Uid:\t1\t-2\n", "Uid:\t1\t99999999999\n"} {
		if uid, err := parseUID(bad); err == nil {
			t.Errorf("%q: %d", bad, uid)
		}
	}
}

func TestUsers(t *testing.T) {
	proc := fakeProc{t, t.TempDir()}
	u := &users{path: proc.root + "/passwd"}
	if got := u.name(1); got != "" {
		t.Errorf("without a file: %q", got)
	}
	proc.write("passwd", "a:x:1:\nsecond:x:1:\nbroken\n:x:2:\nb:x:y:\n")
	if got := u.name(1) + u.name(2); got != "a" {
		t.Errorf("%q", got)
	}
	proc.write("passwd", "a:x:1:\nlater:x:2:\n")
	if err := os.Chtimes(u.path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := u.name(2); got != "later" {
		t.Errorf("after a change: %q", got)
	}
}

// Reads stay bounded whatever is there.
func TestReadIsBounded(t *testing.T) {
	proc := fakeProc{t, t.TempDir()}
	proc.write("1/comm", strings.Repeat("x", 10*maxRead))
	comm, err := procfs{proc.root}.comm(1)
	if err != nil || len(comm) > 2*maxRead {
		t.Errorf("%d bytes, %v", len(comm), err)
	}
}

func FuzzProc(f *testing.F) {
	f.Add("0::/a\n")
	f.Add("Name:\tx\nUid:\t0\t0\t0\t0\n")
	f.Add("root:x:0:0::/:/bin/sh\n")
	f.Fuzz(func(t *testing.T, data string) {
		if strings.Contains(parseCgroup(data), "\n") {
			t.Error("a path of two lines")
		}
		_, _ = parseUID(data)
		for _, name := range parsePasswd(data) {
			if name == "" || strings.ContainsAny(name, ":\n") {
				t.Errorf("name %q", name)
			}
		}
	})
}
