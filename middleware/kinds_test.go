package middleware_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/wait"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// The tests of this file are named after kinds of defects that limiting middlewares have had; CONTRIBUTING.md lists them all.

// permit-leak-panic: http.TimeoutHandler runs what is inside of it in a goroutine of its own, and a panic there comes up in another
// one. On whichever side of it the middleware stands, the place comes back (valyala/fasthttp#2219).
func TestKindPermitLeakPanicBehindATimeout(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		bad := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/bug" {
				panic("bug")
			}
			ok(w, r)
		})
		for side, build := range map[string]func(middleware.Config) http.Handler{
			"inside": func(cfg middleware.Config) http.Handler {
				return http.TimeoutHandler(a.wrap(t, cfg, bad), time.Minute, "")
			},
			"outside": func(cfg middleware.Config) http.Handler {
				return a.wrap(t, cfg, http.TimeoutHandler(bad, time.Minute, ""))
			},
		} {
			s := open(t, 2, nil)
			h := build(middleware.Config{Shedder: s})
			for range 4 { // twice the limit
				func() {
					defer func() {
						if recover() == nil {
							t.Errorf("%s: the panic is gone", side)
						}
					}()
					call(h, "GET", "/bug", "192.0.2.1:1")
				}()
			}
			allowed(t, call(h, "GET", "/", "192.0.2.1:1").Result())
			atRest(t, s, map[string]int64{"ignored": 4, "success": 1})
		}
	})
}

// slow-client-holds-permit: clients that do not read may keep what they hold, and still nobody else hangs: who comes is answered
// within the line's wait. A write deadline, which is the server's to set, gives the places back (navidrome/navidrome#5472).
func TestKindSlowClientHoldsPermit(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		s := open(t, 2, func(c *shed.Config) { c.Queue = shed.Queue{Capacity: 5, MaxWait: 50 * time.Millisecond} })
		expire := make(chan struct{})
		chunk := make([]byte, 1<<20)
		srv := httptest.NewServer(a.wrap(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/big" {
				ok(w, r)
				return
			}
			stop := make(chan struct{})
			defer close(stop)
			go func() {
				select {
				case <-expire:
					_ = http.NewResponseController(w).SetWriteDeadline(time.Now())
				case <-stop:
				}
			}()
			for range 64 { // more than any socket's buffers take
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
			t.Error("a client that reads nothing got everything")
		})))
		t.Cleanup(srv.Close)
		for range 2 {
			c, err := net.Dial("tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			fmt.Fprint(c, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
			if line, err := bufio.NewReaderSize(c, 16).ReadString('\n'); !strings.Contains(line, "200") {
				t.Fatalf("%q, %v", line, err)
			}
		}
		refused(t, send(t, srv, "GET", "/"), 503, shed.WaitExpired)
		close(expire)
		wait.Until(t, "the places come back", func() bool { return s.Status().InFlight == 0 })
		allowed(t, send(t, srv, "GET", "/"))
	})
}

// retry-after-wrong, retry-after-zero, retry-after-negative, early-admit: for every rule, at any moment around the edge of a window, a
// refusal names whole seconds, at least one. Who waits so long passes, and who comes a second earlier has come too early
// (go-chi/httprate#47, traefik/traefik#8573, alisaifee/flask-limiter#62, Losant/redis-gcra#3).
func TestKindRetryAfterIsTheTruth(t *testing.T) {
	rules := map[string]limits.Rule{
		"token bucket":      limits.TokenBucket{Capacity: 3, Refill: limits.Rate{Amount: 1, Per: 10 * time.Second}},
		"quick bucket":      limits.TokenBucket{Capacity: 3, Refill: limits.PerSecond(10)},
		"leaky bucket":      limits.LeakyBucket{Capacity: 3, Leak: limits.Rate{Amount: 3, Per: 7 * time.Second}},
		"burst":             limits.Burst{Soft: limits.Rate{Amount: 3, Per: time.Minute}, Hard: limits.Rate{Amount: 5, Per: time.Minute}},
		"fixed window":      limits.FixedWindow{Quota: limits.PerMinute(3)},
		"sliding window":    limits.SlidingWindow{Quota: limits.PerMinute(3)},
		"sliding log":       limits.SlidingLog{Quota: limits.PerMinute(3)},
		"a window of 100ms": limits.FixedWindow{Quota: limits.Rate{Amount: 3, Per: 100 * time.Millisecond}},
	}
	for name, rule := range rules {
		for _, offset := range []time.Duration{0, time.Nanosecond, 30 * time.Second, 59 * time.Second, 59*time.Second + 999*time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + offset)))
				h := wrapHTTP(t, middleware.Config{Shedder: open(t, 1, limited(shed.Limit{Name: "p", Rule: rule}))}, ok)
				ask := func() *http.Response { return call(h, "GET", "/", "192.0.2.1:1").Result() }
				var res *http.Response
				for n := 0; ; n++ {
					if res = ask(); res.StatusCode != 200 {
						break
					}
					if n > 10 {
						t.Fatalf("%s: never refused", name)
					}
				}
				wait, err := strconv.Atoi(res.Header.Get("Retry-After"))
				if err != nil || wait < 1 {
					t.Fatalf("%s at +%v: Retry-After is %q", name, offset, res.Header.Get("Retry-After"))
				}
				if wait > 1 {
					time.Sleep(time.Duration(wait-1) * time.Second)
					if early := ask(); early.StatusCode != 429 {
						t.Errorf("%s at +%v: Retry-After was %d, yet a second earlier it is %d", name, offset, wait, early.StatusCode)
					}
					time.Sleep(time.Second)
				} else {
					time.Sleep(time.Second)
				}
				if res := ask(); res.StatusCode != 200 {
					body, _ := io.ReadAll(res.Body)
					t.Errorf("%s at +%v: after the %d s it asked for: %s", name, offset, wait, body)
				}
			})
		}
	}
}
