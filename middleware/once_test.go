package middleware_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// A request that comes by the inner part twice, one after the other, is charged for its client once.
func TestTheInnerPartChargesOnceHoweverOftenItIsPassed(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		user := bucket("per-user", 9)
		user.For = []string{"principal"}
		s := open(t, 1, func(c *shed.Config) {
			c.Limits = []shed.Limit{user}
			c.Clients.Identify = []string{"principal", "ip"}
		})
		inner := a.wrap(t, middleware.Config{Shedder: s, Principal: func(*http.Request) string { return "alice" }}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		h := a.wrap(t, middleware.Config{Shedder: s, BeforeAuth: true}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			inner.ServeHTTP(w, r)
			inner.ServeHTTP(w, r)
		}))
		call(h, "GET", "/", "192.0.2.1:1")
		if st := s.Status(); st.Rules[0].Admitted != 1 || st.InFlight != 0 {
			t.Errorf("charged %d times, %d in flight", st.Rules[0].Admitted, st.InFlight)
		}
	})
}

// A cost that is known only behind authentication is charged there.
func TestTheInnerPartChargesItsOwnCost(t *testing.T) {
	user := bucket("per-user", 9)
	user.For = []string{"principal"}
	s := open(t, 1, func(c *shed.Config) {
		c.Limits = []shed.Limit{user}
		c.Clients.Identify = []string{"principal", "ip"}
	})
	inner := wrapHTTP(t, middleware.Config{
		Shedder: s, Principal: func(*http.Request) string { return "alice" }, Cost: func(*http.Request) int64 { return 5 },
	}, ok)
	w := call(wrapHTTP(t, middleware.Config{Shedder: s, BeforeAuth: true}, inner), "GET", "/", "192.0.2.1:1")
	if got := w.Header().Get("RateLimit"); !strings.HasPrefix(got, `"per-user";r=4`) {
		t.Errorf("RateLimit %q", got)
	}
}

// What is charged in front of authentication is not charged behind it, and the other way round, whatever is counted.
func TestEachPartChargesItsOwnLimits(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		site, per, watching := bucket("site", 100), bucket("per-client", 100), bucket("watching", 0)
		siteUp, up, siteDown, down := bucket("site-up", 100), bucket("up", 100), bucket("site-down", 100), bucket("down", 100)
		site.Per, siteUp.Per, siteDown.Per, watching.Shadow = shed.Global, shed.Global, shed.Global, true
		siteUp.Unit, up.Unit, siteDown.Unit, down.Unit = shed.RequestBytes, shed.RequestBytes, shed.ResponseBytes, shed.ResponseBytes
		s := open(t, 1, limited(site, per, siteUp, up, siteDown, down, watching))
		var user http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if !middleware.SetCost(r.Context(), 3) {
				t.Error("a cost was not taken")
			}
			ok(w, r)
		})
		user = a.wrap(t, middleware.Config{Shedder: s, Principal: func(*http.Request) string { return "" }, Accounts: true}, user)
		h := a.wrap(t, middleware.Config{Shedder: s, BeforeAuth: true, Accounts: true}, user)
		var last http.Header
		for _, length := range []int64{5, -1, 5} {
			r := httptest.NewRequest("POST", "/", strings.NewReader("12345"))
			r.ContentLength = length
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			allowed(t, w.Result())
			last = w.Header()
			if got := last.Get("Spillway-Shadow"); got != `"watching";reason=cost_too_large` {
				t.Errorf("Spillway-Shadow: %q", got)
			}
		}
		// The last request has been charged 1, 5 bytes up and a first one down when its fields were written.
		for rule, want := range map[string]int64{"site": 93, "per-client": 93, "site-up": 85, "up": 85, "site-down": 95, "down": 95} {
			if got := left(t, last, rule); got != want {
				t.Errorf("%s: %d left, want %d", rule, got, want)
			}
		}
	})
}

// A handler that gives up without a word when the body is cut has not succeeded.
func TestSilenceAboutABodyThatWasCutIsNoSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 1, nil)
		conn := piped(t, wrapHTTP(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
		})))()
		start := time.Now()
		go fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 40000\r\n\r\n%s", strings.Repeat("x", 20000))
		refused(t, answered(t, conn), 408, shed.BodyTooSlow)
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("after %v", took)
		}
		synctest.Wait()
		atRest(t, s, map[string]int64{"ignored": 1})
	})
}
