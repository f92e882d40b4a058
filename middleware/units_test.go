package middleware_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// slow lets capacity pass at once and perSecond each second.
func slow(name, unit string, capacity, perSecond int64) shed.Limit {
	return shed.Limit{Name: name, Unit: unit, Rule: limits.TokenBucket{Capacity: capacity, Refill: limits.PerSecond(perSecond)}}
}

// units is what the status says about a rule.
func units(t testing.TB, s *shed.Shedder, rule string) shed.RuleStatus {
	t.Helper()
	for _, r := range s.Status().Rules {
		if r.Name == rule {
			return r
		}
	}
	t.Fatalf("no rule %s", rule)
	return shed.RuleStatus{}
}

func TestResponsesLeaveAtThePaceOfTheirLimit(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 1, limited(slow("download", shed.ResponseBytes, 1000, 100)))
			write := map[string]func(w http.ResponseWriter){
				"at once": func(w http.ResponseWriter) { _, _ = w.Write(make([]byte, 2000)) },
				"in pieces": func(w http.ResponseWriter) {
					for range 20 {
						_, _ = w.Write(make([]byte, 100))
					}
				},
				"as text": func(w http.ResponseWriter) { _, _ = io.WriteString(w, strings.Repeat("x", 2000)) },
				"copied":  func(w http.ResponseWriter) { _, _ = io.Copy(w, strings.NewReader(strings.Repeat("x", 2000))) },
			}
			for how, f := range write {
				h := a.wrap(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { f(w) }))
				start := time.Now()
				w := call(h, "GET", "/", "192.0.2.1:1")
				if took := time.Since(start); w.Code != 200 || w.Body.Len() != 2000 || took != 10*time.Second {
					t.Errorf("%s: status %d, %d bytes in %v, want 2000 in 10s", how, w.Code, w.Body.Len(), took)
				}
				if got := w.Header().Get("RateLimit-Policy"); got != `"download";q=1000;qu="content-bytes";w=10` {
					t.Errorf("RateLimit-Policy: %s", got)
				}
				start = time.Now()
				p := refused(t, call(h, "GET", "/", "192.0.2.1:1").Result(), 429, shed.OverLimit)
				if p.Rule != "download" || time.Since(start) != 0 {
					t.Errorf("nothing is left, and yet: %+v", p)
				}
				time.Sleep(time.Hour)
			}
			if st := s.Status(); st.InFlight+st.Streams != 0 {
				t.Error("a permit is left")
			}
			if u := units(t, s, "download"); u.Units != 8000 || u.Paced == 0 {
				t.Errorf("%+v", u)
			}
		})
	})
}

func TestNobodyPaysForBytesThatWereNotSent(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 1, limited(slow("download", shed.ResponseBytes, 1000, 1)))
			sent := func(method string, handler http.HandlerFunc) int64 {
				before := units(t, s, "download")
				call(a.wrap(t, middleware.Config{Shedder: s}, handler), method, "/", "192.0.2.1:1")
				after := units(t, s, "download")
				return after.Units - after.Settled - before.Units + before.Settled
			}
			for why, c := range map[string]struct {
				method string
				write  int
				want   int64
			}{"a body": {"GET", 10, 10}, "one byte": {"GET", 1, 1}, "none": {"GET", 0, 0}, "HEAD": {"HEAD", 500, 0}} {
				if got := sent(c.method, func(w http.ResponseWriter, _ *http.Request) {
					if c.write > 0 {
						_, _ = w.Write(make([]byte, c.write))
					}
				}); got != c.want {
					t.Errorf("%s: charged %d, want %d", why, got, c.want)
				}
			}
		})
	})
}

func TestWhoGoesAwayStopsPaying(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 1, limited(slow("download", shed.ResponseBytes, 1000, 100)))
			var failed error
			h := a.wrap(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, failed = w.Write(make([]byte, 1_000_000))
			}))
			ctx, leave := context.WithTimeout(t.Context(), 5*time.Second)
			defer leave()
			start := time.Now()
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil).WithContext(ctx))
			if failed == nil || time.Since(start) > 5*time.Second {
				t.Errorf("%v after %v", failed, time.Since(start))
			}
			if u := units(t, s, "download"); u.Units > 1501 {
				t.Errorf("charged %d for what 5 s allow", u.Units)
			}
			if st := s.Status(); st.InFlight+st.Streams != 0 {
				t.Error("a permit is left")
			}
		})
	})
}

func TestAResponseThatWaitsHoldsNoPlaceAndWhatWasWrittenHasLeft(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		s := open(t, 1, limited(slow("download", shed.ResponseBytes, 100, 1)))
		gone := make(chan struct{})
		srv := w.serve(t, w.wrap(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/short" {
				_, _ = io.WriteString(w, "o")
				return
			}
			defer close(gone)
			_, _ = w.Write(make([]byte, 1000))
		})))
		ctx, leave := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, "GET", srv.URL+"/long", nil)
		req.Header.Set("X-API-Key", "a")
		res, err := srv.Client().Do(req) // answers although the body takes 15 minutes
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res := send(t, srv, "GET", "/short", "X-API-Key", "b"); res.StatusCode != 200 {
			t.Errorf("the only place is taken by who waits: %s", res.Status)
		}
		leave()
		<-gone
	})
}

func TestWhatWasNotReadOfABodyIsGivenBack(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		s := open(t, 1, limited(slow("upload", shed.RequestBytes, 10_000, 1)))
		read := int64(0)
		h := a.wrap(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.CopyN(io.Discard, r.Body, read)
		}))
		for _, c := range []struct{ read, kept int64 }{{0, 0}, {100, 100}, {700, 700}, {5000, 1000}} {
			read = c.read
			before := units(t, s, "upload")
			r := httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", 1000)))
			h.ServeHTTP(httptest.NewRecorder(), r)
			after := units(t, s, "upload")
			if got := after.Units - after.Settled - before.Units + before.Settled; got != c.kept {
				t.Errorf("read %d of 1000: charged %d", c.read, got)
			}
		}
	})
}
