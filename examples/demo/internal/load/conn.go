package load

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// bodyKept is how much of a body a Shot keeps.
const bodyKept = 2048

// dialer opens a connection to the server.
type dialer func(ctx context.Context) (net.Conn, error)

// tcp is the dialer of the plan's address.
func (p Plan) tcp(ctx context.Context) (net.Conn, error) {
	return (&net.Dialer{Timeout: p.Timeout}).DialContext(ctx, "tcp", p.Addr)
}

// conn is one connection of the generator: one request at a time, HTTP/1.1, written by hand, since an http.Transport costs
// twice the CPU of what it is to measure.
type conn struct {
	plan Plan
	open dialer
	net  net.Conn // nil while there is none
	in   *bufio.Reader
	out  []byte
}

// dial connects, if there is no connection. On failure there is none; the next request tries again.
func (c *conn) dial(ctx context.Context) error {
	if c.net != nil {
		return nil
	}
	nc, err := c.open(ctx)
	if err != nil {
		return err
	}
	c.net = nc
	if c.in == nil {
		c.in = bufio.NewReaderSize(nc, 4096)
	} else {
		c.in.Reset(nc)
	}
	return nil
}

func (c *conn) close() {
	if c.net != nil {
		c.net.Close()
		c.net = nil
	}
}

// send sends request i, reads the answer into s and gives up at deadline. Whatever goes wrong leaves the status 0 and no
// connection.
func (c *conn) send(ctx context.Context, i int, deadline time.Time, s *Shot) {
	s.RetryAfter = -1
	if c.dial(ctx) != nil {
		return
	}
	c.net.SetDeadline(deadline)
	c.out = c.out[:0]
	c.out = append(c.out, c.plan.Method+" "+c.plan.Path+" HTTP/1.1\r\nHost: "+c.plan.Addr+"\r\nX-API-Key: "...)
	c.out = append(c.out, c.plan.key(i)...)
	if c.plan.Method == "POST" {
		c.out = append(c.out, "\r\nContent-Length: 0"...)
	}
	c.out = append(c.out, "\r\n\r\n"...)
	if _, err := c.net.Write(c.out); err != nil {
		c.close()
		return
	}
	response, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.close()
		return
	}
	body, err := c.read(response)
	if err != nil {
		c.close()
		return
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		s.RetryAfter = seconds
	}
	s.Status, s.Body = response.StatusCode, body
	if response.Close {
		c.close()
	}
}

// read reads the body to its end and returns its beginning, if the plan wants it.
func (c *conn) read(response *http.Response) (string, error) {
	defer response.Body.Close()
	var kept []byte
	if c.plan.Detail {
		var err error
		if kept, err = io.ReadAll(io.LimitReader(response.Body, bodyKept)); err != nil {
			return "", err
		}
	}
	_, err := io.Copy(io.Discard, response.Body)
	return string(kept), err
}
