package api

import (
	"net"
	"sync"
	"time"
)

// bounded is a listener that serves maxConnections at a time and tells the
// others so soon: a queue would make everybody wait for the slowest.
type bounded struct {
	net.Listener
	slots   chan struct{}
	waiting chan struct{} // refused clients that are heard out
}

const busy = "HTTP/1.1 503 Service Unavailable\r\n" +
	"Content-Type: application/json\r\n" +
	"Content-Length: 63\r\n" +
	"Connection: close\r\n\r\n" +
	`{"fault":"64 clients are connected already","fix":"try later"}` + "\n"

// hearOut is how long a refused client may take to say what it wants.
const hearOut = 200 * time.Millisecond

func newBounded(l net.Listener) *bounded {
	return &bounded{l, make(chan struct{}, maxConnections), make(chan struct{}, maxConnections)}
}

func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case b.slots <- struct{}{}:
			return &slotted{Conn: c, free: sync.OnceFunc(func() { <-b.slots })}, nil
		default:
			b.refuse(c)
		}
	}
}

// refuse never waits. A client that is cut off before it has asked takes the
// answer for a broken connection, so as many as are served are heard out first.
func (b *bounded) refuse(c net.Conn) {
	select {
	case b.waiting <- struct{}{}:
	default:
		sayBusy(c)
		return
	}
	go func() {
		defer func() { <-b.waiting }()
		_ = c.SetReadDeadline(time.Now().Add(hearOut))
		_, _ = c.Read(make([]byte, maxHeader))
		sayBusy(c)
	}()
}

// sayBusy: the few bytes fit the buffer of a fresh socket.
func sayBusy(c net.Conn) {
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = c.Write([]byte(busy))
	_ = c.Close()
}

// slotted gives its slot back when it is closed.
type slotted struct {
	net.Conn
	free func()
}

func (s *slotted) Close() error {
	defer s.free()
	return s.Conn.Close()
}
