package middleware_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/concurrency"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/middleware/echomw"
	"github.com/spillway-go/spillway/shed"
)

// adapter wraps a handler in one of the two middlewares. What holds for one has to hold for the other.
type adapter struct {
	name string
	wrap func(t testing.TB, cfg middleware.Config, next http.Handler) http.Handler
}

var adapters = []adapter{{"net/http", wrapHTTP}, {"Echo", wrapEcho}}

func wrapHTTP(t testing.TB, cfg middleware.Config, next http.Handler) http.Handler {
	t.Helper()
	wrap, err := middleware.ShedWithConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return wrap(next)
}

func wrapEcho(t testing.TB, cfg middleware.Config, next http.Handler) http.Handler {
	t.Helper()
	e := echo.New()
	ours := echomw.Config{
		Shedder: cfg.Shedder, Classify: cfg.Classify, Pumpkin: cfg.Pumpkin, HideRateLimit: cfg.HideRateLimit, BeforeAuth: cfg.BeforeAuth,
		Settle: cfg.Settle, Accounts: cfg.Accounts, Legacy: cfg.Legacy, NoHTML: cfg.NoHTML, Logger: cfg.Logger,
	}
	if f := cfg.Skip; f != nil {
		ours.Skipper = func(c echo.Context) bool { return f(c.Request()) }
	}
	if f := cfg.Principal; f != nil {
		ours.Principal = func(c echo.Context) string { return f(c.Request()) }
	}
	if f := cfg.Route; f != nil {
		ours.Route = func(c echo.Context) string { return f(c.Request()) }
	}
	if f := cfg.Plan; f != nil {
		ours.Plan = func(c echo.Context) string { return f(c.Request()) }
	}
	if f := cfg.Cost; f != nil {
		ours.Cost = func(c echo.Context) int64 { return f(c.Request()) }
	}
	if f := cfg.Render; f != nil {
		ours.Render = func(c echo.Context, rejection *shed.Rejection, p middleware.Problem) error {
			f(c.Response(), c.Request(), rejection, p)
			return nil
		}
	}
	wrap, err := ours.ToMiddleware()
	if err != nil {
		t.Fatal(err)
	}
	e.Use(wrap)
	e.Any("/*", echo.WrapHandler(next))
	return e
}

// forEachAdapter runs a test that needs no network, so that it can run in virtual time.
func forEachAdapter(t *testing.T, test func(t *testing.T, a adapter)) {
	for _, a := range adapters {
		t.Run(a.name, func(t *testing.T) { test(t, a) })
	}
}

// world is an adapter behind a real server that speaks one protocol.
type world struct {
	adapter
	http2 bool
}

func everywhere(t *testing.T, test func(t *testing.T, w world)) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		t.Run("HTTP/1.1", func(t *testing.T) { test(t, world{a, false}) })
		t.Run("HTTP/2", func(t *testing.T) { test(t, world{a, true}) })
	})
}

// serve starts a server and returns it with a client that speaks the world's protocol to it.
func (w world) serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.EnableHTTP2 = w.http2
	if w.http2 {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	srv.Client().Timeout = 30 * time.Second // a test that hangs shall say where
	return srv
}

// open makes a shedder that lets n requests run at once, nobody wait, and looks at no machine.
func open(t testing.TB, n int, change func(*shed.Config)) *shed.Shedder {
	t.Helper()
	cfg := shed.Config{
		Concurrency: concurrency.Config{Algorithm: concurrency.Fixed, Initial: n},
		Queue:       shed.Queue{Capacity: -1},
		Health:      health.Config{Off: true},
	}
	if change != nil {
		change(&cfg)
	}
	s, err := shed.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// bucket allows capacity at once and one more each hour, so that no test sees it refill.
func bucket(name string, capacity int64) shed.Limit {
	return shed.Limit{Name: name, Rule: limits.TokenBucket{Capacity: capacity, Refill: limits.Rate{Amount: 1, Per: time.Hour}}}
}

func limited(l ...shed.Limit) func(*shed.Config) { return func(c *shed.Config) { c.Limits = l } }

// ok is a handler that does nothing well.
var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })

// send makes a request with the client of srv. Fields are given as name, value, name, value.
func send(t *testing.T, srv *httptest.Server, method, path string, fields ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		req.Header.Add(fields[i], fields[i+1])
	}
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// call makes a request without a network.
func call(h http.Handler, method, path, peer string, fields ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, path, nil)
	req.RemoteAddr = peer
	for i := 0; i < len(fields); i += 2 {
		req.Header.Add(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

// allowed and refused check an answer and return what its document says.
func allowed(t testing.TB, res *http.Response) {
	t.Helper()
	if body, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusOK || string(body) != "ok" {
		t.Fatalf("status %d, body %q; want 200 and ok", res.StatusCode, body)
	}
}

func refused(t testing.TB, res *http.Response, status int, reason shed.Reason) middleware.Problem {
	t.Helper()
	body, _ := io.ReadAll(res.Body)
	var p middleware.Problem
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatalf("status %d, body %q: %v", res.StatusCode, body, err)
	}
	if res.StatusCode != status || p.Status != status || p.Reason != reason {
		t.Fatalf("status %d, document %+v; want %d %s", res.StatusCode, p, status, reason)
	}
	if got := res.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Fatalf("Content-Type is %q", got)
	}
	return p
}

// atRest checks that every permit has come back, exactly once, and how.
func atRest(t testing.TB, s *shed.Shedder, finished map[string]int64) {
	t.Helper()
	st := s.Status()
	if st.InFlight != 0 || st.Waiting != 0 {
		t.Errorf("in flight %d, waiting %d; want none", st.InFlight, st.Waiting)
	}
	for outcome, n := range st.Finished {
		if n != finished[outcome] {
			t.Errorf("finished: %v, want %v", st.Finished, finished)
			break
		}
	}
}
