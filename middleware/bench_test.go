package middleware_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// sink is a response that costs nothing but its fields.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }

// serving calls h over and over for one request, each time with fields of its own, as net/http does.
func serving(b *testing.B, h http.Handler, want int) {
	b.Helper()
	r := httptest.NewRequest("GET", "/api/items", nil)
	r.RemoteAddr = "192.0.2.1:1234"
	w := new(sink)
	b.ReportAllocs()
	for b.Loop() {
		w.header, w.status = make(http.Header), http.StatusOK
		h.ServeHTTP(w, r)
	}
	if w.status != want {
		b.Fatalf("status %d, want %d", w.status, want)
	}
}

// Turning away has to be cheaper than serving, or whoever floods the service wins: compare refused with admitted.
func BenchmarkMiddleware(b *testing.B) {
	routes := []shed.Route{{Name: "items", Match: "GET /api/items"}, {Name: "off", Match: "GET /api/off", Feature: "off"}}
	trivial := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok"))
	})
	free := shed.Limit{Name: "per-client", Rule: limits.TokenBucket{Capacity: 1 << 40, Refill: limits.PerSecond(1000)}}
	b.Run("bare", func(b *testing.B) { serving(b, trivial, 200) })
	b.Run("admitted", func(b *testing.B) {
		s := open(b, 10, func(c *shed.Config) { c.Routes, c.Limits = routes, []shed.Limit{free} })
		serving(b, wrapHTTP(b, middleware.Config{Shedder: s}, trivial), 200)
	})
	b.Run("refused-429", func(b *testing.B) {
		slow := shed.Limit{Name: "per-client", Rule: limits.TokenBucket{Capacity: 1, Refill: limits.Rate{Amount: 1, Per: 90 * time.Second}}}
		s := open(b, 10, func(c *shed.Config) { c.Routes, c.Limits = routes, []shed.Limit{slow} })
		h := wrapHTTP(b, middleware.Config{Shedder: s}, trivial)
		call(h, "GET", "/api/items", "192.0.2.1:1")
		serving(b, h, 429)
	})
	b.Run("refused-503", func(b *testing.B) {
		s := open(b, 1, func(c *shed.Config) { c.Routes, c.Limits = routes, []shed.Limit{free} })
		permit, err := s.Admit(b.Context(), shed.Request{Client: "other"})
		if err != nil {
			b.Fatal(err)
		}
		defer permit.Done(shed.Ignored)
		serving(b, wrapHTTP(b, middleware.Config{Shedder: s}, trivial), 503)
	})
}
