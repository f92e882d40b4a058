package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spillway-go/spillway/bench/internal/arms"
	"github.com/spillway-go/spillway/bench/scenarios"
)

// Shot is one attempt as the target sees it.
type Shot struct {
	Population int
	Client     string
	From       string // its address, as a proxy in front tells it; "" is none
	Method     string
	Path       string
	Body       string
	Header     map[string]string
	At, Work   time.Duration
}

// Answer is what came back. Err is set when nothing did.
type Answer struct {
	Status     int
	RetryAfter time.Duration
	Err        error
}

// Sender delivers a shot and waits for the answer, or until ctx ends.
type Sender interface {
	Send(ctx context.Context, s *Shot) Answer
}

// maxBody bounds how much of an answer is read: the rest would only measure the network.
const maxBody = 1 << 20

// HTTP sends over sockets. NewHTTP makes one.
type HTTP struct {
	base   string
	client *http.Client
}

// NewHTTP makes a Sender for the server at base. Unless remote is true only loopback addresses are dialled, also after a
// name has been resolved: bench must not become a weapon by a typing error.
func NewHTTP(base string, remote bool, connections int) (*HTTP, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("bench: target %q: write a URL such as http://127.0.0.1:8080", base)
	}
	d := &net.Dialer{Timeout: 5 * time.Second}
	dial := d.DialContext
	if !remote {
		d.Control = loopbackOnly
		dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := d.DialContext(ctx, network, address)
			if _, ok := errors.AsType[*net.DNSError](err); ok { // a name that nobody knows is none of this machine
				err = ErrRemote
			}
			return conn, err
		}
	}
	t := &http.Transport{
		DialContext: dial, MaxIdleConnsPerHost: connections, IdleConnTimeout: time.Minute,
		DisableCompression: true, ForceAttemptHTTP2: false, TLSHandshakeTimeout: 5 * time.Second,
	}
	client := &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &HTTP{base: strings.TrimSuffix(base, "/"), client: client}, nil
}

// ErrRemote is the error of a target that is not on this machine.
var ErrRemote = errors.New("the target is not on this machine; if it is yours, and its owner knows, give -allow-remote")

func loopbackOnly(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return ErrRemote
	}
	return nil
}

// Send implements Sender.
func (h *HTTP) Send(ctx context.Context, s *Shot) Answer {
	req, err := newRequest(ctx, h.base, s)
	if err != nil {
		return Answer{Err: err}
	}
	res, err := h.client.Do(req)
	if err != nil {
		return Answer{Err: err}
	}
	defer res.Body.Close()
	if _, err := io.CopyN(io.Discard, res.Body, maxBody); err != nil && err != io.EOF {
		return Answer{Err: err}
	}
	return Answer{Status: res.StatusCode, RetryAfter: retryAfter(res.Header)}
}

// Close ends idle connections.
func (h *HTTP) Close() { h.client.CloseIdleConnections() }

func newRequest(ctx context.Context, base string, s *Shot) (*http.Request, error) {
	var body io.Reader
	if s.Body != "" {
		body = strings.NewReader(s.Body)
	}
	req, err := http.NewRequestWithContext(ctx, s.Method, base+s.Path, body)
	if err != nil {
		return nil, err
	}
	req.Header["X-Api-Key"] = []string{s.Client}
	if s.From != "" {
		req.Header["X-Forwarded-For"] = []string{s.From}
	}
	if s.Work > 0 {
		req.Header[arms.WorkHeader] = []string{strconv.FormatInt(int64(s.Work), 10)}
		req.Header[arms.PopulationHeader] = []string{strconv.Itoa(s.Population)}
		req.Header[arms.AtHeader] = []string{strconv.FormatInt(int64(s.At), 10)}
	}
	for name, value := range s.Header {
		req.Header.Set(name, value)
	}
	return req, nil
}

func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.ParseInt(h.Get("Retry-After"), 10, 32)
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// Direct calls a handler in this process, as a server does: the handler goes on when its client has given up.
type Direct struct{ Handler http.Handler }

// Send implements Sender.
func (d Direct) Send(ctx context.Context, s *Shot) Answer {
	req, err := newRequest(ctx, "", s)
	if err != nil {
		return Answer{Err: err}
	}
	req.RemoteAddr = "127.0.0.1:1"
	done := make(chan Answer, 1)
	go func() {
		w := &writer{header: make(http.Header), status: http.StatusOK}
		d.Handler.ServeHTTP(w, req)
		done <- Answer{Status: w.status, RetryAfter: retryAfter(w.header)}
	}()
	select {
	case a := <-done:
		return a
	case <-ctx.Done():
		return Answer{Err: ctx.Err()}
	}
}

// writer is a response that only its status and header are read of.
type writer struct {
	header http.Header
	status int
	wrote  bool
}

func (w *writer) Header() http.Header { return w.header }

func (w *writer) WriteHeader(status int) {
	if !w.wrote {
		w.status, w.wrote = status, true
	}
}

func (w *writer) Write(b []byte) (int, error) {
	w.wrote = true
	return len(b), nil
}

// choose returns the request of the mix that the draw falls on; nil means that the population has no mix.
func choose(p *scenarios.Population, draw uint32) *scenarios.Request {
	total := 0
	for i := range p.Requests {
		total += max(1, p.Requests[i].Weight)
	}
	if total == 0 {
		return nil
	}
	n := int(uint64(draw) * uint64(total) >> 32)
	for i := range p.Requests {
		if n -= max(1, p.Requests[i].Weight); n < 0 {
			return &p.Requests[i]
		}
	}
	return nil
}
