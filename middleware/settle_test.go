package middleware_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// left returns what the field says is left of a rule, as an independent parser reads it.
func left(t testing.TB, h http.Header, rule string) int64 {
	t.Helper()
	list, err := httpsfv.UnmarshalList(h.Values("RateLimit"))
	if err != nil {
		t.Fatalf("%q: %v", h.Values("RateLimit"), err)
	}
	for _, m := range list {
		if item := m.(httpsfv.Item); item.Value == rule {
			r, _ := item.Params.Get("r")
			return r.(int64)
		}
	}
	t.Fatalf("%q says nothing about %s", h.Values("RateLimit"), rule)
	return 0
}

func TestWhatARequestWeighsIsTheRoutesOrTheApplicationsWord(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		s := open(t, 1, func(c *shed.Config) {
			c.Limits = []shed.Limit{bucket("per-client", 100)}
			c.Routes = []shed.Route{{Name: "reports", Match: "POST /reports", Cost: 5}}
		})
		h := a.wrap(t, middleware.Config{Shedder: s, Cost: func(r *http.Request) int64 {
			return int64(len(r.URL.Query()["ids"])) - int64(len(r.URL.Query()["less"]))
		}}, ok)
		for _, c := range []struct {
			method, path string
			left         int64
		}{
			{"GET", "/", 99}, {"POST", "/reports", 94}, {"POST", "/reports?ids=1&ids=2&ids=3", 91}, {"GET", "/?ids=1&ids=2", 89}, {"GET", "/?less=1", 88},
		} {
			if got := left(t, call(h, c.method, c.path, "192.0.2.1:1").Header(), "per-client"); got != c.left {
				t.Errorf("%s %s: %d left, want %d", c.method, c.path, got, c.left)
			}
		}
	})
}

func TestWhatTheWorkCameToIsSaidByTheHandler(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		s := open(t, 1, func(c *shed.Config) {
			c.Limits = []shed.Limit{bucket("per-client", 100)}
			c.Routes = []shed.Route{{Name: "reports", Match: "/reports", Cost: 10, CostHeader: "x-report-cost"}}
		})
		srv := w.serve(t, w.wrap(t, middleware.Config{Shedder: s, Accounts: true}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for _, v := range r.URL.Query()["header"] {
				w.Header().Add("X-Report-Cost", v)
			}
			if v := r.URL.Query().Get("set"); v != "" && !middleware.SetCost(r.Context(), int64(len(v))) {
				t.Error("a cost was not taken")
			}
			if r.URL.Query().Has("free") && !middleware.SetCost(r.Context(), 0) {
				t.Error("no cost was not taken")
			}
			if middleware.SetCost(r.Context(), -1) {
				t.Error("less than nothing is no cost")
			}
			ok(w, r)
		})))
		want := int64(100)
		for _, c := range []struct {
			query string
			cost  int64
		}{
			{"", 10}, {"header=3", 3}, {"header=0", 0}, {"header=12", 12}, {"header=-1", 10}, {"header=x", 10}, {"header=1e3", 10},
			{"header=99999999999999999999", 10}, {"header=7&header=2", 2}, {"set=xx", 2}, {"free", 0}, {"", 10},
		} {
			res := send(t, srv, "GET", "/reports?"+c.query)
			allowed(t, res)
			if got := left(t, res.Header, "per-client"); got != want-10 {
				t.Errorf("before %q: %d left, want %d", c.query, got, want-10)
			}
			if res.Header.Values("X-Report-Cost") != nil {
				t.Errorf("%q: the field went out", c.query)
			}
			want -= c.cost
		}
		send(t, srv, "GET", "/?set=xxxx")
		if got := left(t, send(t, srv, "GET", "/").Header, "per-client"); got != want-5 {
			t.Errorf("on another route: %d left, want %d", got, want-5)
		}
		if res := send(t, srv, "GET", "/?header=5"); res.Header.Get("X-Report-Cost") != "5" {
			t.Error("the field of another route was taken away")
		}
	})
}

