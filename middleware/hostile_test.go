package middleware_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// Megabytes of fields that the middleware reads cost no more than they are worth, and name nobody.
func TestHugeFieldsAreNobodysName(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		s := open(t, 1, func(c *shed.Config) {
			c.Limits = []shed.Limit{bucket("per-client", 100)}
			c.Clients.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
			c.Clients.Unknown = "shared"
		})
		h := a.wrap(t, middleware.Config{Shedder: s}, ok)
		const mb = 1 << 20
		for name, value := range map[string]string{
			"X-API-Key":       strings.Repeat("k", mb),
			"X-Forwarded-For": strings.Repeat("9.9.9.9,", mb/8),
			"Accept":          strings.Repeat("text/html;q=0.1,", mb/16),
			"Upgrade":         strings.Repeat("websocket,", mb/10),
			"Content-Type":    strings.Repeat("text/event-stream;", mb/18),
			"Origin":          strings.Repeat("o", mb),
		} {
			if w := call(h, "GET", "/", "10.0.0.1:1", name, value); w.Code != 200 {
				t.Errorf("%s: status %d", name, w.Code)
			}
		}
		atRest(t, s, map[string]int64{"success": 6})
	})
}

// A body that comes one byte at a time does not delay its refusal, and pins nothing while it is being read at its own pace.
func TestASlowBodyDelaysNoRefusal(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		s := open(t, 1, limited(bucket("per-client", 1)))
		srv := world{a, false}.serve(t, a.wrap(t, middleware.Config{Shedder: s}, ok))
		allowed(t, send(t, srv, "GET", "/"))
		for _, head := range []string{"Content-Length: 1000000", "Transfer-Encoding: chunked"} {
			c, err := net.Dial("tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n1", head) // and not a byte more
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatalf("%s: %v", head, err)
			}
			if res.StatusCode != 429 || !res.Close {
				t.Errorf("%s: %s, closing: %t", head, res.Status, res.Close)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			c.Close()
		}
	})
}

// FuzzFieldsOfResponses: whatever the names and numbers of limits are, a client's parser reads what goes out.
func FuzzFieldsOfResponses(f *testing.F) {
	f.Add("per-client", int64(20), int64(5), int64(1), false)
	f.Add(`a"b\c, d;e=1`, int64(1), int64(1), int64(3), true)
	f.Add("~", int64(1)<<52, int64(1), int64(1)<<51, true)
	f.Add("0", int64(0), int64(1), int64(1), false)
	f.Fuzz(func(t *testing.T, name string, capacity, refill, cost int64, shadow bool) {
		if cost <= 0 {
			return
		}
		cfg := shed.Config{Limits: []shed.Limit{
			{Name: name, Rule: limits.TokenBucket{Capacity: capacity, Refill: limits.PerSecond(refill)}, Shadow: shadow},
			{Name: name + "2", Rule: limits.FixedWindow{Quota: limits.PerMinute(capacity)}, Unit: "request_bytes"},
		}}
		cfg.Health.Off = true
		s, err := shed.New(cfg)
		if err != nil {
			return // and has said why
		}
		defer s.Close()
		wrap, err := middleware.ShedWithConfig(middleware.Config{Shedder: s, Cost: func(*http.Request) int64 { return cost }})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			w := httptest.NewRecorder()
			wrap(ok).ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader("body")))
			for _, field := range []string{"RateLimit", "RateLimit-Policy", "Spillway-Shadow"} {
				if lines := w.Header().Values(field); len(lines) > 0 {
					if _, err := httpsfv.UnmarshalList(lines); err != nil {
						t.Errorf("%s: %q: %v", field, lines, err)
					}
				}
			}
			if after := w.Header().Get("Retry-After"); after != "" && strings.Trim(after, "0123456789") != "" || after == "0" {
				t.Errorf("Retry-After %q", after)
			}
		}
	})
}
