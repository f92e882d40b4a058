package edge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/shed"
)

// conversation is the connection of a WebSocket (RFC 6455) whose messages are limited: those that the client sends, which are read
// at the pace of the limits. So who sends too fast finds its connection full. What the service sends is its own affair.
type conversation struct {
	net.Conn
	early    io.Reader // what had been read already when the connection was taken over, then the connection
	frames   frames
	held     []byte // has been read and may not pass yet
	seen     int    // how much of it, or of what is being read, has been looked at
	owed     int64  // the size of a message that has not passed; 0 if none waits
	flows    []shed.MessageFlow
	ctx      context.Context
	cancel   context.CancelFunc
	deadline atomic.Int64 // of reads, in Unix nanoseconds; 0 means none
}

// converse wraps a connection that has been taken over, together with what is buffered of it.
func converse(ctx context.Context, conn net.Conn, rw *bufio.ReadWriter, flows []shed.MessageFlow) (net.Conn, *bufio.ReadWriter, error) {
	early, err := rw.Reader.Peek(rw.Reader.Buffered())
	if err != nil {
		return conn, rw, err
	}
	c := &conversation{Conn: conn, early: io.MultiReader(bytes.NewReader(bytes.Clone(early)), conn), flows: flows}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx)) // the handler may return before the conversation ends
	return c, bufio.NewReadWriter(bufio.NewReader(c), rw.Writer), nil
}

// Read implements net.Conn. What has been read and may not pass yet is kept, so that nothing is lost when a deadline comes first.
func (c *conversation) Read(p []byte) (int, error) {
	if len(c.held) > 0 {
		if late := c.charge(c.held); late != nil {
			return 0, late
		}
		n := copy(p, c.held)
		c.held, c.seen = c.held[n:], c.seen-n
		return n, nil
	}
	n, err := c.early.Read(p)
	c.seen = 0
	if late := c.charge(p[:n]); late != nil {
		c.held = bytes.Clone(p[:n]) // an error that came with it will come again
		return 0, late
	}
	return n, err
}

// charge lets all messages pass that are in b, of which c.seen bytes have been looked at before.
func (c *conversation) charge(b []byte) error {
	for {
		if c.owed > 0 {
			if err := c.wait(c.owed); err != nil {
				return err
			}
			c.owed = 0
		}
		if c.seen == len(b) {
			return nil
		}
		end, size, message := c.frames.next(b[c.seen:])
		c.seen += end
		if message {
			c.owed = max(size, 1)
		}
	}
}

func (c *conversation) wait(size int64) error {
	ctx := c.ctx
	if at := c.deadline.Load(); at != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, time.Unix(0, at))
		defer cancel()
	}
	err := pass(ctx, c.flows, size)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return os.ErrDeadlineExceeded
	case err != nil && c.ctx.Err() != nil:
		return net.ErrClosed
	}
	return err
}

// Close implements net.Conn.
func (c *conversation) Close() error {
	c.cancel()
	return c.Conn.Close()
}

// SetDeadline implements net.Conn.
func (c *conversation) SetDeadline(t time.Time) error {
	c.remember(t)
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *conversation) SetReadDeadline(t time.Time) error {
	c.remember(t)
	return c.Conn.SetReadDeadline(t)
}

func (c *conversation) remember(t time.Time) {
	at := int64(0)
	if !t.IsZero() {
		at = t.UnixNano()
	}
	c.deadline.Store(at)
}

// frames reads the heads of a WebSocket's frames and skips what is in them. A message is one data frame and its continuations;
// control frames are none.
type frames struct {
	head [14]byte
	have int    // bytes of head so far
	skip uint64 // bytes of the payload, and of the rest of its mask, that are still to come
	size uint64 // of the message so far
}

// next looks at b up to the head that makes a message complete, or at all of it. It returns how far it got, and the size of the
// message if there is one. Its payload may still be on its way: a message is charged before it arrives.
func (f *frames) next(b []byte) (end int, size int64, message bool) {
	for end < len(b) {
		if f.skip > 0 {
			n := min(f.skip, uint64(len(b)-end))
			f.skip -= n
			end += int(n)
			continue
		}
		f.head[f.have] = b[end]
		f.have++
		end++
		if f.have < f.length() {
			continue
		}
		if message = f.complete(); message {
			size = int64(min(f.size, 1<<62))
			f.size = 0
			return end, size, true
		}
	}
	return end, 0, false
}

// length is how long the head is, its mask included; 2 at least, for before that nothing tells.
func (f *frames) length() int {
	n := 2
	switch f.head[1] & 0x7f {
	case 126:
		n += 2
	case 127:
		n += 8
	}
	if f.head[1]&0x80 != 0 {
		n += 4
	}
	return n
}

// complete takes a whole head in, and reports whether its frame is the last of a message.
func (f *frames) complete() bool {
	payload := uint64(f.head[1] & 0x7f)
	switch payload {
	case 126:
		payload = uint64(binary.BigEndian.Uint16(f.head[2:]))
	case 127:
		payload = binary.BigEndian.Uint64(f.head[2:])
	}
	f.have, f.skip = 0, payload
	if f.head[0]&0x0f >= 8 {
		return false
	}
	f.size = min(f.size, 1<<62) + min(payload, 1<<62)
	return f.head[0]&0x80 != 0
}
