package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Bounds of the server. A client can waste its own connection, not the
// daemon's memory or anybody else's time.
const (
	maxConnections = 64
	maxBody        = 4 << 10 // bytes
	maxHeader      = 4 << 10 // bytes; the library allows itself 4 KB more
	readTimeout    = 3 * time.Second
	writeTimeout   = 5 * time.Second
	idleTimeout    = 10 * time.Second
	reloadTimeout  = 30 * time.Second
)

// Daemon is what the server speaks for: package daemon, and a fake in tests.
// All methods may be called at any time and from any goroutine.
type Daemon interface {
	Status() Status
	// Explain says of a thread, or of all threads of a process, why each runs as it
	// does. A refusal is an *Error.
	Explain(ctx context.Context, pid int) (Explanation, error)
	// Reload reads the configuration again. A refusal is an *Error.
	Reload(context.Context) (Reload, error)
}

type route struct {
	method, path string
	serve        func(*http.Request) (any, error)
	timeout      time.Duration
}

// routes are all doors there are; openapi.yaml lists the same.
func routes(d Daemon) []route {
	return []route{
		{http.MethodGet, "/v1/status", func(*http.Request) (any, error) { return d.Status(), nil }, writeTimeout},
		{http.MethodGet, "/v1/classes", func(*http.Request) (any, error) { return Classes{d.Status().Classes}, nil }, writeTimeout},
		{http.MethodGet, "/v1/explain", func(r *http.Request) (any, error) { return explain(r, d) }, writeTimeout},
		{http.MethodPost, "/v1/reload", func(r *http.Request) (any, error) { return d.Reload(r.Context()) }, reloadTimeout},
	}
}

// explain finds the task that a request is about.
func explain(r *http.Request, d Daemon) (any, error) {
	text := r.URL.Query().Get("pid")
	pid, err := strconv.ParseUint(text, 10, 22)
	if err != nil || pid == 0 {
		return nil, &Error{Code: http.StatusBadRequest, Fault: fmt.Sprintf("pid %s: not the number of a task", shorten(text)), Fix: "ask for /v1/explain?pid=N"}
	}
	return d.Explain(r.Context(), int(pid))
}

// Serve answers on l until ctx ends, and closes l.
func Serve(ctx context.Context, l net.Listener, d Daemon, log *slog.Logger) error {
	server := &http.Server{
		Handler:           &handler{routes(d)},
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	err := server.Serve(newBounded(l))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("socket %s: %w", l.Addr(), err)
}

type handler struct{ routes []route }

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route, err := h.find(r)
	if err != nil {
		if err.Code == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", route.method)
		}
		reply(w, nil, err)
		return
	}
	if err := drain(w, r); err != nil {
		reply(w, nil, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), route.timeout)
	defer cancel()
	// A reload may take longer than the server allows for an answer.
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(route.timeout + writeTimeout)); err != nil {
		reply(w, nil, err)
		return
	}
	answer, failure := route.serve(r.WithContext(ctx))
	reply(w, answer, failure)
}

// find returns the route of a request. With the error that another method is
// needed comes the route that is there.
func (h *handler) find(r *http.Request) (route, *Error) {
	for _, route := range h.routes {
		if route.path != r.URL.Path {
			continue
		}
		if route.method != r.Method {
			return route, &Error{
				Code:  http.StatusMethodNotAllowed,
				Fault: fmt.Sprintf("%s %s: method not allowed", shorten(r.Method), route.path),
				Fix:   "use " + route.method,
			}
		}
		return route, nil
	}
	return route{}, &Error{
		Code:  http.StatusNotFound,
		Fault: fmt.Sprintf("%s: no such path", shorten(r.URL.Path)),
		Fix:   "see the paths in openapi.yaml, as /v1/status",
	}
}

// drain reads the body, which no route needs, up to its bound.
func drain(w http.ResponseWriter, r *http.Request) error {
	_, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return &Error{Code: http.StatusRequestEntityTooLarge, Fault: fmt.Sprintf("body is larger than %d bytes", maxBody), Fix: "send none"}
	case err != nil:
		return &Error{Code: http.StatusBadRequest, Fault: "body: " + err.Error(), Fix: "send none"}
	}
	return nil
}

func reply(w http.ResponseWriter, answer any, err error) {
	code := http.StatusOK
	if err != nil {
		failure := &Error{Fault: err.Error(), Fix: "see the daemon's log"}
		errors.As(err, &failure)
		if code = failure.Code; code == 0 {
			code = http.StatusInternalServerError
		}
		answer = failure
	}
	text, err := json.Marshal(answer)
	if err != nil {
		code, text = http.StatusInternalServerError, []byte(`{"fault":"answer can't be written as JSON","fix":"report this"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// Nobody is left to tell when the client has gone.
	_, _ = w.Write(append(text, '\n'))
}

// shorten quotes hostile text and bounds its length.
func shorten(s string) string {
	if len(s) > 60 {
		return fmt.Sprintf("%q...", s[:60])
	}
	return fmt.Sprintf("%q", s)
}
