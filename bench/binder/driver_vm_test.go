//go:build vm

package binder_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"rota/bench/binder"
	"rota/bench/binder/pairs"
	"rota/bench/peer"
)

// device is the driver of the running kernel: TestBinderDriver of prove_vm_test.go
// runs these tests in a machine that has it.
const device = "/dev/binder"

// Codes of the test's server.
const (
	codeEcho   = 1
	codeSleep  = 2 // until the process ends
	codeCrash  = 3
	codeVector = 4
)

func TestMain(m *testing.M) {
	peer.Main(os.Args, map[string]peer.Role{pairs.ManagerRole: pairs.Manage, "server": serveTest})
	os.Exit(m.Run())
}

func serveTest(p *peer.Peer) error {
	d, err := pairs.Serve(p, 4, binder.NodeFlags, func(pairs.Order[int]) binder.Handler { return answerTest })
	if err != nil {
		return err
	}
	return d.Serve(4)
}

func answerTest(_ *binder.Thread, call *binder.Message, reply *binder.Parcel) error {
	r := call.Read()
	switch call.Code {
	case codeEcho:
		reply.Bytes(r.Bytes())
	case codeVector:
		reply.Buffer(r.Buffer())
	case codeSleep:
		time.Sleep(time.Hour)
	case codeCrash:
		os.Exit(3)
	default:
		return errors.New("no such code")
	}
	return r.Err()
}

// server starts a manager and a server, and finds its service from here.
func server(t *testing.T) (*peer.Process, *binder.Device, *binder.Thread, binder.Handle) {
	t.Helper()
	if _, err := os.Stat(device); err != nil {
		t.Skip("no binder device here")
	}
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	g := peer.NewGroup(t.Context(), os.Stderr)
	manager, err := g.Start("manager", pairs.ManagerRole, device)
	if err == nil {
		err = manager.Hear(&pairs.Ready{})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Stop)
	p, err := g.Start("server", "server", pairs.Order[int]{Device: device, Service: "test"})
	if err == nil {
		err = p.Hear(&pairs.Ready{})
	}
	if err != nil {
		t.Fatal(err)
	}
	d, err := binder.Open(device)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	thread := d.Thread()
	h, err := thread.Find("test")
	if err != nil {
		t.Fatal(err)
	}
	return p, d, thread, h
}

// bytesParcel is a parcel with that many bytes.
func bytesParcel(n int) *binder.Parcel {
	p := &binder.Parcel{}
	p.Bytes(make([]byte, n))
	return p
}

func TestDriverDeadServer(t *testing.T) {
	_, _, thread, h := server(t)
	if _, err := thread.Call(h, codeCrash, bytesParcel(4)); !errors.Is(err, binder.ErrDead) {
		t.Errorf("it ended during the call: %v", err)
	}
	if _, err := thread.Call(h, codeEcho, bytesParcel(4)); !errors.Is(err, binder.ErrDead) {
		t.Errorf("it ended before the call: %v", err)
	}
	for range 100 { // the manager hears of it
		if _, err := thread.Find("test"); err != nil {
			var status *binder.StatusError
			if !errors.As(err, &status) {
				t.Error(err)
			}
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the name of a dead service is still there")
}

func TestDriverLimits(t *testing.T) {
	_, _, thread, h := server(t)
	if _, err := thread.Call(h, codeEcho, bytesParcel(binder.MapBytes)); !errors.Is(err, binder.ErrTooLarge) {
		t.Errorf("above the limit: %v", err)
	}
	full := false
	for range 20 { // nobody answers, and what is sent stays
		err := thread.Send(h, codeSleep, bytesParcel(100<<10))
		if full = errors.Is(err, binder.ErrFull); full {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !full {
		t.Error("2 MB went into a server that gives nothing back")
	}
	m, err := thread.Call(h, codeEcho, bytesParcel(4))
	if err != nil {
		t.Errorf("a call after that: %v", err)
	}
	thread.Free(&m)
	var status *binder.StatusError
	if _, err := thread.Call(h, 99, bytesParcel(4)); !errors.As(err, &status) {
		t.Errorf("unknown code: %v", err)
	}
}

// TestDriverThreads calls from several threads at once, plain and gathered.
func TestDriverThreads(t *testing.T) {
	_, d, _, h := server(t)
	var wait sync.WaitGroup
	failed := make(chan error, 4)
	for i := range 4 {
		wait.Go(func() {
			runtime.LockOSThread()
			thread := d.Thread()
			for n := range 300 {
				if err := echoTest(thread, h, 1+(n*7919+i)%9000, i%2 == 0); err != nil {
					failed <- err
					return
				}
			}
			failed <- thread.Exit()
		})
	}
	wait.Wait()
	for range 4 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}

func echoTest(thread *binder.Thread, h binder.Handle, n int, gather bool) error {
	text := strings.Repeat("x", n)
	p, code := &binder.Parcel{}, uint32(codeEcho)
	if gather {
		code = codeVector
		p.Buffer([]byte(text))
	} else {
		p.Bytes([]byte(text))
	}
	m, err := thread.Call(h, code, p)
	if err != nil {
		return err
	}
	defer thread.Free(&m)
	r := m.Read()
	got := ""
	if gather {
		got = string(r.Buffer())
	} else {
		got = string(r.Bytes())
	}
	if got != text {
		return fmt.Errorf("%d bytes came back as %d: %v", n, len(got), r.Err())
	}
	return nil
}
