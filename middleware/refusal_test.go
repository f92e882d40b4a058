package middleware_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

func TestQuotaIsShownFromTheFirstResponseToTheRefusal(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		s := open(t, 10, limited(bucket("per-client", 2)))
		srv := w.serve(t, w.wrap(t, middleware.Config{Shedder: s}, ok))
		for _, left := range []string{"1", "0"} {
			res := send(t, srv, "GET", "/")
			allowed(t, res)
			if got := res.Header.Values("RateLimit"); len(got) != 1 || got[0] != `"per-client";r=`+left+`;t=3600` {
				t.Errorf("RateLimit: %q; r should count this request", got)
			}
			if got := res.Header.Values("RateLimit-Policy"); len(got) != 1 || got[0] != `"per-client";q=2;w=7200` {
				t.Errorf("RateLimit-Policy: %q", got)
			}
			if got := res.Header.Values("Retry-After"); got != nil {
				t.Errorf("Retry-After %q on an allowed response", got)
			}
		}
		res := send(t, srv, "GET", "/")
		p := refused(t, res, 429, shed.OverLimit)
		if p.Rule != "per-client" || len(p.ViolatedPolicies) != 1 || p.ViolatedPolicies[0] != "per-client" {
			t.Errorf("document: %+v", p)
		}
		for field, want := range map[string]string{
			"RateLimit": `"per-client";r=0;t=3600`, "RateLimit-Policy": `"per-client";q=2;w=7200`,
			"Retry-After": "3600", "Cache-Control": "no-store",
		} {
			if got := res.Header.Values(field); len(got) != 1 || got[0] != want {
				t.Errorf("%s: %q, want %q", field, got, want)
			}
		}
	})
}

func TestRefusalLooksTheSameForEveryMethodAndTaste(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		s := open(t, 10, limited(bucket("per-client", 0)))
		srv := w.serve(t, w.wrap(t, middleware.Config{Shedder: s}, ok))
		for _, accept := range []string{"application/json, text/html;q=0.9", "application/xml", "*/*"} {
			p := refused(t, send(t, srv, "GET", "/", "Accept", accept), 429, shed.CostTooLarge)
			if p.Detail == "" {
				t.Error("no detail")
			}
		}
		res := send(t, srv, "HEAD", "/")
		if body, _ := io.ReadAll(res.Body); res.StatusCode != 429 || len(body) != 0 {
			t.Errorf("HEAD: status %d, body %q", res.StatusCode, body)
		}
		for _, field := range []string{"RateLimit", "RateLimit-Policy", "Cache-Control", "Content-Type"} {
			if res.Header.Get(field) == "" {
				t.Errorf("HEAD: no %s", field)
			}
		}
		if got := res.Header.Values("Retry-After"); got != nil {
			t.Errorf("Retry-After %q where waiting cannot help", got)
		}
	})
}

// header-missing-concurrency: a client that is turned away for lack of room learns when to come back, too.
func TestBusyServiceSaysWhenToComeBack(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		s := open(t, 1, nil)
		entered, leave := make(chan struct{}), make(chan struct{})
		srv := w.serve(t, w.wrap(t, middleware.Config{Shedder: s}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(entered)
			<-leave
			ok(w, nil)
		})))
		first := make(chan *http.Response)
		go func() {
			res, _ := srv.Client().Get(srv.URL)
			first <- res
		}()
		<-entered
		res := send(t, srv, "GET", "/")
		refused(t, res, 503, shed.Overloaded)
		var seconds int
		if _, err := fmt.Sscanf(res.Header.Get("Retry-After"), "%d", &seconds); err != nil || seconds < 1 {
			t.Errorf("Retry-After is %q", res.Header.Get("Retry-After"))
		}
		close(leave)
		res = <-first
		allowed(t, res)
		res.Body.Close()
		atRest(t, s, map[string]int64{"success": 1})
	})
}

// reject-stalls: net/http drains the body before it answers, at the client's pace, unless the connection is to be closed.
func TestRefusalDoesNotWaitForTheBody(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		for why, head := range map[string]string{
			"known length":   "Content-Length: 1000\r\n",
			"unknown length": "Transfer-Encoding: chunked\r\n",
			"asks first":     "Content-Length: 1000\r\nExpect: 100-continue\r\n",
		} {
			t.Run(why, func(t *testing.T) {
				s := open(t, 10, limited(bucket("per-client", 0)))
				srv := world{a, false}.serve(t, a.wrap(t, middleware.Config{Shedder: s}, ok))
				conn, err := net.Dial("tcp", srv.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				// The bound only ends a failing test: the body never comes, so a server that waits for it waits for ever.
				_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
				fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\n%s\r\n", head)
				res, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatalf("no answer while the body is outstanding: %v", err)
				}
				refused(t, res, 429, shed.CostTooLarge) // and not 100 Continue
				if !res.Close {
					t.Error("the connection stays open with a body in flight")
				}
				if _, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("the server promised to close the connection and waits for the body instead")
				}
			})
		}
	})
}

func TestRefusalLeavesAnHTTP2ConnectionUsable(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		s := open(t, 10, limited(bucket("per-client", 1)))
		srv := world{a, true}.serve(t, a.wrap(t, middleware.Config{Shedder: s}, ok))
		allowed(t, send(t, srv, "GET", "/"))
		for range 2 {
			body, writer := io.Pipe() // stays open
			defer writer.Close()
			reused := false
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }})
			req, err := http.NewRequestWithContext(ctx, "POST", srv.URL, body)
			if err != nil {
				t.Fatal(err)
			}
			res, err := srv.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			refused(t, res, 429, shed.OverLimit)
			res.Body.Close()
			if !reused {
				t.Error("the connection was given up")
			}
		}
	})
}

