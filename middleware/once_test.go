package middleware_test

import (
	"fmt"
	"io"
	"net/http"
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
	})
}
