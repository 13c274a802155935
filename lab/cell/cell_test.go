package cell

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rota/lab/arch"
	"rota/lab/guest"
	"rota/lab/kernels"
	"rota/lab/machine"
)

const ended = `{"type":"end","exit":0}` + "\n"

func TestJudge(t *testing.T) {
	broken := errors.New("kernel: panic")
	for name, c := range map[string]struct {
		results string
		machine error
		want    []string
	}{
		"works":              {ended, nil, nil},
		"guest failed":       {`{"type":"error","text":"no luck"}` + "\n" + `{"type":"end","exit":1}`, nil, []string{"no luck"}},
		"guest without word": {`{"type":"end","exit":1}`, nil, []string{"exit code 1 and no word why"}},
		"truncated":          {`{"type":"log","text":"x"}` + "\n", nil, []string{"no end line", "last console line"}},
		"hostile":            {"\x00\x01\n" + ended, nil, []string{"result line 1", "last console line"}},
		"panic":              {`{"type":"error","text":"before it"}` + "\n", broken, []string{"kernel: panic", "before it"}},
		"panic after all":    {ended, broken, []string{"kernel: panic"}},
	} {
		out, err := judge(machine.Outcome{Console: "last console line", Results: []byte(c.results)}, c.machine)
		if (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, words := range c.want {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v, lacks %q", name, err, words)
			}
		}
		if out.Console != "last console line" {
			t.Errorf("%s: console %q", name, out.Console)
		}
	}
}

func TestImageHoldsNothingOfTheHost(t *testing.T) {
	dir := t.TempDir()
	scheduler := filepath.Join(dir, "scx_test")
	if err := os.WriteFile(scheduler, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	busybox := filepath.Join(dir, "busybox")
	if err := os.WriteFile(busybox, []byte("#!/bin/sh\necho sh\necho ls\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	c := Cell{Init: self, Plan: guest.Plan{Row: guest.Row{Scheduler: scheduler + " --fast"}}}
	im, err := c.image()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"/init", "/bin/scx_test", "/bin/sh", "/bin/busybox", guest.PlanPath} {
		if !im.Has(file) {
			t.Errorf("%s is missing", file)
		}
	}
	c.Init = scheduler // a small program, so that the search below is about our own doing
	var one, two bytes.Buffer
	if err := c.WriteImage(&one); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(one.Bytes(), []byte(dir)) {
		t.Error("a host path is in the image")
	}
	if err := c.WriteImage(&two); err != nil || !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Errorf("two images of one cell differ, %v", err)
	}
}

// TestForeignGuest gives a guest that this machine's programs can't run in a busybox of its own.
func TestForeignGuest(t *testing.T) {
	script := filepath.Join(t.TempDir(), "busybox")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	foreign := arch.ARM64()
	if arch.Own().Name == foreign.Name {
		foreign = arch.AMD64()
	}
	for name, c := range map[string]struct {
		kernel string
		tools  []string
		want   string
	}{
		"with the kernel": {script, nil, ""},
		"as a tool":       {"", []string{script}, ""},
		"nowhere":         {"", nil, "no busybox for " + foreign.Name},
	} {
		lab := Cell{Init: script, Tools: c.tools, Kernel: kernels.Kernel{Name: "k", Arch: foreign, Busybox: c.kernel}}
		var image bytes.Buffer
		err := lab.WriteImage(&image)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err == nil && !bytes.Contains(image.Bytes(), []byte(`"links":true`)) {
			t.Errorf("%s: the guest is not told to make links", name)
		}
	}
}

func TestRotaIsAskedForInWords(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := Cell{Init: self, Plan: guest.Plan{Row: guest.Row{Scheduler: "rota"}}}
	if _, err := c.image(); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Error(err)
	}
}
