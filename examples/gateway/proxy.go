package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/pumpkin"
	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/configfile"
)

// How long the gateway waits for an upstream: to connect, and to begin to answer. Long answers may take as long as they like.
const (
	connectWithin = 5 * time.Second
	answerWithin  = 60 * time.Second
)

// proxy is the way of an admitted request to its upstream and back.
type proxy struct {
	table   atomic.Pointer[table]
	shedder *shed.Shedder
	poll    http.Handler // the pumpkin's document and widget
	peers   *peers       // nil without -peers
	streams streams
	reverse *httputil.ReverseProxy
	failed  [len(failures)]atomic.Int64 // by failure
}

func newProxy(s *shed.Shedder, p *pumpkin.Pumpkin, cfg *configfile.Config, quiet *log.Logger) (*proxy, error) {
	g := &proxy{shedder: s, poll: p.Public()}
	g.use(cfg)
	g.reverse = &httputil.ReverseProxy{
		Rewrite: g.rewrite, ModifyResponse: g.answered, ErrorHandler: g.fail, ErrorLog: quiet,
		Transport: transport(answerWithin),
	}
	return g, nil
}

// transport is how upstreams are asked: directly, whatever proxies the environment names, and with bodies as they are.
func transport(answer time.Duration) *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: connectWithin, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: connectWithin, ResponseHeaderTimeout: answer, ExpectContinueTimeout: time.Second,
		MaxIdleConnsPerHost: 256, IdleConnTimeout: 90 * time.Second, DisableCompression: true, ForceAttemptHTTP2: true,
	}
}

func (g *proxy) close() {
	g.reverse.Transport.(*http.Transport).CloseIdleConnections()
	if g.peers != nil {
		g.peers.close()
	}
}

// use puts another configuration in force and says what that changes.
func (g *proxy) use(cfg *configfile.Config) []string {
	next := newTable(cfg.Shed.Routes, cfg.Upstreams)
	before := g.table.Swap(next)
	if before == nil {
		return nil
	}
	var changes []string
	was := before.lines()
	for _, line := range next.lines() {
		if !slices.Contains(was, line) {
			changes = append(changes, line)
		}
	}
	return changes
}

func (g *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if ours(r) {
		g.poll.ServeHTTP(w, r)
		return
	}
	t := tripOf(r.Context())
	t.to = g.table.Load().find(r)
	switch {
	case r.Method == http.MethodConnect:
		problem(w, http.StatusNotImplemented, "no_tunnel", "This gateway forwards requests to services, and connections to nobody.")
	case r.URL.Opaque != "": // "GET x:admin" has no path that anybody could decide about, and would go on as it is
		problem(w, http.StatusBadRequest, "bad_target", "The target of this request is neither a path nor an address.")
	case t.to.upstream == nil:
		problem(w, http.StatusNotFound, "no_upstream", "There is nothing behind this gateway at this address.")
	default:
		if protocol := r.Header.Get("Upgrade"); !printable(protocol) || strings.Contains(protocol, ",") {
			delete(r.Header, "Upgrade") // as if nobody had asked: httputil knows one protocol at a time, and takes another answer for a failure
		}
		w.Header()["Content-Type"] = nil // what the service does not name is not guessed
		g.reverse.ServeHTTP(w, r)
	}
}

// rewrite makes the request that goes out. Hop-by-hop fields are gone already, and with them what the client says about its
// own address.
func (g *proxy) rewrite(pr *httputil.ProxyRequest) {
	t := tripOf(pr.In.Context())
	pr.SetURL(t.to.upstream)
	pr.Out.Host = pr.In.Host                 // as the client calls the service
	pr.Out.URL.RawQuery = pr.In.URL.RawQuery // as it came, also where Go would read it otherwise
	if pr.In.Header["User-Agent"] == nil {
		pr.Out.Header.Set("User-Agent", "") // none, rather than Go's
	}
	upgrades(pr.Out.Header)
	g.forwarded(pr)
	if pr.Out.Body == nil {
		return
	}
	clients := g.shedder.Clients()
	t.body = &passing{ReadCloser: pr.Out.Body, trailer: pr.In.Trailer, drop: func(trailer http.Header) {
		dropUnfit(trailer)
		dropClaims(trailer, clients, false)
	}}
	t.body.drop(t.body.trailer)
	pr.Out.Body, pr.Out.Trailer = t.body, t.body.trailer // the very map, for it is filled in when the body has been read
}

