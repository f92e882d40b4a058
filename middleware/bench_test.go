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

// once serves one request, with response fields of its own, as net/http does.
func (s *sink) once(h http.Handler, r *http.Request) {
	s.header, s.status = make(http.Header), http.StatusOK
	h.ServeHTTP(s, r)
}

// trivial is the least that a handler can do.
var trivial = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok"))
})

// outcomes returns the trivial handler behind the middleware three times: in a state where it runs, where the client's quota
// is used up, and where the service is full.
func outcomes(t testing.TB) map[string]http.Handler {
	t.Helper()
	items := []shed.Route{{Name: "items", Match: "GET /api/items"}, {Name: "orders", Match: "POST /api/orders"}}
	behind := func(n int, rule limits.Rule) (*shed.Shedder, http.Handler) {
		s := open(t, n, func(c *shed.Config) { c.Routes, c.Limits = items, []shed.Limit{{Name: "per-client", Rule: rule}} })
		return s, wrapHTTP(t, middleware.Config{Shedder: s}, trivial)
	}
	wide := limits.TokenBucket{Capacity: 1 << 40, Refill: limits.PerSecond(1000)}
	_, admitted := behind(10, wide)
	_, limited := behind(10, limits.TokenBucket{Capacity: 1, Refill: limits.Rate{Amount: 1, Per: 90 * time.Second}})
	call(limited, "GET", "/api/items", "192.0.2.1:1")
	full, busy := behind(1, wide)
	permit, err := full.Admit(t.Context(), shed.Request{Client: "another"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { permit.Done(shed.Ignored) })
	return map[string]http.Handler{"admitted": admitted, "refused-429": limited, "refused-503": busy}
}

func item() *http.Request {
	r := httptest.NewRequest("GET", "/api/items", nil)
	r.RemoteAddr = "192.0.2.1:1234"
	return r
}

// Turning away has to be cheaper than serving, or whoever floods the service wins: compare refused with admitted.
func BenchmarkMiddleware(b *testing.B) {
	handlers := outcomes(b)
	handlers["bare"] = trivial
	for _, name := range []string{"bare", "admitted", "refused-429", "refused-503"} {
		b.Run(name, func(b *testing.B) {
			w, h, r := new(sink), handlers[name], item()
			b.ReportAllocs()
			for b.Loop() {
				w.once(h, r)
			}
		})
	}
}

func TestTurningAwayMakesNoMoreGarbageThanServing(t *testing.T) {
	garbage := map[string]float64{}
	for name, h := range outcomes(t) {
		w, r := new(sink), item()
		garbage[name] = testing.AllocsPerRun(1000, func() { w.once(h, r) })
		if want := map[string]int{"admitted": 200, "refused-429": 429, "refused-503": 503}[name]; w.status != want {
			t.Errorf("%s: status %d", name, w.status)
		}
	}
	if garbage["refused-429"] > garbage["admitted"] || garbage["refused-503"] >= garbage["admitted"] {
		t.Errorf("allocations: %v", garbage)
	}
}
