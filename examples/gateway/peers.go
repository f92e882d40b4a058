package main

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/configfile"
)

// peerSecretEnv is the environment variable with what peers prove who they are with.
const peerSecretEnv = "SPILLWAY_PEER_SECRET"

// What one peer tells another: that it is one, and whose request this is. Clients cannot say so.
const (
	peerField    = "Spillway-Peer"
	peerForField = "Spillway-Peer-For"
)

// peerRest is how long a peer that could not be reached is left alone.
const peerRest = time.Second

// peers pins each client to one gateway of a fleet, so that one of them counts all that the client does and the fleet enforces
// one quota without a store between them. The pin is by rendezvous hashing: when the members change, only the clients of those that
// came or went have another gateway, and begin there with a full quota, which costs one capacity per client at most.
//
// A request is passed on once at most: what comes from a peer is decided where it arrives. Where the peer cannot be reached
// the gateway decides itself, by its own count.
type peers struct {
	members []*member
	self    *member
	proof   string // "" without a secret: then a peer is known by its address
	from    []netip.Addr
	who     func(*http.Request) middleware.Caller
	shedder *shed.Shedder
	reverse *httputil.ReverseProxy
	proxy   *proxy // knows what has no end by itself
	pins    atomic.Pointer[pins]
	log     *slog.Logger

	passedOn, received, alone, forged atomic.Int64
}

// member is one gateway.
type member struct {
	name string // as all of them call it
	url  *url.URL
	rest atomic.Int64 // until when it is left alone, in Unix nanoseconds; 0 while it can be reached
}

func newPeers(o options, self net.Addr, s *shed.Shedder, g *proxy, log *slog.Logger) (*peers, error) {
	p := &peers{shedder: s, proxy: g, log: log}
	var err error
	if p.who, err = middleware.Callers(s); err != nil {
		return nil, err
	}
	if err := s.Follow(p.follow); err != nil {
		return nil, err
	}
	for _, text := range strings.Split(o.peers, ",") {
		u, why := configfile.ParseUpstream(strings.TrimSpace(text))
		switch {
		case why != "":
			return nil, fmt.Errorf("-peers: %q: %s; write them like http://10.0.0.1:8080,http://10.0.0.2:8080", text, why)
		case u.Path != "" && u.Path != "/":
			return nil, fmt.Errorf("-peers: %q: a peer has no path", text)
		}
		name := u.Scheme + "://" + u.Host
		if slices.ContainsFunc(p.members, func(m *member) bool { return m.name == name }) {
			return nil, fmt.Errorf("-peers: %s is there twice; list each once", name)
		}
		p.members = append(p.members, &member{name: name, url: u})
	}
	if p.self, err = p.find(o.self, self); err != nil {
		return nil, err
	}
	switch {
	case o.secret != "" && len(o.secret) < 32:
		return nil, fmt.Errorf("%s has fewer than 32 characters; make one with: openssl rand -base64 32", peerSecretEnv)
	case o.secret != "":
		mac := hmac.New(sha256.New, []byte(o.secret))
		io.WriteString(mac, "spillway peer")
		p.proof = hex.EncodeToString(mac.Sum(nil))
	default:
		p.from = p.resolve(log)
	}
	p.reverse = &httputil.ReverseProxy{
		Rewrite: p.rewrite, ModifyResponse: p.answered, ErrorHandler: p.fail, Transport: transport(2 * answerWithin),
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	return p, nil
}

// find returns which member this gateway is.
func (p *peers) find(self string, listening net.Addr) (*member, error) {
	want := "http://" + listening.String()
	if self != "" {
		want = strings.TrimSuffix(self, "/")
	}
	for _, m := range p.members {
		if m.name == want {
			return m, nil
		}
	}
	return nil, fmt.Errorf("-peers: none of them is this gateway, %s; say which with -self URL", want)
}

// resolve finds the addresses that peers come from, where there is no secret.
func (p *peers) resolve(log *slog.Logger) []netip.Addr {
	log.Warn("gateway: peers know each other by their addresses; set " + peerSecretEnv + " where clients can have the same")
	var all []netip.Addr
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, m := range p.members {
		found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", m.url.Hostname())
		if err != nil {
			log.Warn("gateway: a peer's address is unknown, so that nothing is taken from it until a restart", "peer", m.name, "error", err)
		}
		for _, a := range found {
			all = append(all, a.Unmap())
		}
	}
	return all
}

func (p *peers) close() { p.reverse.Transport.(*http.Transport).CloseIdleConnections() }

// localKey is where a request that is passed on carries how to decide it here after all.
type localKey struct{}

// wrap decides where a request is decided: next is here.
func (p *peers) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.takesOver(r) || ours(r) {
			next.ServeHTTP(w, r)
			return
		}
		owner := p.owner(r)
		if owner == nil || owner == p.self {
			next.ServeHTTP(w, r)
			return
		}
		worth, probe := owner.worthAsking(time.Now())
		if !worth {
			p.alone.Add(1)
			next.ServeHTTP(w, r)
			return
		}
		p.passedOn.Add(1)
		body := &untouched{ReadCloser: r.Body, trailer: r.Trailer}
		ctx := context.WithValue(r.Context(), localKey{}, &local{r, next, owner, body})
		if probe {
			ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { owner.rest.Store(0) }})
		}
		out := r.WithContext(ctx)
		if r.Body != nil && r.Body != http.NoBody {
			out.Body = body
		}
		p.reverse.ServeHTTP(w, out)
	})
}

