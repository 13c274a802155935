package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
)

// maxAnswer bounds what a client reads: 256 classes and 4096 CPUs need 2 MB.
const maxAnswer = 8 << 20

// Client asks a daemon.
type Client struct {
	socket string
	http   *http.Client
}

// NewClient returns a client of the daemon behind the socket at path. It
// does not connect yet.
func NewClient(path string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
	return &Client{path, &http.Client{
		Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true},
		Timeout:   reloadTimeout + 2*writeTimeout,
	}}
}

// Status asks for the state of the daemon.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	ctx, cancel := context.WithTimeout(ctx, 2*writeTimeout)
	defer cancel()
	return s, c.call(ctx, http.MethodGet, "/v1/status", &s)
}

// Classes asks for the classes in force.
func (c *Client) Classes(ctx context.Context) (Classes, error) {
	var a Classes
	ctx, cancel := context.WithTimeout(ctx, 2*writeTimeout)
	defer cancel()
	return a, c.call(ctx, http.MethodGet, "/v1/classes", &a)
}

// Explain asks why a thread, or each thread of a process, runs as it does. No such
// task is an *Error.
func (c *Client) Explain(ctx context.Context, pid int) (Explanation, error) {
	var a Explanation
	ctx, cancel := context.WithTimeout(ctx, 2*writeTimeout)
	defer cancel()
	return a, c.call(ctx, http.MethodGet, "/v1/explain?pid="+strconv.Itoa(pid), &a)
}

// Reload asks the daemon to read its configuration again. A refusal is an
// *Error.
func (c *Client) Reload(ctx context.Context) (Reload, error) {
	var a Reload
	return a, c.call(ctx, http.MethodPost, "/v1/reload", &a)
}

func (c *Client) call(ctx context.Context, method, path string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, method, "http://rota"+path, nil)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return c.unreachable(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return c.unreachable(err)
	}
	if response.StatusCode != http.StatusOK {
		failure := &Error{Code: response.StatusCode}
		if err := json.Unmarshal(body, failure); err != nil || failure.Fault == "" {
			return fmt.Errorf("%s: answers %s, not as rota does: is it rota's socket?", c.socket, response.Status)
		}
		return failure
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("%s: answer is not rota's: %w: is it rota's socket?", c.socket, err)
	}
	return nil
}

// unreachable says in our words why there was no answer.
func (c *Client) unreachable(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("connect %s: daemon not running; start it with: rota run", c.socket)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("connect %s: permission denied; run as root or as a member of group %s", c.socket, socketGroup)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("connect %s: daemon does not answer; look at it with: systemctl status rota", c.socket)
	case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF):
		return fmt.Errorf("connect %s: daemon closed the connection: it ends or has too many clients; try later", c.socket)
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return fmt.Errorf("connect %s: %w", c.socket, err)
}
