package middleware_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// permit-leak-panic
func TestPanicsGiveThePermitBackAndPassUntouched(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		s := open(t, 2, nil)
		bug := errors.New("bug")
		values := map[string]any{"/bug": bug, "/abort": http.ErrAbortHandler}
		var seen []any
		inner := w.wrap(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if v := values[r.URL.Path]; v != nil {
				panic(v)
			}
			ok(w, r)
		}))
		srv := w.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if v := recover(); v != nil {
					seen = append(seen, v)
					http.Error(w, "recovered", 500)
				}
			}()
			inner.ServeHTTP(w, r)
		}))
		for _, path := range []string{"/bug", "/abort", "/bug", "/abort"} { // twice the limit
			if res := send(t, srv, "GET", path); res.StatusCode != 500 {
				t.Errorf("%s: status %d", path, res.StatusCode)
			}
		}
		allowed(t, send(t, srv, "GET", "/"))
		if len(seen) != 4 || seen[0] != bug || seen[1] != http.ErrAbortHandler {
			t.Errorf("outside of the middleware the panics are %v", seen)
		}
		atRest(t, s, map[string]int64{"ignored": 4, "success": 1})
	})
}

func TestStatusesBecomeOutcomes(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		for status, want := range map[int]string{200: "success", 404: "success", 500: "ignored", 502: "ignored", 503: "dropped", 504: "dropped", 429: "ignored"} {
			s := open(t, 1, nil)
			h := a.wrap(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
			if got := call(h, "GET", "/", "192.0.2.1:1").Code; got != status {
				t.Errorf("status %d became %d", status, got)
			}
			atRest(t, s, map[string]int64{want: 1})
		}
		s := open(t, 1, nil)
		mine := func(r *http.Request, status int) shed.Outcome {
			if status == 404 {
				return shed.Dropped
			}
			return middleware.Classify(r, status)
		}
		call(a.wrap(t, middleware.Config{Shedder: s, Classify: mine}, http.NotFoundHandler()), "GET", "/", "192.0.2.1:1")
		call(a.wrap(t, middleware.Config{Shedder: s, Classify: mine}, ok), "GET", "/", "192.0.2.1:1")
		atRest(t, s, map[string]int64{"dropped": 1, "success": 1})
	})
}

func TestOneChargeHoweverOftenAShedderIsStacked(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		s := open(t, 1, limited(bucket("per-client", 3))) // one at a time: a second permit would be refused
		cfg := middleware.Config{Shedder: s}
		for why, h := range map[string]http.Handler{
			"twice":       w.wrap(t, cfg, w.wrap(t, cfg, ok)),
			"net/http in": w.wrap(t, cfg, wrapHTTP(t, cfg, ok)),
			"Echo in":     wrapHTTP(t, cfg, wrapEcho(t, cfg, ok)),
		} {
			srv := w.serve(t, h)
			for _, left := range []string{"2", "1", "0"} {
				res := send(t, srv, "GET", "/", "X-API-Key", why)
				allowed(t, res)
				if got := res.Header.Values("RateLimit"); len(got) != 1 || got[0] != `"per-client";r=`+left+`;t=3600` {
					t.Errorf("%s: RateLimit %q", why, got)
				}
				if got := res.Header.Values("RateLimit-Policy"); len(got) != 1 {
					t.Errorf("%s: RateLimit-Policy %q", why, got)
				}
			}
			refused(t, send(t, srv, "GET", "/", "X-API-Key", why), 429, shed.OverLimit)
		}
		atRest(t, s, map[string]int64{"success": 9})
	})
}

func TestTwoSheddersInOneChainBothSayTheirPart(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		outer, inner := open(t, 1, limited(bucket("site", 9))), open(t, 1, limited(bucket("per-client", 1)))
		h := a.wrap(t, middleware.Config{Shedder: outer}, a.wrap(t, middleware.Config{Shedder: inner}, ok))
		allowed(t, call(h, "GET", "/", "192.0.2.1:1").Result())
		w := call(h, "GET", "/", "192.0.2.1:1")
		refused(t, w.Result(), 429, shed.OverLimit)
		if got := w.Header().Values("RateLimit-Policy"); len(got) != 2 {
			t.Errorf("RateLimit-Policy: %q", got)
		}
		if got := w.Header().Values("Retry-After"); len(got) != 1 || got[0] != "3600" {
			t.Errorf("Retry-After: %q", got)
		}
		atRest(t, outer, map[string]int64{"success": 1, "ignored": 1})
		atRest(t, inner, map[string]int64{"success": 1})
	})
}

// silent is a writer that takes the status of who is gone, and nothing else.
type silent struct {
	t      *testing.T
	header http.Header
}

func (s silent) Header() http.Header { return s.header }
func (s silent) WriteHeader(status int) {
	if status != 499 || len(s.header) != 0 {
		s.t.Errorf("status %d was written, with %v", status, s.header)
	}
}
func (s silent) Write(b []byte) (int, error) { s.t.Errorf("%q was written", b); return len(b), nil }

// queue-cancel
func TestWhoLeavesWhileWaitingGetsNoAnswerAndFreesThePlace(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 1, func(c *shed.Config) { c.Queue = shed.Queue{Capacity: 1, MaxWait: time.Minute} })
			h := a.wrap(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(10 * time.Second)
				ok(w, r)
			}))
			go call(h, "GET", "/", "192.0.2.1:1")
			synctest.Wait()
			ctx, leave := context.WithCancel(t.Context())
			left := make(chan time.Time)
			go func() {
				h.ServeHTTP(silent{t, http.Header{}}, httptest.NewRequest("GET", "/", nil).WithContext(ctx))
				left <- time.Now()
			}()
			synctest.Wait()
			time.Sleep(3 * time.Second)
			at := time.Now()
			leave()
			if back := <-left; back != at {
				t.Errorf("the handler came back %v late", back.Sub(at))
			}
			w := call(h, "GET", "/", "192.0.2.1:1") // the place is free again
			allowed(t, w.Result())
			if st := s.Status(); st.Gone != 1 {
				t.Errorf("gone: %d, want 1", st.Gone)
			}
			atRest(t, s, map[string]int64{"success": 2})
		})
	})
}

