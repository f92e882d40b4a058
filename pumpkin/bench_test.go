package pumpkin

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// BenchmarkPoll is the handler alone; net/http around it costs far more.
func BenchmarkPoll(b *testing.B) {
	p := open(b, Config{})
	put(b, p, "search", off("Search is slow.", 1, "search"))
	for name, tag := range map[string]string{"full": `"other"`, "not modified": p.current.Load().etag[0]} {
		b.Run(name, func(b *testing.B) {
			r := httptest.NewRequest(http.MethodGet, "/pumpkin.json", nil)
			r.Header.Set("If-None-Match", tag)
			w := &bareWriter{header: http.Header{}}
			handler := p.Public()
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				handler.ServeHTTP(w, r)
			}
		})
	}
}

// BenchmarkFeatureOff is what every request to a route with a feature pays.
func BenchmarkFeatureOff(b *testing.B) {
	p := open(b, Config{})
	put(b, p, "search", off("Search is slow.", 0.5, "search"))
	put(b, p, "pay", off("Payments are off.", 1, "pay"))
	for _, feature := range []string{"on", "search", "pay"} {
		b.Run(feature, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.FeatureOff(feature, "customer-42")
			}
		})
	}
}