func TestWhoKnowsThePasswordIsNotSlowedDown(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		login := bucket("logins", 3)
		login.Per, login.Count, login.Routes = shed.PerIP, shed.CountFailures, []string{"login"}
		prize := bucket("prizes", 1)
		prize.Count, prize.Routes = shed.CountSuccesses, []string{"prize"}
		s := open(t, 9, func(c *shed.Config) {
			c.Limits = []shed.Limit{login, prize}
			c.Routes = []shed.Route{{Name: "login", Match: "POST /login"}, {Name: "prize", Match: "POST /prize"}}
		})
		srv := w.serve(t, w.wrap(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("password") == "right" {
				ok(w, r)
				return
			}
			status := http.StatusUnauthorized
			if r.URL.Query().Get("password") == "broken" {
				status = http.StatusInternalServerError
			}
			http.Error(w, "no", status)
		})))
		post := func(path string) int { return send(t, srv, "POST", path).StatusCode }
		for i := range 10 {
			if got := post("/login?password=right"); got != 200 {
				t.Fatalf("login %d: status %d", i, got)
			}
			if got := post("/login?password=broken"); got != 500 {
				t.Fatalf("login %d: status %d", i, got)
			}
		}
		for _, want := range []int{401, 401, 401, 429} {
			if got := post("/login?password=wrong"); got != want {
				t.Errorf("status %d, want %d", got, want)
			}
		}
		if got := post("/login?password=right"); got != 429 {
			t.Errorf("after too many guesses: status %d", got)
		}
		for _, c := range []struct {
			path string
			want int
		}{{"/prize", 401}, {"/prize", 401}, {"/prize?password=right", 200}, {"/prize?password=right", 429}} {
			if got := post(c.path); got != c.want {
				t.Errorf("%s: status %d, want %d", c.path, got, c.want)
			}
		}
		if got := s.Status().Rules[0].Settled; got != 20 {
			t.Errorf("%d were given back, want 20", got)
		}
	})
}

// What nobody knows the end of stays charged; a handler that says nothing has succeeded.
func TestAGuessThatEndsInAPanicCounts(t *testing.T) {
	for end, counts := range map[string]bool{"panics": true, "leaves": true, "says nothing": false} {
		login := bucket("logins", 1)
		login.Count = shed.CountFailures
		s := open(t, 9, limited(login, slow("chat", shed.Messages, 9, 1), bucket("all", 9)))
		gone, leave := context.WithCancel(t.Context())
		defer leave()
		h := wrapHTTP(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			switch end {
			case "panics":
				panic("bug")
			case "leaves":
				leave()
			}
		}))
		func() {
			defer func() { _ = recover() }()
			r := httptest.NewRequest("GET", "/", nil).WithContext(gone)
			r.RemoteAddr = "192.0.2.1:1"
			h.ServeHTTP(httptest.NewRecorder(), r)
		}()
		if counts {
			refused(t, call(h, "GET", "/", "192.0.2.1:1").Result(), 429, shed.OverLimit)
		} else if code := call(h, "GET", "/", "192.0.2.1:1").Code; code != 200 {
			t.Errorf("who %s: status %d", end, code)
		}
	}
}

func TestTheApplicationHasTheLastWordOnWhatARequestCost(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		s := open(t, 9, limited(bucket("per-client", 10)))
		h := a.wrap(t, middleware.Config{Shedder: s, Settle: func(_ *http.Request, status int, end *shed.Ending) {
			if status == 404 {
				end.Cost = 4
			} else {
				end.Cost = shed.Free
			}
		}}, http.NotFoundHandler())
		call(h, "GET", "/", "192.0.2.1:1")
		if got := left(t, call(h, "GET", "/", "192.0.2.1:1").Header(), "per-client"); got != 5 {
			t.Errorf("%d left, want 5", got)
		}
	})
}

