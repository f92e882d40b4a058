package main

import (
	"errors"
	"net"
	"sync"
	"time"
)

// sendWithin is how long a client may take to make room for more of its answer. Who stops reading would otherwise hold a connection,
// and a place, for as long as it likes. It is long, for a client that reads slowly but steadily makes room in large steps: the
// system asks for more only when a third of what it buffers has gone.
const sendWithin = time.Minute

// impatient is a listener whose connections fail when nothing can be sent for sendWithin.
type impatient struct{ net.Listener }

// Accept implements net.Listener.
func (l impatient) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &sending{Conn: conn}, nil
}

// sending is a connection of an impatient listener. A deadline that somebody else sets holds until the next Write.
type sending struct {
	net.Conn

	mu    sync.Mutex
	until time.Time // the deadline that is set; the zero Time if it is not ours
}

// CloseWrite lets the server say that no more will come, while it waits for what a refused client is still sending: without it that
// client would see its connection reset, and not the answer.
func (c *sending) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Write implements net.Conn. A deadline is good for a while, so that not each Write has to set one.
func (c *sending) Write(b []byte) (int, error) {
	c.mu.Lock()
	if now := time.Now(); c.until.Sub(now) < sendWithin {
		c.until = now.Add(sendWithin + sendWithin/60)
		if err := c.Conn.SetWriteDeadline(c.until); err != nil {
			c.mu.Unlock()
			return 0, err
		}
	}
	c.mu.Unlock()
	return c.Conn.Write(b)
}

// SetDeadline implements net.Conn.
func (c *sending) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Time{}
	return c.Conn.SetDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (c *sending) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Time{}
	return c.Conn.SetWriteDeadline(t)
}