// worthAsking reports whether m may be asked. After a rest one request finds out whether it is back, and meanwhile the others do not
// wait for it: a machine that is gone answers nothing at all, and finding that out takes as long as connecting may.
func (m *member) worthAsking(now time.Time) (worth, probe bool) {
	until := m.rest.Load()
	if until == 0 {
		return true, false
	}
	probe = now.UnixNano() >= until && m.rest.CompareAndSwap(until, now.Add(connectWithin+peerRest).UnixNano())
	return probe, probe
}

// answered takes note of answers that would never end.
func (p *peers) answered(res *http.Response) error {
	if err := misled(res); err != nil {
		return err
	}
	asked := res.Request.Context().Value(localKey{}).(*local).request
	upgraded := res.StatusCode == http.StatusSwitchingProtocols
	if upgraded || endless(res) || p.proxy.table.Load().find(asked).longLived {
		res.Body = p.proxy.streams.add(res.Body, upgraded)
	}
	return nil
}

// local is how to decide a request here.
type local struct {
	request *http.Request
	here    http.Handler
	owner   *member
	body    *untouched
}

// untouched is a body that stays open, and knows whether anybody has read of it.
type untouched struct {
	io.ReadCloser
	trailer http.Header
	read    atomic.Bool
	failed  atomic.Bool
}

func (u *untouched) Read(b []byte) (int, error) {
	u.read.Store(true)
	n, err := u.ReadCloser.Read(b)
	if err == io.EOF {
		dropUnfit(u.trailer)
	} else if err != nil {
		u.failed.Store(true)
	}
	return n, err
}

func (u *untouched) Close() error { return nil } // the server closes the client's

// takesOver reports whether r comes from a peer, and then makes it the request that the peer got. What a client says in a peer's
// words is dropped.
func (p *peers) takesOver(r *http.Request) bool {
	proof, client := r.Header[peerField], r.Header.Get(peerForField)
	delete(r.Header, peerField)
	delete(r.Header, peerForField)
	if len(proof) == 0 {
		return false
	}
	if len(proof) != 1 || !p.proves(r, proof[0]) {
		p.forged.Add(1)
		return false
	}
	if _, err := netip.ParseAddrPort(client); err == nil {
		r.RemoteAddr = client
	}
	p.received.Add(1)
	return true
}