// The chain that the documentation recommends: a limit per address in front of authentication, one per user behind it.
func TestTwoMiddlewaresAroundAuthenticationShareOneShedder(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ip, user, site := bucket("per-ip", 6), bucket("per-user", 2), bucket("site", 100)
		ip.Per, site.Per = shed.PerIP, shed.Global
		user.For = []string{"principal"}
		s := open(t, 1, func(c *shed.Config) {
			c.Limits = []shed.Limit{ip, user, site}
			c.Clients.Identify = []string{"principal", "ip"}
		})
		inner := w.wrap(t, middleware.Config{Shedder: s, Principal: func(r *http.Request) string { return r.Header.Get("X-User") }}, ok)
		inner = w.wrap(t, middleware.Config{Shedder: s, Principal: func(r *http.Request) string { return r.Header.Get("X-User") }}, inner) // once more
		auth := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-User") == "" {
				http.Error(w, "who?", http.StatusUnauthorized)
				return
			}
			inner.ServeHTTP(w, r)
		})
		front := middleware.Config{Shedder: s, BeforeAuth: true}
		srv := w.serve(t, w.wrap(t, front, w.wrap(t, front, auth)))
		for i, left := range []string{`"per-user";r=1;t=3600`, `"per-user";r=0;t=3600`} {
			res := send(t, srv, "GET", "/", "X-User", "alice")
			allowed(t, res)
			got := res.Header.Values("RateLimit")
			if len(got) != 2 || !strings.HasPrefix(got[0], `"per-ip";r=`) || !strings.Contains(got[0], `"site"`) || got[1] != left {
				t.Errorf("request %d: RateLimit %q", i, got)
			}
			if got := res.Header.Values("RateLimit-Policy"); len(got) != 2 {
				t.Errorf("RateLimit-Policy %q", got)
			}
		}
		refused(t, send(t, srv, "GET", "/", "X-User", "alice"), 429, shed.OverLimit)
		allowed(t, send(t, srv, "GET", "/", "X-User", "bob"))
		for range 2 {
			if res := send(t, srv, "GET", "/"); res.StatusCode != 401 {
				t.Errorf("status %d", res.StatusCode)
			}
		}
		if p := refused(t, send(t, srv, "GET", "/"), 429, shed.OverLimit); p.Rule != "per-ip" {
			t.Errorf("refused by %s: guessing is limited by address", p.Rule)
		}
		if st := s.Status(); st.Admitted != 6 || st.InFlight != 0 || st.Rules[0].Admitted != 6 || st.Rules[1].Admitted != 3 || st.Rules[2].Admitted != 6 {
			t.Errorf("admitted %d, rules %+v", st.Admitted, st.Rules)
		}
	})
}

func TestThePartsInFrontAndBehindAuthenticationAreToldApartAtTheStart(t *testing.T) {
	s := open(t, 1, func(c *shed.Config) { c.Clients.Identify = []string{"principal"} })
	if _, err := middleware.ShedWithConfig(middleware.Config{Shedder: s, BeforeAuth: true, Principal: func(*http.Request) string { return "" }}); err == nil {
		t.Error("a principal before authentication")
	}
	if _, err := middleware.ShedWithConfig(middleware.Config{Shedder: s, BeforeAuth: true}); err != nil {
		t.Errorf("principals are known further in: %v", err)
	}
	if _, err := middleware.ShedWithConfig(middleware.Config{Shedder: s}); err == nil {
		t.Error("nobody knows principals")
	}
}

func TestFieldsFromBeforeTheDraftOnRequest(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		wide := bucket("wide", 1000)
		wide.Per = shed.Global
		for legacy, names := range map[middleware.Legacy][3]string{
			middleware.NoLegacy:        {},
			middleware.XRateLimitEpoch: {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"},
			middleware.XRateLimitDelta: {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"},
			middleware.RateLimitDelta:  {"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"},
		} {
			s := open(t, 9, limited(wide, bucket("per-client", 2)))
			srv := w.serve(t, w.wrap(t, middleware.Config{Shedder: s, Legacy: legacy}, ok))
			for i, want := range []struct{ left, reset string }{{"1", "3600"}, {"0", "7200"}, {"0", "7200"}} {
				res := send(t, srv, "GET", "/")
				if res.Header.Get("RateLimit") == "" || (res.StatusCode == 429) != (i == 2) {
					t.Errorf("request %d: %s %v", i, res.Status, res.Header)
				}
				if legacy == middleware.NoLegacy {
					for name := range res.Header {
						if strings.Contains(strings.ToLower(name), "limit-re") || strings.HasPrefix(name, "X-") {
							t.Errorf("%s was not asked for", name)
						}
					}
					continue
				}
				if limit, left := res.Header.Get(names[0]), res.Header.Get(names[1]); limit != "2" || left != want.left {
					t.Errorf("request %d: limit %q, left %q", i, limit, left)
				}
				reset := res.Header.Get(names[2])
				if legacy == middleware.XRateLimitEpoch {
					if at, err := time.ParseDuration(reset + "s"); err != nil || time.Until(time.Unix(int64(at.Seconds()), 0)) < 30*time.Minute {
						t.Errorf("request %d: reset %q", i, reset)
					}
				} else if reset != want.reset {
					t.Errorf("request %d: reset %q, want %s", i, reset, want.reset)
				}
				for _, name := range names {
					if len(res.Header.Values(name)) != 1 {
						t.Errorf("%s: %q", name, res.Header.Values(name))
					}
				}
			}
		}
	})
}

