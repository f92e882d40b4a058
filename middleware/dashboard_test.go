package middleware_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// seen asks a dashboard; header fields come in pairs.
func seen(h http.Handler, method, path string, fields ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestADashboardWorksWhereverItIsMounted(t *testing.T) {
	s, err := shed.New(shed.Config{Health: health.Config{Off: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	mux := http.NewServeMux()
	mux.Handle("/dashboard/", middleware.Dashboard(s))
	mux.Handle("/ops/{team}/live/", http.StripPrefix("/ops", middleware.Dashboard(s)))
	mux.Handle("/{$}", middleware.Dashboard(s))
	for _, c := range []struct {
		path, media string
		status      int
	}{
		{"/dashboard/", "text/html; charset=utf-8", 200},
		{"/", "text/html; charset=utf-8", 200},
		{"/ops/blue/live/", "text/html; charset=utf-8", 200},
		{"/ops/blue/live/assets/live.js", "text/javascript; charset=utf-8", 200},
		{"/dashboard/assets/style.css", "text/css; charset=utf-8", 200},
		{"/dashboard/assets/icon.svg", "image/svg+xml", 200},
		{"/dashboard/stats", "application/json", 200},
		{"/dashboard/stats?after=nonsense", "application/json", 200},
		{"/dashboard", "text/html; charset=utf-8", 307},
		{"/dashboard/live.js", "text/plain; charset=utf-8", 404},
		{"/dashboard/index.html", "text/plain; charset=utf-8", 404},
		{"/dashboard/assets/../../secret", "text/html; charset=utf-8", 307},
		{"/dashboard/assets/%2e%2e%2fhealth.go", "text/plain; charset=utf-8", 404},
	} {
		w := seen(mux, "GET", c.path)
		if w.Code != c.status || w.Header().Get("Content-Type") != c.media {
			t.Errorf("%s: %d %q, want %d %q", c.path, w.Code, w.Header().Get("Content-Type"), c.status, c.media)
		}
	}
	if got, want := middleware.DashboardPaths(), []string{"/", "/stats", "/assets/chart.js", "/assets/icon.svg", "/assets/live.js", "/assets/style.css"}; !slices.Equal(got, want) {
		t.Errorf("a router that knows whole paths is told of %q, not of %q", got, want)
	}
	if page := seen(mux, "GET", "/dashboard/").Body.String(); !strings.Contains(page, "<title>Spillway") {
		t.Errorf("the page has no title:\n%.300s", page)
	}
	for _, path := range middleware.DashboardPaths() {
		w := seen(mux, "GET", "/dashboard"+path)
		if w.Code != 200 || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
		if kept := map[bool]string{true: "no-store", false: "no-cache"}[path == "/stats"]; w.Header().Get("Cache-Control") != kept {
			t.Errorf("%s: Cache-Control %q, want %s", path, w.Header().Get("Cache-Control"), kept)
		}
		if path != "/stats" {
			if got := w.Header().Get("Referrer-Policy"); got != "no-referrer" {
				t.Errorf("%s: Referrer-Policy %q", path, got)
			}
			if w.Header().Get("Content-Security-Policy") != middleware.DashboardPolicy {
				t.Errorf("%s is not under the policy", path)
			}
			if again := seen(mux, "GET", "/dashboard"+path, "If-None-Match", w.Header().Get("ETag")); again.Code != 304 || again.Body.Len() > 0 {
				t.Errorf("%s asked again: %d, %d bytes", path, again.Code, again.Body.Len())
			}
		}
		if head := seen(mux, "HEAD", "/dashboard"+path); head.Code != 200 || head.Body.Len() > 0 || head.Header().Get("Content-Length") == "" {
			t.Errorf("HEAD %s: %d, %d bytes, length %q", path, head.Code, head.Body.Len(), head.Header().Get("Content-Length"))
		}
		if post := seen(mux, "POST", "/dashboard"+path); post.Code != 405 || post.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: %d, Allow %q", path, post.Code, post.Header().Get("Allow"))
		}
	}
}

func TestThePolicyAllowsOwnFilesOnly(t *testing.T) {
	for _, directive := range strings.Split(middleware.DashboardPolicy, "; ") {
		name, sources, _ := strings.Cut(directive, " ")
		want := "'self'"
		switch name {
		case "default-src", "base-uri", "form-action", "frame-ancestors":
			want = "'none'"
		case "img-src":
			want = "'self' data:"
		}
		if sources != want {
			t.Errorf("%s is %q, want %q", name, sources, want)
		}
	}
}

// told is what the page reads of the statistics.
type told struct {
	Ticks []shed.Moment
	Total shed.Flow
	State struct {
		Rules   []struct{ Name, Rule string }
		Refused map[shed.Reason]int64
	}
	Extra map[string]int
}

func TestTheStatisticsTellEachMomentOnceAndNoName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := shed.New(shed.Config{
			Limits: []shed.Limit{{Name: "per-client", Rule: limits.TokenBucket{Capacity: 2, Refill: limits.PerDay(1)}}},
			Health: health.Config{Off: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		calls := 0
		h, err := middleware.DashboardWithConfig(middleware.DashboardConfig{Shedder: s, Title: "A <b>title</b>", Capacity: 7, Extra: func() any {
			calls++
			return map[string]int{"calls": calls}
		}})
		if err != nil {
			t.Fatal(err)
		}
		if page := seen(h, "GET", "/").Body.String(); strings.Contains(page, "<b>") || !strings.Contains(page, "A &lt;b&gt;title") {
			t.Error("the title is not text")
		}
		ask := func(query string) (got told) {
			t.Helper()
			w := seen(h, "GET", "/stats"+query)
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatalf("%v: %s", err, w.Body)
			}
			if strings.Contains(w.Body.String(), "secret") {
				t.Errorf("a client's name is shown: %s", w.Body)
			}
			return got
		}
		if got := ask(""); len(got.Ticks) != 0 || got.Extra["calls"] != 1 {
			t.Errorf("at the start: %+v", got)
		}
		for range 3 {
			if p, err := s.Admit(t.Context(), shed.Request{Client: "secret-client"}); err == nil {
				p.Done(shed.Success)
			}
		}
		time.Sleep(2*shed.MomentEvery + time.Millisecond)
		got := ask("?after=0")
		if len(got.Ticks) != 2 || got.Total != (shed.Flow{Offered: 3, Served: 2, Over: 1, Good: 2}) || got.State.Refused[shed.OverLimit] != 1 || got.State.Rules[0].Name != "per-client" {
			t.Errorf("after three requests: %+v", got)
		}
		if got := ask("?after=1"); len(got.Ticks) != 1 || got.Ticks[0].Seq != 2 {
			t.Errorf("asked for the second: %+v", got.Ticks)
		}
		if got := ask("?after=2"); len(got.Ticks) != 0 {
			t.Errorf("asked for news: %+v", got.Ticks)
		}
		time.Sleep(2 * time.Minute)
		if got := ask("?after=2"); len(got.Ticks) != shed.MomentsKept {
			t.Errorf("after two minutes: %d moments, want one minute's %d", len(got.Ticks), shed.MomentsKept)
		}
		if got := ask("?after=99999"); len(got.Ticks) != shed.MomentsKept {
			t.Errorf("asked with a number from before a restart: %d moments", len(got.Ticks))
		}
	})
}

func TestADashboardThatCannotWorkIsRefused(t *testing.T) {
	if _, err := middleware.DashboardWithConfig(middleware.DashboardConfig{}); err == nil || !strings.Contains(err.Error(), "Shedder") {
		t.Errorf("without a shedder: %v", err)
	}
	s, err := shed.New(shed.Config{Health: health.Config{Off: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	h, err := middleware.DashboardWithConfig(middleware.DashboardConfig{Shedder: s, Extra: func() any { return func() {} }})
	if err != nil {
		t.Fatal(err)
	}
	if w := seen(h, "GET", "/stats"); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "JSON") {
		t.Errorf("an extra that is no JSON: %d %s", w.Code, w.Body)
	}
}
