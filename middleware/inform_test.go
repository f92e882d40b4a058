package middleware_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// httputil.ReverseProxy empties all fields after it has passed an informational response on. The final one says all the same how things
// stand, once, and what the service behind says itself is not touched.
func TestAnInformationalResponseCostsTheFinalOneNoFields(t *testing.T) {
	hinting := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Spillway-Shadow", "its own")
		ok(w, nil)
	})
	back := httptest.NewServer(hinting)
	t.Cleanup(back.Close)
	to, err := url.Parse(back.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	for _, row := range []struct {
		http2   bool
		handler http.Handler
	}{{false, proxy}, {true, proxy}, {false, hinting}, {true, hinting}} {
		w := world{adapters[0], row.http2} // Echo takes the first informational one for the final one
		s := open(t, 10, func(c *shed.Config) {
			watched := bucket("watched", 0)
			watched.Shadow = true
			c.Limits = []shed.Limit{bucket("per-client", 7), watched}
		})
		cfg := middleware.Config{Shedder: s, Pumpkin: revision("e.1"), Legacy: middleware.XRateLimitDelta}
		srv := w.serve(t, w.wrap(t, cfg, row.handler))
		res := send(t, srv, "GET", "/", "Origin", "https://app.example")
		for field, want := range map[string]string{
			"RateLimit-Policy": `"per-client";q=7;w=25200`, "RateLimit": `"per-client";r=6;t=3600`, "Pumpkin-Rev": "e.1",
			"X-RateLimit-Remaining": "6", "Access-Control-Expose-Headers": "Pumpkin-Rev", "Spillway-Shadow": `"watched";reason=cost_too_large|its own`,
		} {
			if got := strings.Join(res.Header.Values(field), "|"); got != want {
				t.Errorf("%s: %q, want %q", field, got, want)
			}
		}
		allowed(t, res)
	}
}
