package edge

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/shed"
)

// Behind a writer without Unwrap nobody's pace is watched. The log says so once for each process: not for each request, and not for
// each middleware.
func TestThatBodiesAreNotWatchedIsSaidOnceForEachProcess(t *testing.T) {
	s, err := shed.New(shed.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	unwatched = sync.Once{} // other tests may have used it up
	var log bytes.Buffer    // a server's connections take turns here, one request after the other
	logger := slog.New(slog.NewTextHandler(&log, nil))
	visited := func() http.Handler {
		e, err := New(Config{Shedder: s, Logger: logger})
		if err != nil {
			t.Fatal(err)
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var v Visit
			if err := e.Enter(&v, w, r, Outer{}, Hints{}); err != nil {
				e.Refuse(w, r, e.Rejection(r, err))
				return
			}
			defer v.Leave()
			v.Finish(r, 0)
		})
	}
	log.Reset() // of what is said about API keys
	for _, row := range []struct {
		writer string
		wrap   func(http.Handler) http.Handler
		lines  int // afterwards
	}{
		{"the server's own", func(h http.Handler) http.Handler { return h }, 0},
		{"one with Unwrap", func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(between{w}, r) })
		}, 0},
		{"TimeoutHandler's", func(h http.Handler) http.Handler { return http.TimeoutHandler(h, time.Minute, "") }, 1},
		{"another without Unwrap", func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(bare{w}, r) })
		}, 1},
	} {
		srv := httptest.NewServer(row.wrap(visited()))
		for range 2 {
			res, err := srv.Client().Post(srv.URL, "text/plain", strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != http.StatusOK {
				t.Errorf("%s: %s", row.writer, res.Status)
			}
		}
		srv.Close()
		if n := strings.Count(log.String(), "is not watched"); n != row.lines {
			t.Errorf("%s: said %d times, want %d:\n%s", row.writer, n, row.lines, &log)
		}
	}
	if !strings.Contains(log.String(), "Unwrap") || !strings.Contains(log.String(), "level=WARN") {
		t.Errorf("what to do about it is not said: %s", &log)
	}
}
