package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spillway-go/spillway/shed/configfile"
)

// fleet opens gateways that know each other. Each has its own upstream that says which gateway the request came by.
func fleet(t *testing.T, n int, file string) []*gateway {
	t.Helper()
	addrs, held := make([]string, n), make([]net.Listener, n)
	for i := range addrs {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addrs[i], held[i] = l.Addr().String(), l
	}
	path := written(t, file)
	all := make([]*gateway, n)
	for i := range all {
		back := upstream(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%d %s %s", i, body, r.Header.Get("X-Forwarded-For"))
		})
		held[i].Close() // and not before, or its port could be given to another one
		all[i] = opened(t, func(o *options) {
			o.listen, o.upstream, o.config, o.secret = addrs[i], back, path, strings.Repeat("s", 32)
			o.peers = "http://" + strings.Join(addrs, ",http://")
		})
	}
	return all
}

const fleetFile = "clients: {identify: [api_key, ip]}\nlimits: [{name: r, token_bucket: {capacity: 5, refill: 1/day}}]\n"

func TestAFleetEnforcesOneQuota(t *testing.T) {
	all := fleet(t, 3, fleetFile)
	for _, g := range all { // what is the same everywhere is answered everywhere
		if res, _ := get(t, g.url("proxy", pumpkinPath)); res.StatusCode != 200 || g.proxy.peers.passedOn.Load() != 0 {
			t.Errorf("the poll: %s, passed on %d", res.Status, g.proxy.peers.passedOn.Load())
		}
	}
	owners := map[byte]bool{}
	for client := range 12 {
		passed, owner := 0, map[byte]bool{}
		for i := range 15 {
			res, body := asked(t, request(t, "POST", all[i%3].url("proxy", "/x?y=z"), "body", "X-API-Key", fmt.Sprintf("client-%d", client)))
			switch res.StatusCode {
			case 200:
				passed++
				owner[body[0]] = true
				if body[1:] != " body 127.0.0.1" {
					t.Errorf("the service sees %q", body)
				}
			case 429:
				if res.Header.Get("Retry-After") == "" || !strings.Contains(body, "over_limit") {
					t.Errorf("%v %s", res.Header, body)
				}
			default:
				t.Errorf("%d %s", res.StatusCode, body)
			}
		}
		if passed != 5 || len(owner) != 1 {
			t.Errorf("client %d: %d passed by %d gateways, want 5 by one", client, passed, len(owner))
		}
		for o := range owner {
			owners[o] = true
		}
	}
	if len(owners) < 2 {
		t.Error("one gateway has all clients") // 12 of 12 by chance: once in 10^5
	}
	var passedOn, received int64
	for _, g := range all {
		for _, m := range g.proxy.status().Peers {
			passedOn, received = passedOn+m.PassedOn, received+m.Received
		}
	}
	if passedOn != received || passedOn == 0 {
		t.Errorf("%d passed on, %d received", passedOn, received)
	}
}

func TestWithoutThePeerAGatewayDecidesItself(t *testing.T) {
	all := fleet(t, 2, fleetFile)
	key := ""
	for i := 0; key == ""; i++ { // a client of the second
		if k := fmt.Sprintf("client-%d", i); pick(all[0].proxy.peers.members, "key:"+k).name == all[1].proxy.peers.self.name {
			key = k
		}
	}
	if res, _ := get(t, all[1].url("proxy", pumpkinPath)); res.StatusCode != 200 { // it serves, so that closing it closes its port at once
		t.Fatal(res.Status)
	}
	all[1].listeners[0].server.Close()
	passed := 0
	for range 9 {
		res, body := asked(t, request(t, "POST", all[0].url("proxy", "/"), "body", "X-API-Key", key))
		if res.StatusCode == 200 {
			passed++
			if body != "0 body 127.0.0.1" {
				t.Errorf("the service sees %q", body)
			}
		} else if res.StatusCode != 429 {
			t.Errorf("%d %s", res.StatusCode, body)
		}
	}
	if passed != 5 {
		t.Errorf("%d passed, want one capacity", passed)
	}
	if st := all[0].proxy.status().Peers; st[0].Alone != 9 || st[0].Resting || !st[1].Resting {
		t.Errorf("%+v", st)
	}
}