// forwarded tells the upstream who asks. What came from a trusted proxy in the one field that is believed goes on, with the proxy
// added; everything else of that kind is dropped.
func (g *proxy) forwarded(pr *httputil.ProxyRequest) {
	clients := g.shedder.Clients()
	trusted := isTrusted(pr.In.RemoteAddr, clients.TrustedProxies)
	dropClaims(pr.Out.Header, clients, trusted)
	if trusted && believed(clients) == "X-Forwarded-For" {
		pr.Out.Header["X-Forwarded-For"] = pr.In.Header["X-Forwarded-For"]
	}
	pr.SetXForwarded()
	if !trusted {
		return
	}
	for _, field := range []string{"X-Forwarded-Host", "X-Forwarded-Proto"} {
		if said := pr.In.Header[field]; len(said) == 1 {
			pr.Out.Header[field] = said
		}
	}
	if believed(clients) == "Forwarded" {
		pr.Out.Header["Forwarded"] = append(slices.Clone(pr.In.Header["Forwarded"]), forwardedBy(pr.In))
	}
}

// forwardedBy is the element that RFC 7239 asks a proxy to add.
func forwardedBy(r *http.Request) string {
	who := "unknown"
	if addr, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		if who = addr.Addr().Unmap().String(); strings.Contains(who, ":") {
			who = `"[` + who + `]"`
		}
	}
	proto := "http"
	if r.TLS != nil {
		proto = "https"
	}
	return "for=" + who + ";proto=" + proto
}

func isTrusted(remote string, proxies []netip.Prefix) bool {
	addr, err := netip.ParseAddrPort(remote)
	return err == nil && slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(addr.Addr().Unmap()) })
}

// answered looks at what the upstream says before it goes to the client.
func (g *proxy) answered(res *http.Response) error {
	res.Header.Del("Pumpkin-Rev") // ours is set already
	upgraded := res.StatusCode == http.StatusSwitchingProtocols
	if err := misled(res); err != nil {
		return err
	}
	if upgraded || tripOf(res.Request.Context()).to.longLived || endless(res) {
		res.Body = g.streams.add(res.Body, upgraded)
	}
	return nil
}

// errMisled is about an upstream that switches to a protocol that nobody asked for. Which one was asked for is the client's choice, so
// that this says nothing about how much the upstream can do.
var errMisled = errors.New("the upstream switches to another protocol than was asked for")

// misled looks for that while the connection can still be closed, which an error here does.
func misled(res *http.Response) error {
	if res.StatusCode == http.StatusSwitchingProtocols && !strings.EqualFold(res.Request.Header.Get("Upgrade"), res.Header.Get("Upgrade")) {
		return errMisled
	}
	return nil
}

// endless tells answers that go on for as long as both sides like.
func endless(res *http.Response) bool {
	return strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")
}

// failures are the reasons for which an upstream gives no answer.
var failures = [...]string{"upstream_unreachable", "upstream_timeout", "client_gone", "body_failed"}

// fail answers for an upstream that does not.
func (g *proxy) fail(w http.ResponseWriter, r *http.Request, err error) {
	var timeout interface{ Timeout() bool }
	switch t := tripOf(r.Context()); {
	case t.body != nil && t.body.failed.Load():
		t.broken = true
		g.failed[3].Add(1)
		bodyFailed(w)
	case r.Context().Err() != nil:
		g.failed[2].Add(1)
		w.WriteHeader(499) // nobody reads it; the logs of a proxy in front do
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, os.ErrDeadlineExceeded):
		g.failed[1].Add(1)
		problem(w, http.StatusGatewayTimeout, failures[1], "The service behind this gateway has not answered in time. It may have done what was asked.")
	default:
		t.broken = errors.Is(err, errMisled)
		g.failed[0].Add(1)
		problem(w, http.StatusBadGateway, failures[0], "The service behind this gateway cannot be reached, or has broken off.")
	}
}

// bodyFailed answers who has not sent what was announced.
func bodyFailed(w http.ResponseWriter) {
	problem(w, http.StatusBadRequest, failures[3], "The body of this request did not come to its end, or is not written as HTTP asks for.")
}

// problem answers with an RFC 9457 document.
func problem(w http.ResponseWriter, status int, reason, detail string) {
	body, err := json.Marshal(map[string]any{
		"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail, "reason": reason,
	})
	if err != nil { // strings and a number cannot fail
		body = []byte("{}")
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // nobody can be told if the client is gone
}

// proxyStatus is the gateway's part of the debug view.
type proxyStatus struct {
	Routes  []string         `json:"routes"`
	Streams int              `json:"streams"`
	Failed  map[string]int64 `json:"failed"`
	Peers   []peerStatus     `json:"peers,omitempty"`
}

func (g *proxy) status() proxyStatus {
	st := proxyStatus{Routes: g.table.Load().lines(), Streams: g.streams.len(), Failed: map[string]int64{}}
	for i, name := range failures {
		st.Failed[name] = g.failed[i].Load()
	}
	if g.peers != nil {
		st.Peers = g.peers.status()
	}
	return st
}