func TestUnitsAreNamedInThePolicy(t *testing.T) {
	parallel := shed.Limit{Name: "parallel", Rule: limits.InFlight{Max: 1}}
	plain := bucket("per-client", 9)
	plain.Unit = shed.Requests // as if it had been left out
	s := open(t, 9, limited(slow("up", shed.RequestBytes, 1000, 1), slow("down", shed.ResponseBytes, 1000, 1), plain, parallel))
	h := wrapHTTP(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		res := call(wrapHTTP(t, middleware.Config{Shedder: s}, ok), "GET", "/", "192.0.2.1:1").Result()
		if p := refused(t, res, 429, shed.InFlight); p.Rule != "parallel" {
			t.Error(p.Rule)
		}
		if got := res.Header.Get("RateLimit-Policy"); got != `"parallel";q=1;qu="concurrent-requests"` {
			t.Errorf("of the refusal: %s", got)
		}
		ok(w, r)
	}))
	r := httptest.NewRequest("POST", "/", strings.NewReader("abc"))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if got, want := w.Header().Get("RateLimit-Policy"), `"up";q=1000;qu="content-bytes";w=1000, "down";q=1000;qu="content-bytes";w=1000, "per-client";q=9;w=32400`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestAShadowTellsWhatItWouldHaveDone(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		watching, also := bucket("watching", 1), bucket(`"also"`, 0)
		watching.Shadow, also.Shadow = true, true
		s := open(t, 9, limited(watching, also, bucket("acting", 2)))
		srv := w.serve(t, w.wrap(t, middleware.Config{Shedder: s}, ok))
		for i, want := range []string{`"\"also\"";reason=cost_too_large`, `"watching";reason=over_limit;t=3600, "\"also\"";reason=cost_too_large`} {
			res := send(t, srv, "GET", "/")
			allowed(t, res)
			if got := res.Header.Values("Spillway-Shadow"); len(got) != 1 || got[0] != want {
				t.Errorf("request %d: %q, want %s", i, got, want)
			} else if _, err := httpsfv.UnmarshalList(got); err != nil {
				t.Errorf("%q: %v", got, err)
			}
			if got := res.Header.Values("RateLimit-Policy"); len(got) != 1 || strings.Contains(got[0], "watching") {
				t.Errorf("a shadow is no policy: %q", got)
			}
		}
		refused(t, send(t, srv, "GET", "/"), 429, shed.OverLimit)
	})
}

func TestVerifiedKeysAreIdentitiesWithPlans(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		quota := bucket("quota", 1)
		quota.Plans = map[string]limits.Rule{"premium": limits.TokenBucket{Capacity: 50, Refill: limits.PerHour(1)}}
		ip := bucket("per-ip", 5)
		ip.Per = shed.PerIP
		s := open(t, 9, func(c *shed.Config) {
			c.Limits = []shed.Limit{quota, ip}
			c.Clients.APIKeys = []shed.APIKey{{Name: "alice", Digest: shed.DigestKey("alice-key", ""), Plan: "premium"}}
		})
		srv := w.serve(t, w.wrap(t, middleware.Config{Shedder: s}, ok))
		res := send(t, srv, "GET", "/", "X-API-Key", "alice-key")
		allowed(t, res)
		if got := left(t, res.Header, "quota"); got != 49 {
			t.Errorf("premium: %d left", got)
		}
		allowed(t, send(t, srv, "GET", "/", "X-API-Key", "invented-1"))
		refused(t, send(t, srv, "GET", "/", "X-API-Key", "invented-2"), 429, shed.OverLimit) // the same address
		for range 3 {
			allowed(t, send(t, srv, "GET", "/", "X-API-Key", "alice-key"))
		}
		if p := refused(t, send(t, srv, "GET", "/", "X-API-Key", "alice-key"), 429, shed.OverLimit); p.Rule != "per-ip" {
			t.Errorf("refused by %s", p.Rule)
		}
		body, _ := io.ReadAll(send(t, srv, "GET", "/", "X-API-Key", "alice-key").Body)
		if strings.Contains(string(body), "alice") {
			t.Errorf("a client's name or key shows: %s", body)
		}
	})
}
