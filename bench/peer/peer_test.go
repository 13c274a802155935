package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	Main(os.Args, map[string]Role{
		"echo": func(p *Peer) error {
			for {
				var words []string
				if err := p.Order(&words); err != nil {
					return err
				}
				if err := p.Say(words); err != nil {
					return err
				}
			}
		},
		"all-names-in-a-role": func(p *Peer) error { return p.Say(names()) },
		"fail":                func(*Peer) error { return errors.New("no such thing") },
		"die":                 func(*Peer) error { return syscall.Kill(os.Getpid(), syscall.SIGKILL) },
		"hang":                func(*Peer) error { select {} },
		"system-calls": func(p *Peer) error {
			time.Sleep(100 * time.Millisecond) // by then it waits for the next order
			return p.Say(ofThreads("syscall"))
		},
	})
	os.Exit(m.Run())
}

func TestEcho(t *testing.T) {
	g := NewGroup(t.Context(), os.Stderr)
	defer g.Stop()
	p, err := g.Start("echo 0", "echo", []string{"a"})
	for _, want := range []string{"a", strings.Repeat("b", 1<<20)} {
		if want != "a" && err == nil {
			err = p.Tell([]string{want})
		}
		var got []string
		if err == nil {
			err = p.Hear(&got)
		}
		if err != nil || len(got) != 1 || got[0] != want {
			t.Fatalf("%d words, error %v", len(got), err)
		}
	}
}

// ofThreads is what this file says of each thread of this process.
func ofThreads(file string) (all []string) {
	threads, _ := filepath.Glob("/proc/self/task/*/" + file)
	for _, thread := range threads {
		says, _ := os.ReadFile(thread)
		all = append(all, strings.TrimSpace(string(says)))
	}
	return all
}

func names() []string { return ofThreads("comm") }

// said is what a process in this role says.
func said(t *testing.T, role string) (words []string) {
	t.Helper()
	g := NewGroup(t.Context(), os.Stderr)
	defer g.Stop()
	p, err := g.Start(role, role, 0)
	if err == nil {
		err = p.Hear(&words)
	}
	if err != nil {
		t.Fatal(err)
	}
	return words
}

// A process has its role's name on all threads, those included that are made while it
// takes the name; and as much of it as the kernel keeps.
func TestNames(t *testing.T) {
	got := said(t, "all-names-in-a-role")
	if len(got) == 0 || slices.ContainsFunc(got, func(n string) bool { return n != "bench-role" }) {
		t.Errorf("%q", got)
	}
}

// Threads that are made meanwhile, by one that has no name yet, are named too.
func TestLateNames(t *testing.T) {
	defer renameThreads(names()[0])
	late := make(chan struct{})
	defer close(late)
	for range 64 {
		go func() {
			runtime.LockOSThread()
			<-late
		}()
	}
	rename("x-late-rather-long")
	for _, n := range names() {
		if n != "bench-long" {
			t.Errorf("a thread is called %q", n)
		}
	}
	rename("evenlongerthanthis")
	if n := names()[0]; n != "bench-evenlonge" {
		t.Errorf("the first thread is called %q", n)
	}
}

// No thread is in a system call while it waits for an order: Go may not be able to stop it there.
func TestWaitsInThePoller(t *testing.T) {
	reads := fmt.Sprintf("%d 0x0 ", syscall.SYS_READ) // of standard input
	got := said(t, "system-calls")
	if strings.Join(got, "") == "" || slices.ContainsFunc(got, func(call string) bool { return strings.HasPrefix(call, reads) }) {
		t.Errorf("%q", got)
	}
}

func TestFaults(t *testing.T) {
	g := NewGroup(t.Context(), os.Stderr)
	defer g.Stop()
	for role, want := range map[string]string{
		"fail": "client 1: no such thing", "die": "signal: killed", "nobody": `role "nobody": not in this program`,
	} {
		p, err := g.Start("client 1", role, 0)
		var got int
		if err == nil || role == "die" { // which may be dead before its order
			err = p.Hear(&got)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", role, err, want)
		}
	}
}

// When the context ends, so do the processes, and who waits for them hears it.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	g := NewGroup(ctx, os.Stderr)
	p, err := g.Start("hang", "hang", 0)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, cancel)
	var got int
	if err := p.Hear(&got); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	g.Stop()
	if err := syscall.Kill(p.PID, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d: %v", p.PID, err)
	}
	if _, err := g.Start("late", "hang", 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func FuzzReadMessage(f *testing.F) {
	var b bytes.Buffer
	writeMessage(&b, []byte(`{"fault":"x"}`))
	f.Add(b.Bytes())
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, in []byte) {
		text, err := readMessage(bytes.NewReader(in))
		if err == nil && len(text)+4 > len(in) {
			t.Errorf("%d bytes out of %d", len(text), len(in))
		}
	})
}
