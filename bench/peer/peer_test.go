package peer

import (
	"bytes"
	"context"
	"errors"
	"os"
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
		"fail": func(*Peer) error { return errors.New("no such thing") },
		"die":  func(*Peer) error { return syscall.Kill(os.Getpid(), syscall.SIGKILL) },
		"hang": func(*Peer) error { select {} },
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
