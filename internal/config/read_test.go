package config

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "socket")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, MaxFile+1); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(fifo, link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		fifo:        "is a FIFO, not a file: name a regular file",
		link:        "is a FIFO, not a file: name a regular file",
		dir:         "is a directory, not a file: name a regular file",
		socket:      "is a socket, not a file: name a regular file",
		"/dev/zero": "is a device, not a file: name a regular file",
		large:       "is larger than 4 MB: join rules with patterns (*, **) until it fits",
	} {
		if _, err := Read(path, anyPattern); err == nil || err.Error() != path+": "+want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}

func TestReadMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rota.yaml")
	_, err := Read(path, anyPattern)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path+": file does not exist: create it") {
		t.Error(err)
	}
}

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rota.yaml")
	if err := os.WriteFile(path, []byte("classes: [{name: a}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Read(path, anyPattern)
	if err != nil || len(c.Classes) != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}
