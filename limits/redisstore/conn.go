package redisstore

import (
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// lean makes a connection of the kernel's cost less where calls follow each other closely: the client sets each deadline anew
// and looks whether the connection still stands before each call, which together take as long as the rest of its work.
func lean(conn net.Conn) net.Conn {
	switch conn.(type) {
	case *net.TCPConn, *net.UnixConn:
		return &leanConn{Conn: conn, begin: time.Now()}
	}
	return conn // TLS looks after itself
}

// leanConn keeps a deadline that is almost the one that is wanted, and so may give up earlier by a sixteenth of the time; and
// within a moment after it has heard something it takes for granted that it still stands.
type leanConn struct {
	net.Conn
	begin       time.Time // from which times are counted, so that steps of the clock do not matter
	heard       atomic.Int64
	read, write atDeadline
}

// moment is how long a connection surely stands after something was heard.
const moment = time.Millisecond

// atDeadline is one that is set.
type atDeadline struct{ at atomic.Int64 } // since the beginning; 0 is none

// enough reports whether it will do where another is wanted.
func (d *atDeadline) enough(now, want time.Duration) bool {
	at := time.Duration(d.at.Load())
	return at > 0 && at <= want && at-now >= (want-now)*15/16 && want > now
}

func (c *leanConn) SetReadDeadline(t time.Time) error {
	return c.set(&c.read, t, c.Conn.SetReadDeadline)
}

func (c *leanConn) SetWriteDeadline(t time.Time) error {
	return c.set(&c.write, t, c.Conn.SetWriteDeadline)
}

func (c *leanConn) set(d *atDeadline, t time.Time, set func(time.Time) error) error {
	if t.IsZero() {
		if d.at.Swap(0) == 0 {
			return nil
		}
		return set(t)
	}
	want := t.Sub(c.begin)
	if d.enough(time.Since(c.begin), want) {
		return nil
	}
	d.at.Store(int64(want))
	return set(t)
}

// SetDeadline sets both. That there be none is what the client says before it sets others: that can wait.
func (c *leanConn) SetDeadline(t time.Time) error {
	if t.IsZero() {
		return nil
	}
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

func (c *leanConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil {
		c.heard.Store(int64(time.Since(c.begin)))
	}
	return n, err
}

// SyscallConn is what the client looks at to see whether the connection still stands.
func (c *leanConn) SyscallConn() (syscall.RawConn, error) {
	if heard := c.heard.Load(); heard > 0 && time.Since(c.begin)-time.Duration(heard) < moment {
		return stands{}, nil
	}
	return c.Conn.(syscall.Conn).SyscallConn()
}

// stands is a connection about which there is nothing to find out.
type stands struct{}

func (stands) Control(func(uintptr)) error    { return nil }
func (stands) Read(func(uintptr) bool) error  { return nil }
func (stands) Write(func(uintptr) bool) error { return nil }
