package echomw_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/middleware/echomw"
	"github.com/spillway-go/spillway/shed"
)

// What Echo shares with net/http is tested once for both, in package middleware. Here is what is Echo's own.

// open makes a shedder with rules that allow so much at once, by name, and no more while a test runs.
func open(t *testing.T, cfg shed.Config) *shed.Shedder {
	t.Helper()
	cfg.Health = health.Config{Off: true}
	s, err := shed.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func bucket(name string, capacity int64, routes ...string) shed.Limit {
	return shed.Limit{Name: name, Rule: limits.TokenBucket{Capacity: capacity, Refill: limits.Rate{Amount: 1, Per: time.Hour}}, Routes: routes}
}

func call(h http.Handler, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

func allowed(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	if w.Code != 200 || w.Body.String() != "ok" {
		t.Fatalf("status %d, body %q; want 200 and ok", w.Code, w.Body)
	}
}

func refused(t *testing.T, w *httptest.ResponseRecorder, reason shed.Reason) {
	t.Helper()
	var p middleware.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 429 || p.Status != 429 || p.Reason != reason {
		t.Fatalf("status %d, body %q, %v; want 429 %s", w.Code, w.Body, err, reason)
	}
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Fatalf("Content-Type is %q", got)
	}
}

// echo-double-error
func TestEchoHandlesARefusalOnceAndLayersOutsideSeeIt(t *testing.T) {
	s := open(t, shed.Config{Limits: []shed.Limit{bucket("per-client", 1)}})
	e := echo.New()
	handled, ran := 0, 0
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		handled++
		e.DefaultHTTPErrorHandler(err, c)
	}
	var outside []error
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			err := next(c)
			outside = append(outside, err)
			return err
		}
	}, echomw.Shed(s))
	e.GET("/users/:id", func(c echo.Context) error {
		ran++
		return c.String(200, "ok")
	})
	allowed(t, call(e, "GET", "/users/1"))
	w := call(e, "GET", "/users/1")
	refused(t, w, shed.OverLimit)
	if handled != 1 || ran != 1 {
		t.Errorf("the error handler ran %d times and the handler %d times, want 1 and 1", handled, ran)
	}
	if got := w.Header().Values("RateLimit"); len(got) != 1 || w.Header().Get("Retry-After") == "" {
		t.Errorf("fields: %v", w.Header()) // header-missing
	}
	var failure *echo.HTTPError
	var rejection *shed.Rejection
	if len(outside) != 2 || outside[0] != nil || !errors.As(outside[1], &failure) || failure.Code != 429 || !errors.As(outside[1], &rejection) || rejection.Rule != "per-client" {
		t.Errorf("layers outside see %v", outside)
	}
}

func TestEchoErrorsAreClassifiedByWhatWillBeSent(t *testing.T) {
	for want, err := range map[string]error{
		"dropped": echo.NewHTTPError(503), "success": echo.ErrNotFound, "ignored": io.ErrUnexpectedEOF,
	} {
		s := open(t, shed.Config{})
		e := echo.New()
		e.Use(echomw.Shed(s))
		e.GET("/", func(echo.Context) error { return err })
		call(e, "GET", "/")
		if st := s.Status(); st.InFlight != 0 || st.Finished[want] != 1 {
			t.Errorf("%v: in flight %d, finished %v, want one %s", err, st.InFlight, st.Finished, want)
		}
	}
}

func TestEchoRoutesNameWhatNoPatternMatches(t *testing.T) {
	var routes []string
	s := open(t, shed.Config{
		Limits: []shed.Limit{bucket("users", 0, "/users/:id")},
		Routes: []shed.Route{{Name: "/users/:id"}, {Name: "write", Match: "POST /users/{id}"}},
		Observer: shed.ObserverFunc(func(e shed.Event) {
			if e.Kind != shed.Finished {
				routes = append(routes, e.Route)
			}
		}),
	})
	e := echo.New()
	e.Use(echomw.Shed(s))
	e.Any("/users/:id", func(c echo.Context) error { return c.String(200, "ok") })
	refused(t, call(e, "GET", "/users/7"), shed.CostTooLarge)
	allowed(t, call(e, "POST", "/users/7"))
	if got := call(e, "GET", "/nowhere").Code; got != 404 {
		t.Errorf("status %d", got)
	}
	if len(routes) != 3 || routes[0] != "/users/:id" || routes[1] != "write" || routes[2] != "" {
		t.Errorf("routes: %q", routes)
	}
}

func TestEchoLogsTellWhoLeft(t *testing.T) {
	s := open(t, shed.Config{})
	e := echo.New()
	status := 0
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			err := next(c)
			status = c.Response().Status
			return err
		}
	}, echomw.Shed(s))
	ctx, leave := context.WithCancel(t.Context())
	leave()
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest("GET", "/", nil).WithContext(ctx))
	if status != 499 || w.Body.Len() != 0 || len(w.Header()) != 0 {
		t.Errorf("layers outside see status %d; sent: %q, %v", status, w.Body, w.Header())
	}
}