// A peer that breaks off once it was asked may have done what was asked: nobody does it again.
func TestARequestThatAPeerMayHaveDoneIsNotDoneAgain(t *testing.T) {
	all := fleet(t, 2, fleetFile)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1<<10))
			_ = conn.(*net.TCPConn).SetLinger(0) // a reset, as of a process that was killed
			conn.Close()
		}
	}()
	for _, m := range all[0].proxy.peers.members {
		m.url = mustUpstream(t, "http://"+l.Addr().String())[configfile.DefaultUpstream]
	}
	all[0].proxy.peers.self = nil // everybody belongs to the other one
	res, body := get(t, all[0].url("proxy", "/"), "X-API-Key", "k")
	if res.StatusCode != http.StatusBadGateway || !strings.Contains(body, `"reason":"peer_failed"`) || all[0].proxy.peers.alone.Load() != 0 {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

// Who claims to be a peer without proof is a client like any other.
func TestNobodyElseSpeaksForAPeer(t *testing.T) {
	all := fleet(t, 2, fleetFile)
	passed := 0
	for i := range 20 {
		res, _ := get(t, all[i%2].url("proxy", "/"), "X-API-Key", "k", peerField, []string{"by-address", "x", ""}[i%3], peerForField, fmt.Sprintf("203.0.113.%d:1", i))
		if res.StatusCode == 200 {
			passed++
		}
	}
	if passed != 5 {
		t.Errorf("%d passed, want 5", passed)
	}
	// Nor does the word of one reach a service.
	var seen atomic.Value
	back := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen.Store(r.Header.Clone()) }))
	defer back.Close()
	g := all[0]
	g.proxy.table.Store(newTable(nil, mustUpstream(t, back.URL)))
	h := g.proxy.peers.wrap(g.proxy)
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set(peerField, g.proxy.peers.proof)
	r.Header.Set(peerForField, "203.0.113.7:99")
	h.ServeHTTP(httptest.NewRecorder(), begin(r))
	header := seen.Load().(http.Header)
	if header.Get(peerField) != "" || header.Get(peerForField) != "" || header.Get("X-Forwarded-For") != "203.0.113.7" {
		t.Errorf("the service sees %v", header)
	}
	// Of two proofs one is somebody else's.
	r = httptest.NewRequest("GET", "/", nil)
	r.Header[peerField] = []string{g.proxy.peers.proof, "x"}
	r.Header.Set(peerForField, "203.0.113.7:99")
	before := g.proxy.peers.forged.Load()
	if g.proxy.peers.takesOver(r) || r.RemoteAddr == "203.0.113.7:99" || g.proxy.peers.forged.Load() != before+1 {
		t.Errorf("two proofs are taken for one, from %s", r.RemoteAddr)
	}
}

// Two gateways that disagree on who is a member pass a request on once at most.
func TestARequestIsPassedOnOnce(t *testing.T) {
	all := fleet(t, 2, fleetFile)
	for _, g := range all { // each believes that the other has everything
		p := g.proxy.peers
		for _, m := range p.members {
			if m != p.self {
				p.members = []*member{m}
				break
			}
		}
	}
	res, body := get(t, all[0].url("proxy", "/"), "X-API-Key", "k")
	if res.StatusCode != 200 || body[0] != '1' {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	for i, g := range all {
		if p := g.proxy.peers; p.passedOn.Load() != int64(1-i) || p.received.Load() != int64(i) {
			t.Errorf("gateway %d: %d passed on, %d received", i, p.passedOn.Load(), p.received.Load())
		}
	}
}

// When a member goes, its keys alone move; when one comes, all that move go to it. And each has its share.
func TestAChangeOfMembersMovesNoOtherKey(t *testing.T) {
	named := func(names ...string) (all []*member) {
		for _, n := range names {
			all = append(all, &member{name: n})
		}
		return all
	}
	four := named("http://a:1", "http://b:1", "http://c:1", "http://d:1")
	const keys = 20000
	count := map[string]int{}
	for i := range keys {
		key := fmt.Sprintf("ip:10.%d.%d.1", i/200, i%200)
		before := pick(four, key)
		count[before.name]++
		after := pick(four[:3], key)
		if before != four[3] && before != after {
			t.Fatalf("%s moved from %s to %s, though %s is there", key, before.name, after.name, before.name)
		}
		if reversed := pick([]*member{four[3], four[1], four[0], four[2]}, key); reversed != before {
			t.Fatalf("%s: the order of the list matters", key)
		}
	}
	for name, n := range count {
		if n < keys/4-500 || n > keys/4+500 { // 8 standard deviations
			t.Errorf("%s has %d of %d keys", name, n, keys)
		}
	}
}

func mustUpstream(t *testing.T, text string) map[string]*url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*url.URL{configfile.DefaultUpstream: u}
}
