package main

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/spillway-go/spillway/shed"
)

// A service behind CGI or WSGI cannot tell X_Forwarded_For from X-Forwarded-For: who writes one writes the other.
func TestNoSpellingOfAClaimReachesTheService(t *testing.T) {
	back := upstream(t, func(w http.ResponseWriter, r *http.Request) { json.NewEncoder(w).Encode(r.Header) })
	for _, clients := range []string{"trusted_proxies: [10.0.0.0/8]", "trusted_proxies: [127.0.0.0/8]", "trusted_proxies: [127.0.0.0/8], forwarded: X-Client"} {
		g := inFront(t, back, "clients: {"+clients+"}")
		trusted := strings.Contains(clients, "127")
		fields := []string{"X-Forwarded-Port", "66", "X-Request-Id", "kept", "Spillway-Peer-For", "6.6.6.6:6"}
		for _, f := range []string{
			"X_Forwarded_For", "x-forwarded_for", "X.Forwarded.For", "X-Forwarded", "Forwarded-For", "X_Real_IP", "Cf_Connecting-Ip", "X_Forwarded_Proto",
			"X_Client", "X-Cluster-Client-Ip",
		} {
			fields = append(fields, f, "6.6.6.6")
		}
		if !trusted {
			fields = append(fields, "X-Forwarded-User", "6.6.6.6", "X-Forwarded-Prefix", "6.6.6.6")
		}
		req := request(t, "GET", g.url("proxy", "/"), "")
		for i := 0; i < len(fields); i += 2 {
			req.Header[fields[i]] = []string{fields[i+1]} // as it is spelled
		}
		_, body := asked(t, req)
		var seen http.Header
		if err := json.Unmarshal([]byte(body), &seen); err != nil {
			t.Fatal(body)
		}
		for f, v := range seen {
			if strings.Contains(strings.Join(v, ","), "6.6.6.6") && !(f == "X_client" && !strings.Contains(clients, "X-Client")) {
				t.Errorf("%s: the service sees %s: %s", clients, f, v)
			}
		}
		if seen.Get("X-Request-Id") != "kept" || (seen.Get("X-Forwarded-Port") == "66") != trusted {
			t.Errorf("%s: the service sees %v", clients, seen)
		}
	}
}

func TestWhichPeersAreTrustedProxies(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for remote, want := range map[string]bool{
		"10.1.2.3:4": true, "[::ffff:10.1.2.3]:4": true, "[fd00::1]:4": true, "11.1.2.3:4": false, "[2001:db8::1]:4": false, "10.1.2.3": false, "@": false, "": false,
	} {
		if got := isTrusted(remote, proxies); got != want {
			t.Errorf("%q: %t", remote, got)
		}
	}
}

func TestWhatAProxyAddsToForwarded(t *testing.T) {
	for remote, want := range map[string]string{
		"10.1.2.3:4": "for=10.1.2.3;proto=http", "[::ffff:10.1.2.3]:4": "for=10.1.2.3;proto=http", "[2001:db8::1]:4": `for="[2001:db8::1]";proto=http`,
		"@": "for=unknown;proto=http",
	} {
		r := &http.Request{RemoteAddr: remote}
		if got := forwardedBy(r); got != want {
			t.Errorf("%q: %s, want %s", remote, got, want)
		}
		r.TLS = new(tls.ConnectionState)
		if got := forwardedBy(r); got != want+"s" {
			t.Errorf("%q over TLS: %s", remote, got)
		}
	}
}

// What reading says once the body was closed is not the client's doing, but that of who sends it on.
func TestOnlyTheClientsOwnFailureIsItsFailure(t *testing.T) {
	for name, row := range map[string]struct {
		err            error
		closed, failed bool
		dropped        int
	}{
		"broken off":     {err: io.ErrUnexpectedEOF, failed: true},
		"its end":        {err: io.EOF, dropped: 1},
		"more to come":   {},
		"closed by then": {err: http.ErrBodyReadAfterClose, closed: true},
	} {
		dropped := 0
		p := &passing{ReadCloser: io.NopCloser(iotest.ErrReader(row.err)), drop: func(http.Header) { dropped++ }}
		if row.closed {
			p.Close()
		}
		if _, err := p.Read(make([]byte, 1)); err != row.err || p.failed.Load() != row.failed || dropped != row.dropped {
			t.Errorf("%s: %v, failed %t, trailers looked at %d times", name, err, p.failed.Load(), dropped)
		}
	}
}

// The one field has many spellings in the file and one on the wire.
func TestTheBelievedFieldGoesOnHoweverTheFileSpellsIt(t *testing.T) {
	for spelling, want := range map[string]string{
		"": "X-Forwarded-For", "x_forwarded_for": "X-Forwarded-For", "X-Forwarded-For": "X-Forwarded-For", "x-forwarded-for": "X-Forwarded-For",
		"forwarded": "Forwarded", "Forwarded": "Forwarded", "CF-Connecting-IP": "Cf-Connecting-Ip",
	} {
		if got := believed(shed.Clients{Forwarded: spelling}); got != want {
			t.Errorf("%q: %s, want %s", spelling, got, want)
		}
	}
}

// After an upgrade to HTTP/2 all further requests would pass uncounted.
func TestNobodyTunnelsRequestsPastTheRules(t *testing.T) {
	back := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s|%s|%s", r.Header.Get("Upgrade"), r.Header.Get("Http2-Settings"), r.Header.Get("Connection"))
	})
	g := inFront(t, back, "")
	for protocol, want := range map[string]string{
		"h2c": "||", "H2C": "||", "websocket, h2c": "||", "websocket, chat": "||", "h2": "||", "HTTP/2.0": "||", "TLS/1.2": "||", "websocket": "websocket||Upgrade", "tail/2": "tail/2||Upgrade",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(g.url("proxy", ""), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: %s\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nConnection: Upgrade, HTTP2-Settings\r\n\r\n", protocol)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if string(body) != want || err != nil {
			t.Errorf("%s: the service is asked for %q, want %q (%v)", protocol, body, want, err)
		}
		conn.Close()
	}
}

// Whatever a client says in the fields of proxies and networks, in whatever spelling, the service does not hear it.
func TestNoClaimOfAClientGoesOn(t *testing.T) {
	heard := make(chan http.Header, 1)
	g := inFront(t, upstream(t, func(_ http.ResponseWriter, r *http.Request) { heard <- r.Header }), "")
	r := request(t, "GET", g.url("proxy", "/"), "")
	for _, field := range []string{
		"Client-IP", "X-Originating-IP", "X-Remote-IP", "X-Remote-Addr", "Remote-Addr", "Remote_Addr", "X-Envoy-External-Address", "WL-Proxy-Client-IP",
		"Proxy-Client-IP", "CF-Connecting-IPv6", "Fly-Client-IP", "X-Azure-ClientIP", "X-Azure-SocketIP", "X-Cluster-Client-IP", "True-Client-IP",
		"Fastly-Client-IP", "X-AppEngine-User-IP", "X-ProxyUser-IP", "X-Original-URL", "X-Rewrite-URL", "X_Rewrite_URL", "Proxy", "X-Forwarded-Host2",
	} {
		r.Header[http.CanonicalHeaderKey(field)] = []string{"6.6.6.6"}
	}
	r.Header.Set("X-Other", "6.6.6.6") // the control
	if res, body := asked(t, r); res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	for field, lines := range <-heard {
		if slices.Contains(lines, "6.6.6.6") != (field == "X-Other") {
			t.Errorf("the service hears %s: %q", field, lines)
		}
	}
}
