package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeDaemon answers what it is told to.
type fakeDaemon struct {
	refuse error
}

func (f fakeDaemon) Status() Status {
	return Status{State: Running, Classes: []Class{{Name: "default"}}, CPUs: []CPU{}, KernelEvents: map[string]int64{}}
}

func (f fakeDaemon) Explain(_ context.Context, pid int) (Explanation, error) {
	return Explanation{PID: pid}, f.refuse
}

func (f fakeDaemon) Reload(context.Context) (Reload, error) { return Reload{Tasks: 7}, f.refuse }

// serve answers on a real socket until the test ends.
func serve(t *testing.T, d Daemon) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rota.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, d, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is left behind: %v", err)
		}
	})
	return path
}

func TestClient(t *testing.T) {
	c := NewClient(serve(t, fakeDaemon{}))
	if s, err := c.Status(t.Context()); err != nil || s.State != Running {
		t.Errorf("%+v, %v", s, err)
	}
	if a, err := c.Classes(t.Context()); err != nil || len(a.Classes) != 1 {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := c.Reload(t.Context()); err != nil || a.Tasks != 7 {
		t.Errorf("%+v, %v", a, err)
	}
}

// The number of a task is checked before anybody looks for it.
func TestExplain(t *testing.T) {
	c := NewClient(serve(t, fakeDaemon{}))
	if a, err := c.Explain(t.Context(), 4711); err != nil || a.PID != 4711 {
		t.Errorf("%+v, %v", a, err)
	}
	for _, pid := range []string{"", "0", "-1", "x", "4194305", "99999999999999999999"} {
		var a Explanation
		var refused *Error
		err := c.call(t.Context(), http.MethodGet, "/v1/explain?pid="+pid, &a)
		if !errors.As(err, &refused) || refused.Code != http.StatusBadRequest {
			t.Errorf("%q: %+v, %v", pid, a, err)
		}
	}
}

func TestRefusedReload(t *testing.T) {
	refusal := &Error{Code: 422, Fault: "configuration f is refused", Fix: "mend it", More: 3,
		Faults: []Fault{{File: "f", Line: 2, Fault: "bad", Fix: "make it good"}, {File: "f", Fault: "empty", Fix: "write"}}}
	_, err := NewClient(serve(t, fakeDaemon{refusal})).Reload(t.Context())
	const want = "configuration f is refused: mend it\nf:2: bad: make it good\nf: empty: write\nand 3 more faults"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// raw sends text and returns the status line and the body of the answer.
func raw(t *testing.T, path, text string) (int, Error) {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	go func() { _, _ = io.WriteString(c, text) }()
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%.60q: %v", text, err)
	}
	defer r.Body.Close()
	var failure Error
	_ = json.NewDecoder(r.Body).Decode(&failure)
	return r.StatusCode, failure
}

func TestBadRequests(t *testing.T) {
	path := serve(t, fakeDaemon{})
	request := func(line string, headers ...string) string {
		return line + " HTTP/1.1\r\nHost: rota\r\n" + strings.Join(headers, "") + "\r\n"
	}
	large := 10 << 20
	tests := []struct {
		name, text string
		code       int
		fault      string
	}{
		{"wrong method", request("DELETE /v1/status"), 405, `"DELETE" /v1/status: method not allowed`},
		{"get of a post", request("GET /v1/reload"), 405, `"GET" /v1/reload: method not allowed`},
		{"unknown path", request("GET /"), 404, `"/": no such path`},
		{"dots", request("GET /v1/../v1/status"), 404, `"/v1/../v1/status": no such path`},
		{"hostile path", request("GET /%1b%0a" + strings.Repeat("x", 100)), 404, `"/\x1b\n` + strings.Repeat("x", 57) + `"...: no such path`},
		{"huge body", request("POST /v1/reload", fmt.Sprintf("Content-Length: %d\r\n", large)) + strings.Repeat("x", large), 413, "body is larger than 4096 bytes"},
		{"huge header", request("GET /v1/status", "X: "+strings.Repeat("x", 20<<10)+"\r\n"), 431, ""},
		{"endless chunks", request("POST /v1/reload", "Transfer-Encoding: chunked\r\n") + strings.Repeat("400\r\n"+strings.Repeat("x", 1024)+"\r\n", 100), 413, "body is larger than 4096 bytes"},
		{"no HTTP", "hello\r\n\r\n", 400, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, failure := raw(t, path, tt.text)
			if code != tt.code || failure.Fault != tt.fault || tt.fault != "" && failure.Fix == "" {
				t.Errorf("%d %q %q, want %d %q", code, failure.Fault, failure.Fix, tt.code, tt.fault)
			}
		})
	}
	if _, err := NewClient(path).Status(t.Context()); err != nil {
		t.Error("afterwards: ", err)
	}
}

