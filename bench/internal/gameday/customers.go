package gameday

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// customer is one client of the shop: with an account or without, calling from an address of its own. All of 127.0.0.0/8 is
// this machine, so that addresses are real and no header has to be believed.
type customer struct {
	name, plan string
	key        string // empty for those without an account
	from       net.IP
	rotate     bool // a new key and another address of the same /24 for every request
	roam       bool // and of another /24
	client     *http.Client
}

// fromKey is where a request carries the address that it is to be sent from.
type fromKey struct{}

// open gives the customer its connections to the shop.
func (c *customer) open(b *balancer) {
	own := &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			d := net.Dialer{Timeout: 2 * time.Second, LocalAddr: &net.TCPAddr{IP: c.from}}
			if ip, ok := ctx.Value(fromKey{}).(net.IP); ok {
				d.LocalAddr = &net.TCPAddr{IP: ip}
			}
			return d.DialContext(ctx, network, addr)
		},
		MaxIdleConnsPerHost: 64, DisableCompression: true, DisableKeepAlives: c.rotate,
	}
	c.client = &http.Client{Transport: &balanced{b, own}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// balancer spreads requests over the gateways, as a load balancer in front of them does: in turn, and where one cannot be
// reached it is left alone for a moment.
type balancer struct {
	addrs []string
	next  atomic.Uint64
	rest  []atomic.Int64 // until when each is left alone, in Unix nanoseconds
}

func newBalancer(addrs ...string) *balancer {
	return &balancer{addrs: addrs, rest: make([]atomic.Int64, len(addrs))}
}

// pick returns the gateway whose turn it is.
func (b *balancer) pick() int {
	n := uint64(len(b.addrs))
	turn := b.next.Add(1)
	now := time.Now().UnixNano()
	for i := range n {
		if at := int((turn + i) % n); b.rest[at].Load() < now {
			return at
		}
	}
	return int(turn % n)
}

// balanced sends the requests of one customer through the balancer.
type balanced struct {
	of   *balancer
	base *http.Transport
}

// RoundTrip sends r to one gateway, and to another one when the first cannot be reached, or breaks off what may be asked again.
func (b *balanced) RoundTrip(r *http.Request) (*http.Response, error) {
	for try := 0; ; try++ {
		at := b.of.pick()
		out := r.Clone(r.Context())
		if out.Host == "" {
			out.Host = r.URL.Host
		}
		out.URL.Host = b.of.addrs[at]
		if try > 0 && r.GetBody != nil {
			out.Body, _ = r.GetBody()
		}
		res, err := b.base.RoundTrip(out)
		if err == nil || r.Context().Err() != nil || try == 2 {
			return res, err
		}
		var op *net.OpError
		if dial := errors.As(err, &op) && op.Op == "dial"; !dial && r.Method != http.MethodGet {
			return nil, err
		}
		b.of.rest[at].Store(time.Now().Add(300 * time.Millisecond).UnixNano())
	}
}

// CloseIdleConnections closes those of the customer.
func (b *balanced) CloseIdleConnections() { b.base.CloseIdleConnections() }

// ask is what a group asks for.
type ask struct {
	method, host, path string
	body               int // bytes; 0 for none
}

// What customers ask for.
var (
	item      = ask{method: http.MethodGet, path: "/items/1"}
	proItem   = ask{method: http.MethodGet, host: "pro.shop", path: "/items/1"} // for paying customers only
	search    = ask{method: http.MethodGet, path: "/search"}
	order     = ask{method: http.MethodPost, path: "/orders", body: 32}
	payment   = ask{method: http.MethodPost, path: "/pay", body: 64}
	report    = ask{method: http.MethodPost, path: "/reports", body: 32}
	listening = ask{method: http.MethodGet, path: "/events"}
)

// export is so many bytes.
func export(bytes int) ask {
	return ask{method: http.MethodGet, path: fmt.Sprintf("/export/%d", bytes)}
}

// request makes a customer's request.
func (a ask) request(ctx context.Context, c *customer) (*http.Request, error) {
	host := a.host
	if host == "" {
		host = "shop"
	}
	var body io.Reader
	if a.body > 0 {
		body = io.LimitReader(zeros{}, int64(a.body))
	}
	if c.rotate {
		ip := append(net.IP{}, c.from.To4()...)
		if ip[3] = byte(1 + rand.IntN(254)); c.roam {
			ip[1], ip[2] = byte(100+rand.IntN(100)), byte(rand.IntN(256))
		}
		ctx = context.WithValue(ctx, fromKey{}, ip)
	}
	r, err := http.NewRequestWithContext(ctx, a.method, "http://"+host+a.path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Day-Client", c.name)
	switch {
	case c.rotate:
		r.Header.Set("X-API-Key", fmt.Sprintf("%032x", rand.Uint64()))
	case c.key != "":
		r.Header.Set("X-API-Key", c.key)
	}
	return r, nil
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