func TestBadConfigurationPanicsOrIsAnError(t *testing.T) {
	if _, err := (echomw.Config{}).ToMiddleware(); err == nil || err.Error() != "echomw: no Shedder; make one with shed.New" {
		t.Errorf("error is %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("ShedWithConfig let it pass")
		}
	}()
	echomw.ShedWithConfig(echomw.Config{})
}

// An error handler of the application's own has everything at hand.
func TestCustomErrorHandlersReachTheRejection(t *testing.T) {
	s := open(t, shed.Config{Limits: []shed.Limit{bucket("per-client", 0)}})
	e := echo.New()
	e.Use(echomw.Shed(s))
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		var rejection *shed.Rejection
		if !errors.As(err, &rejection) {
			t.Fatalf("error is %v", err)
		}
		c.Response().Header().Set(echo.HeaderContentType, echo.MIMETextPlainCharsetUTF8)
		_ = c.String(418, string(rejection.Reason)+" by "+rejection.Rule)
	}
	if w := call(e, "GET", "/"); w.Code != 418 || w.Body.String() != "cost_too_large by per-client" || w.Header().Get("RateLimit") == "" {
		t.Errorf("%d %q %v", w.Code, w.Body, w.Header())
	}
}

// The writer that Echo had is Echo's again afterwards, unless somebody further in has put in another.
func TestEchosWriterIsPutBack(t *testing.T) {
	s := open(t, shed.Config{})
	e := echo.New()
	var before, after, inside http.ResponseWriter
	another := httptest.NewRecorder()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			before = c.Response().Writer
			err := next(c)
			after = c.Response().Writer
			return err
		}
	}, echomw.Shed(s))
	e.GET("/", func(c echo.Context) error { inside = c.Response().Writer; return c.NoContent(204) })
	e.GET("/replaces", func(c echo.Context) error { c.Response().Writer = another; return nil })
	if call(e, "GET", "/"); before != after || inside == before {
		t.Errorf("before %T, inside %T, after %T", before, inside, after)
	}
	if call(e, "GET", "/replaces"); after != another {
		t.Errorf("another's writer became %T", after)
	}
}

// What is written here is what Echo's own handler would have sent; where it is in doubt what that is, Echo writes it.
func TestAnswersAreThoseOfEchosHandler(t *testing.T) {
	answered := func(change func(*echo.Echo), method, path string) (*httptest.ResponseRecorder, bool) {
		e := echo.New()
		change(e)
		committed := false
		e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				err := next(c)
				committed = c.Response().Committed
				return err
			}
		}, echomw.Shed(open(t, shed.Config{Limits: []shed.Limit{bucket("per-client", 0)}})))
		return call(e, method, path), committed
	}
	byEcho := func(e *echo.Echo) {
		e.HTTPErrorHandler = func(err error, c echo.Context) { e.DefaultHTTPErrorHandler(err, c) }
	}
	for _, method := range []string{"GET", "HEAD"} {
		want, committed := answered(byEcho, method, "/")
		if committed {
			t.Errorf("%s: an application's own handler finds the response committed", method)
		}
		got, committed := answered(func(*echo.Echo) {}, method, "/")
		if !committed || got.Code != want.Code || got.Body.String() != want.Body.String() || !maps.EqualFunc(got.Header(), want.Header(), slices.Equal) {
			t.Errorf("%s: %d %q %v, committed %t; want %d %q %v", method, got.Code, got.Body, got.Header(), committed, want.Code, want.Body, want.Header())
		}
	}
	for why, change := range map[string]func(*echo.Echo){
		"debugging":                   func(e *echo.Echo) { e.Debug = true },
		"an encoder of the app's own": func(e *echo.Echo) { e.JSONSerializer = struct{ echo.DefaultJSONSerializer }{} },
	} {
		w, committed := answered(change, "GET", "/")
		if refused(t, w, shed.CostTooLarge); committed {
			t.Errorf("%s: committed", why)
		}
	}
	if w, committed := answered(func(*echo.Echo) {}, "GET", "/?pretty"); committed || !strings.Contains(w.Body.String(), "\n  ") {
		t.Errorf("committed %t, %q", committed, w.Body)
	}
}

// What handlers and renderers return reaches the layers further out, also of requests that are none of the middleware's business.
func TestErrorsReachTheLayersOutside(t *testing.T) {
	own := errors.New("the application's own")
	s := open(t, shed.Config{Limits: []shed.Limit{bucket("per-client", 0)}})
	for why, cfg := range map[string]echomw.Config{
		"skipped":  {Shedder: s, Skipper: func(echo.Context) bool { return true }},
		"rendered": {Shedder: s, Render: func(echo.Context, *shed.Rejection, middleware.Problem) error { return own }},
		"admitted": {Shedder: open(t, shed.Config{})},
	} {
		wrap, err := cfg.ToMiddleware()
		if err != nil {
			t.Fatal(err)
		}
		c := echo.New().NewContext(httptest.NewRequest("GET", "/", nil), httptest.NewRecorder())
		if err := wrap(func(echo.Context) error { return own })(c); !errors.Is(err, own) {
			t.Errorf("%s: %v", why, err)
		}
	}
}