// forbidden is a body that nobody may read.
type forbidden struct{ t *testing.T }

func (f forbidden) Read([]byte) (int, error) {
	f.t.Error("the body was read")
	return 0, errors.New("forbidden")
}

func (forbidden) Close() error { return nil }

func TestNoBodyIsReadBeforeTheHandler(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		s := open(t, 10, limited(bucket("per-client", 1)))
		h := a.wrap(t, middleware.Config{Shedder: s}, ok)
		for _, want := range []int{200, 429} {
			req := httptest.NewRequest("POST", "/", nil)
			req.Body, req.ContentLength = forbidden{t}, 1000
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, req); w.Code != want {
				t.Errorf("status %d, want %d", w.Code, want)
			}
		}
	})
}

// cors: what a layer further out has set on the response stays on a refusal, or a browser hides it from the script.
func TestFieldsOfLayersFurtherOutSurviveARefusal(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		s := open(t, 10, limited(bucket("per-client", 0)))
		inner := w.wrap(t, middleware.Config{Shedder: s}, ok)
		srv := w.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Access-Control-Allow-Origin", "*")
			w.Header().Set("ETag", `"7"`)
			w.Header().Set("Content-Encoding", "gzip")
			inner.ServeHTTP(w, r)
		}))
		res := send(t, srv, "GET", "/", "Origin", "https://app.example")
		refused(t, res, 429, shed.CostTooLarge)
		if res.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Error("the CORS field is gone")
		}
		if res.Header.Get("ETag")+res.Header.Get("Content-Encoding") != "" {
			t.Errorf("fields about another body are left: %v", res.Header)
		}
	})
}

// cors-preflight
func TestPreflightsAreFreeAndNeverRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		s := open(t, 10, limited(bucket("per-client", 1)))
		srv := w.serve(t, w.wrap(t, middleware.Config{Shedder: s}, ok))
		preflight := []string{"Origin", "https://app.example", "Access-Control-Request-Method", "PUT"}
		allowed(t, send(t, srv, "OPTIONS", "/", preflight...))
		allowed(t, send(t, srv, "GET", "/"))
		refused(t, send(t, srv, "GET", "/"), 429, shed.OverLimit)
		allowed(t, send(t, srv, "OPTIONS", "/", preflight...))
		refused(t, send(t, srv, "OPTIONS", "/", preflight[:2]...), 429, shed.OverLimit) // not a preflight
		refused(t, send(t, srv, "OPTIONS", "/", preflight[2:]...), 429, shed.OverLimit)
		refused(t, send(t, srv, "GET", "/", preflight...), 429, shed.OverLimit)
		if st := s.Status(); st.Admitted != 1 {
			t.Errorf("%d requests are counted as admitted, want 1", st.Admitted)
		}
	})
}

// A preflight is exempt, and what is exempt is no open door: the guard for the whole process bounds it.
func TestAFloodOfPreflightsIsBounded(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 10, nil)
			h := a.wrap(t, middleware.Config{Shedder: s}, ok)
			passed := 0
			for range 6000 {
				w := call(h, "OPTIONS", "/", "192.0.2.1:1", "Origin", "https://app.example", "Access-Control-Request-Method", "PUT")
				if w.Code == http.StatusOK {
					passed++
				}
			}
			if passed != 5000 {
				t.Errorf("%d of 6000 preflights at once passed, want 5000", passed)
			}
		})
	})
}

// features says that one feature is off.
type features struct{ name, words string }

func (f features) FeatureOff(feature, _ string) (string, time.Duration, bool) {
	return f.words, 90 * time.Second, feature == f.name
}

func TestFeatureThatIsOffIsRefusedInTheWordsOfTheBanner(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		s := open(t, 10, func(c *shed.Config) {
			c.Routes = []shed.Route{{Name: "reports", Match: "GET /reports", Feature: "reports"}, {Name: "orders", Match: "GET /orders", Feature: "orders"}}
			c.Features = features{"reports", "Reports are back at noon."}
		})
		srv := w.serve(t, w.wrap(t, middleware.Config{Shedder: s}, ok))
		res := send(t, srv, "GET", "/reports")
		p := refused(t, res, 503, shed.FeatureOff)
		if p.Detail != "Reports are back at noon." || p.Feature != "reports" || res.Header.Get("Pumpkin-Feature") != "reports" {
			t.Errorf("document %+v, Pumpkin-Feature %q", p, res.Header.Get("Pumpkin-Feature"))
		}
		if got := res.Header.Get("Retry-After"); got != "90" {
			t.Errorf("Retry-After %q", got)
		}
		allowed(t, send(t, srv, "GET", "/orders"))
		allowed(t, send(t, srv, "GET", "/elsewhere"))
	})
}

func TestClosedShedderSendsClientsElsewhere(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		s := open(t, 10, nil)
		s.Close()
		w := call(a.wrap(t, middleware.Config{Shedder: s}, ok), "GET", "/", "1.2.3.4:5")
		refused(t, w.Result(), 503, "closed")
		if got := w.Header().Get("Connection"); got != "close" {
			t.Errorf("Connection: %q", got)
		}
	})
}

func TestRefusedResponsesAreNotLongerThanTheirWordsNeed(t *testing.T) {
	s := open(t, 10, limited(bucket("per-client", 0)))
	w := call(wrapHTTP(t, middleware.Config{Shedder: s}, ok), "GET", "/", "1.2.3.4:5")
	if n := w.Body.Len(); n > 512 || !strings.HasSuffix(w.Body.String(), "}\n") {
		t.Errorf("%d bytes: %s", n, w.Body)
	}
}