func TestWhoseDeadlinePassesIsToldSo(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 1, func(c *shed.Config) { c.Queue = shed.Queue{Capacity: 1, MaxWait: time.Minute} })
			h := a.wrap(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(10 * time.Second)
				ok(w, r)
			}))
			go call(h, "GET", "/", "192.0.2.1:1")
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil).WithContext(ctx))
			res := w.Result()
			body := refused(t, res, 503, shed.Deadline) // and not an empty 200
			if body.Detail == "" || res.Header.Get("Retry-After") == "" {
				t.Errorf("document %+v, fields %v", body, res.Header)
			}
			time.Sleep(10 * time.Second)
			atRest(t, s, map[string]int64{"success": 1})
		})
	})
}

func TestDelayedRequestsWaitAndShowTheirQuota(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		synctest.Test(t, func(t *testing.T) {
			smooth := shed.Limit{Name: "smooth", Rule: limits.LeakyBucket{Capacity: 3, Leak: limits.PerSecond(1)}, Excess: shed.Delay, MaxWait: 10 * time.Second}
			s := open(t, 100, limited(smooth))
			h := a.wrap(t, middleware.Config{Shedder: s}, ok)
			start := time.Now()
			codes, ends := make(chan int, 8), make(chan time.Duration, 8)
			for range 6 {
				go func() {
					w := call(h, "GET", "/", "192.0.2.1:1")
					if w.Code == 200 {
						ends <- time.Since(start)
					}
					codes <- w.Code
				}()
			}
			count := map[int]int{}
			for range 6 {
				count[<-codes]++
			}
			close(ends)
			var last time.Duration
			for end := range ends {
				last = max(last, end)
			}
			if count[200] != 4 || count[429] != 2 || last != 3*time.Second {
				t.Errorf("answers %v, the last after %v; want four 200 over exactly 3s and two 429", count, last)
			}
		})
	})
}

// revision is a pumpkin in one state.
type revision string

func (r revision) Rev() string { return string(r) }

func TestEveryResponseNamesTheStateOfThePumpkin(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		s := open(t, 10, func(c *shed.Config) {
			c.Limits = []shed.Limit{bucket("per-client", 1)}
			c.Routes = []shed.Route{{Name: "probes", Match: "GET /healthz", Exempt: true}}
		})
		srv := w.serve(t, w.wrap(t, middleware.Config{Shedder: s, Pumpkin: revision("01J.7"), HideRateLimit: true}, ok))
		for _, path := range []string{"/", "/", "/healthz"} { // allowed, refused, exempt
			res := send(t, srv, "GET", path)
			if got := res.Header.Get("Pumpkin-Rev"); got != "01J.7" {
				t.Errorf("%s, status %d: Pumpkin-Rev %q", path, res.StatusCode, got)
			}
			if got := res.Header.Get("RateLimit") + res.Header.Get("RateLimit-Policy"); got != "" {
				t.Errorf("%s: the hidden quota shows: %s", path, got)
			}
		}
	})
}

func TestSkippedRequestsAreNobodysBusiness(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		s := open(t, 10, limited(bucket("per-client", 0)))
		h := a.wrap(t, middleware.Config{Shedder: s, Skip: func(r *http.Request) bool { return r.URL.Path == "/free" }}, ok)
		w := call(h, "GET", "/free", "192.0.2.1:1")
		allowed(t, w.Result())
		if len(w.Header()["Ratelimit"]) != 0 {
			t.Error("a skipped request has a quota")
		}
		refused(t, call(h, "GET", "/", "192.0.2.1:1").Result(), 429, shed.CostTooLarge)
	})
}

// Layers further out read the pattern and the path values that the mux inside has found: the request is the same one.
func TestHandlersGetTheVeryRequest(t *testing.T) {
	s := open(t, 10, nil)
	mux := http.NewServeMux()
	mux.Handle("GET /users/{id}", ok)
	h := wrapHTTP(t, middleware.Config{Shedder: s}, mux)
	r := httptest.NewRequest("GET", "/users/7", nil)
	h.ServeHTTP(httptest.NewRecorder(), r)
	if r.Pattern != "GET /users/{id}" || r.PathValue("id") != "7" {
		t.Errorf("pattern %q, id %q", r.Pattern, r.PathValue("id"))
	}
}

// race-check-then-act, race-map: whoever comes at the same time shares one balance, and the ready-made answers.
func TestSimultaneousRequestsPassExactlyAsManyAsTheQuota(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		s := open(t, 1000, limited(bucket("per-client", 25)))
		h := a.wrap(t, middleware.Config{Shedder: s}, ok)
		var passed, turnedAway atomic.Int32
		var all sync.WaitGroup
		start := make(chan struct{})
		for range 200 {
			all.Go(func() {
				<-start
				switch w := call(h, "GET", "/", "192.0.2.1:1", "X-API-Key", "k"); w.Code {
				case 200:
					passed.Add(1)
				case 429:
					turnedAway.Add(1)
				}
			})
		}
		close(start)
		all.Wait()
		if passed.Load() != 25 || turnedAway.Load() != 175 {
			t.Errorf("%d passed and %d were turned away; want exactly 25 and 175", passed.Load(), turnedAway.Load())
		}
		atRest(t, s, map[string]int64{"success": 25})
	})
}
