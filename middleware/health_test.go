package middleware_test

import (
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// Shedding is how an instance stays useful; it is neither dead nor unready by it.
func TestProbesAnswerWhileEverythingIsShed(t *testing.T) {
	s := open(t, 1, func(c *shed.Config) {
		c.Routes = []shed.Route{{Name: "probes", Match: "GET /livez", Exempt: true}, {Name: "ready", Match: "GET /readyz", Exempt: true}}
	})
	permit, err := s.Admit(t.Context(), shed.Request{})
	if err != nil {
		t.Fatal(err)
	}
	defer permit.Done(shed.Ignored)
	var draining atomic.Bool
	mux := http.NewServeMux()
	mux.Handle("GET /livez", middleware.Livez())
	mux.Handle("GET /readyz", middleware.Readyz(draining.Load))
	h := wrapHTTP(t, middleware.Config{Shedder: s}, mux)
	refused(t, call(h, "GET", "/", "192.0.2.1:1").Result(), 503, shed.Overloaded)
	for _, path := range []string{"/livez", "/readyz"} {
		if w := call(h, "GET", path, "192.0.2.1:1"); w.Code != 200 || w.Body.String() != "ok\n" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %q", path, w.Code, w.Body)
		}
	}
	draining.Store(true)
	if w := call(h, "GET", "/readyz", "192.0.2.1:1"); w.Code != 503 {
		t.Errorf("/readyz while draining: %d", w.Code)
	}
	if w := call(h, "GET", "/livez", "192.0.2.1:1"); w.Code != 200 {
		t.Errorf("/livez while draining: %d", w.Code)
	}
	if w := call(middleware.Readyz(nil), "GET", "/", ""); w.Code != 200 {
		t.Errorf("/readyz of what never drains: %d", w.Code)
	}
}

func TestDebugViewShowsTheShedderAndWhatIsPutBesideIt(t *testing.T) {
	s := open(t, 7, limited(bucket("per-client", 1)))
	h := wrapHTTP(t, middleware.Config{Shedder: s}, ok)
	call(h, "GET", "/", "192.0.2.1:1", "X-API-Key", "sk_secret")
	call(h, "GET", "/", "192.0.2.1:1", "X-API-Key", "sk_secret")
	debug := middleware.DebugHandler(s, middleware.DebugSection{Name: "pumpkin", Read: func() any { return map[string]int{"rev": 7} }})
	w := call(debug, "GET", "/debug/spillway", "127.0.0.1:1")
	var view struct {
		Shed struct {
			Limit    int
			Admitted int64
			Refused  map[string]int64
		}
		Pumpkin struct{ Rev int }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &view); err != nil {
		t.Fatal(err)
	}
	if view.Shed.Limit != 7 || view.Shed.Admitted != 1 || view.Shed.Refused["over_limit"] != 1 || view.Pumpkin.Rev != 7 {
		t.Errorf("%s", w.Body)
	}
	if strings.Contains(w.Body.String(), "secret") || strings.Contains(w.Body.String(), "192.0.2.1") {
		t.Error("the view shows clients")
	}
	if w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("fields: %v", w.Header())
	}
}

func TestViewsAreForReading(t *testing.T) {
	s := open(t, 1, nil)
	broken := middleware.DebugSection{Name: "broken", Read: func() any { return math.NaN() }}
	for _, h := range []http.Handler{middleware.Livez(), middleware.Readyz(nil), middleware.DebugHandler(s)} {
		if w := call(h, "POST", "/", ""); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("POST: %d, Allow %q", w.Code, w.Header().Get("Allow"))
		}
		if w := call(h, "HEAD", "/", ""); w.Code != 200 {
			t.Errorf("HEAD: %d", w.Code)
		}
	}
	if w := call(middleware.DebugHandler(s, broken), "GET", "/", ""); w.Code != 500 || !strings.Contains(w.Body.String(), "cannot be written as JSON") {
		t.Errorf("a section that is no JSON: %d %s", w.Code, w.Body)
	}
}
