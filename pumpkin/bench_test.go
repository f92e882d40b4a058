package pumpkin

import (
	"bufio"
	"io"
	"net"
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

// BenchmarkPollBesideABareHandler answers over a connection of its own, by the document's handler and by one that writes the
// same bytes, fields included, and does nothing else. Their ratio is what the handler costs a server; neither says how fast a machine is.
func BenchmarkPollBesideABareHandler(b *testing.B) {
	p := open(b, Config{})
	put(b, p, "search", off("Search is slow.", 1, "search"))
	body, fields := p.current.Load().board.body, poll(p, http.MethodGet).Header()
	bare := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		for name, values := range fields {
			h[name] = values
		}
		_, _ = w.Write(body)
	})
	for _, c := range []struct {
		name    string
		handler http.Handler
	}{{"bare", bare}, {"pumpkin", p.Public()}, {"bare again", bare}, {"pumpkin again", p.Public()}} {
		b.Run(c.name, func(b *testing.B) {
			server := httptest.NewServer(c.handler)
			defer server.Close()
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			reader := bufio.NewReader(conn)
			for b.Loop() {
				if _, err := io.WriteString(conn, "GET /pumpkin.json HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
					b.Fatal(err)
				}
				res, err := http.ReadResponse(reader, nil)
				if err != nil || res.StatusCode != 200 {
					b.Fatal(err)
				}
				if n, err := io.Copy(io.Discard, res.Body); err != nil || n != int64(len(body)) {
					b.Fatal(n, err)
				}
			}
		})
	}
}