// A thousand connections that say nothing: all but a few are refused at once,
// and when the silent ones have been thrown out, clients are served again.
func TestThousandConnections(t *testing.T) {
	path := serve(t, fakeDaemon{})
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	refused := 0
	for range 1000 {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	begin := time.Now()
	for _, c := range open[maxConnections:] {
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		if text, err := io.ReadAll(c); err == nil && strings.HasPrefix(string(text), "HTTP/1.1 503 ") {
			refused++
		}
	}
	if refused != 1000-maxConnections || time.Since(begin) > 2*time.Second {
		t.Errorf("%d refused in %v", refused, time.Since(begin))
	}
	_, err := NewClient(path).Status(t.Context())
	var busy *Error
	if !errors.As(err, &busy) || busy.Code != 503 || busy.Fix != "try later" {
		t.Errorf("while all are taken: %v", err)
	}
	time.Sleep(readTimeout + 500*time.Millisecond)
	if _, err := NewClient(path).Status(t.Context()); err != nil {
		t.Errorf("after the silent ones: %v", err)
	}
}

func TestListen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "rota.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	want := fmt.Sprintf("socket %s: another rota is running, PID %d: stop it first", path, os.Getpid())
	if _, err := Listen(path); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	// A live listener without our lock is nobody's to replace, either.
	foreign := filepath.Join(dir, "foreign.sock")
	f, err := net.Listen("unix", foreign)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(foreign); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("PID %d", os.Getpid())) {
		t.Error(err)
	}
	// What a killed daemon leaves behind is replaced.
	f.(*net.UnixListener).SetUnlinkOnClose(false)
	f.Close()
	stale, err := Listen(foreign)
	if err != nil {
		t.Fatal(err)
	}
	stale.Close()
	l.Close()
	again, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "is there and not a socket") {
		t.Error(err)
	}
	if _, err := Listen(filepath.Join(dir, strings.Repeat("x", 100))); err == nil || !strings.Contains(err.Error(), "use at most 100") {
		t.Error(err)
	}
}

// Of many daemons that start at once, one gets the socket.
func TestListenRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rota.sock")
	var all sync.WaitGroup
	got := make(chan *Listener, 20)
	for range cap(got) {
		all.Go(func() {
			if l, err := Listen(path); err == nil {
				got <- l
			}
		})
	}
	all.Wait()
	if len(got) != 1 {
		t.Fatalf("%d daemons listen", len(got))
	}
	(<-got).Close()
}

func TestUnreachable(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "rota.sock")
	_, err := NewClient(missing).Status(t.Context())
	if want := "connect " + missing + ": daemon not running; start it with: rota run"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	l, err := net.Listen("unix", missing)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err == nil {
			// An answer before the question is another fault.
			_, _ = c.Read(make([]byte, 1024))
			_, _ = io.WriteString(c, "HTTP/1.0 500 No\r\n\r\nnot rota")
			c.Close()
		}
	}()
	if _, err := NewClient(missing).Status(t.Context()); err == nil || !strings.Contains(err.Error(), "is it rota's socket?") {
		t.Error(err)
	}
}