func (p *peers) proves(r *http.Request, proof string) bool {
	if p.proof != "" {
		return hmac.Equal([]byte(proof), []byte(p.proof))
	}
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.Contains(p.from, addr.Addr().Unmap())
}

// owner returns who counts the client of r; nil where nobody is known.
func (p *peers) owner(r *http.Request) *member {
	key := p.pins.Load().of(r, p.who(r), p.shedder.Clients().APIKeyHeader)
	if key == "" {
		return nil
	}
	return pick(p.members, key)
}

// follow finds out what clients go by in a configuration to come, and says what that splits.
func (p *peers) follow(cfg shed.Config) (func(), error) {
	next := pinsOf(cfg)
	return func() {
		before := p.pins.Swap(next)
		if next.warning != "" && (before == nil || before.warning != next.warning) {
			p.log.Warn("gateway: " + next.warning)
		}
	}, nil
}

// rewrite makes the request that goes to the peer: the client's as it is, and whose it is.
func (p *peers) rewrite(pr *httputil.ProxyRequest) {
	to := pr.In.Context().Value(localKey{}).(*local)
	pr.SetURL(to.owner.url)
	pr.Out.Host, pr.Out.URL.RawQuery = pr.In.Host, pr.In.URL.RawQuery
	for _, field := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if said := pr.In.Header[field]; said != nil { // the peer judges it as if the client had asked there
			pr.Out.Header[field] = said
		}
	}
	if pr.In.Header["User-Agent"] == nil {
		pr.Out.Header.Set("User-Agent", "")
	}
	if pr.Out.Body != nil {
		dropUnfit(to.body.trailer)
		pr.Out.Trailer = to.body.trailer // the very map, for it is filled in when the body has been read
	}
	pr.Out.Header.Set(peerField, cmp.Or(p.proof, "by-address"))
	pr.Out.Header.Set(peerForField, pr.In.RemoteAddr)
}

// fail decides here what a peer that cannot be reached does not, as long as nothing of the request is lost.
func (p *peers) fail(w http.ResponseWriter, r *http.Request, err error) {
	to, _ := r.Context().Value(localKey{}).(*local)
	var op *net.OpError
	if to != nil && to.body.failed.Load() {
		bodyFailed(w)
		return
	}
	if to == nil || r.Context().Err() != nil || !errors.As(err, &op) || op.Op != "dial" || to.body.read.Load() {
		problem(w, http.StatusBadGateway, "peer_failed", "The gateway that counts your requests has broken off. The request may have been done.")
		return
	}
	to.owner.rest.Store(time.Now().Add(peerRest).UnixNano())
	p.alone.Add(1)
	to.here.ServeHTTP(w, to.request)
}

// peerStatus is one member in the debug view.
type peerStatus struct {
	Name    string `json:"name"`
	Self    bool   `json:"self,omitempty"`
	Resting bool   `json:"resting,omitempty"` // it could not be reached a moment ago
	// PassedOn, Received, Alone and Forged are of the gateway itself: requests that another one decides, requests decided for
	// another one, requests decided here because the one that should could not be reached, and claims to be a peer by others.
	PassedOn int64 `json:"passed_on,omitempty"`
	Received int64 `json:"received,omitempty"`
	Alone    int64 `json:"alone,omitempty"`
	Forged   int64 `json:"forged,omitempty"`
}

func (p *peers) status() []peerStatus {
	all := make([]peerStatus, len(p.members))
	for i, m := range p.members {
		all[i] = peerStatus{Name: m.name, Self: m == p.self, Resting: time.Now().UnixNano() < m.rest.Load()}
		if all[i].Self {
			all[i].PassedOn, all[i].Received = p.passedOn.Load(), p.received.Load()
			all[i].Alone, all[i].Forged = p.alone.Load(), p.forged.Load()
		}
	}
	return all
}
