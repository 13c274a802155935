package api

import (
	"net"
	"sync"
	"time"
)

// bounded is a listener that serves maxConnections at a time and tells the
// others so at once: a queue would make everybody wait for the slowest.
type bounded struct {
	net.Listener
	slots chan struct{}
}

const busy = "HTTP/1.1 503 Service Unavailable\r\n" +
	"Content-Type: application/json\r\n" +
	"Content-Length: 63\r\n" +
	"Connection: close\r\n\r\n" +
	`{"fault":"64 clients are connected already","fix":"try later"}` + "\n"

func newBounded(l net.Listener) *bounded {
	return &bounded{l, make(chan struct{}, maxConnections)}
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
			refuse(c)
		}
	}
}

// refuse never waits: the few bytes fit the buffer of a fresh socket.
func refuse(c net.Conn) {
	_ = c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
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
