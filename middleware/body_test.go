package middleware_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// uploads is a service in which each client may send 1000 bytes at once and 100 a second.
func uploads(t *testing.T) http.Handler {
	t.Helper()
	s, err := shed.New(shed.Config{
		Limits: []shed.Limit{
			{Name: "upload", Rule: limits.TokenBucket{Capacity: 1000, Refill: limits.PerSecond(100)}, Unit: shed.RequestBytes, For: []string{"api_key"}},
			{Name: "anonymous", Rule: limits.TokenBucket{Capacity: 50, Refill: limits.PerSecond(1)}, For: []string{"ip"}},
		},
		Health: health.Config{Off: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return middleware.Shed(s)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			t.Error(err)
		}
		if err := r.Body.Close(); err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Read", time.Duration(n).String())
	}))
}

// upload sends n bytes, with or without saying so before.
func upload(h http.Handler, n int, announced bool) *http.Response {
	r := httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", n)))
	r.Header.Set("X-API-Key", "k")
	if !announced {
		r.ContentLength = -1
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestABodyIsRefusedByItsLengthBeforeItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := uploads(t)
		if r := upload(h, 700, true); r.StatusCode != 200 || r.Header.Get("RateLimit") != `"upload";r=300;t=1` {
			t.Errorf("%v %v", r.Status, r.Header)
		}
		if r := upload(h, 500, true); r.StatusCode != 429 || r.Header.Get("Retry-After") != "2" {
			t.Errorf("%v %v", r.Status, r.Header)
		}
		if r := upload(h, 1001, true); r.StatusCode != 429 || r.Header.Get("Retry-After") != "" {
			t.Errorf("more than can ever pass: %v %v", r.Status, r.Header)
		}
		time.Sleep(2 * time.Second)
		if r := upload(h, 500, true); r.StatusCode != 200 {
			t.Errorf("%v %v", r.Status, r.Header)
		}
		if r := upload(h, 1, true); r.StatusCode != 429 {
			t.Errorf("one byte too many: %v %v", r.Status, r.Header)
		}
	})
}

func TestABodyOfUnknownLengthIsReadAtThePaceOfItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, start := uploads(t), time.Now()
		if r := upload(h, 1500, false); r.StatusCode != 200 || r.Header.Get("X-Read") != "1.5µs" {
			t.Errorf("%v %v", r.Status, r.Header)
		}
		if took := time.Since(start); took != 5*time.Second { // 1000 at once, 500 at 100 a second
			t.Errorf("1500 bytes took %v, want 5s", took)
		}
	})
}

func TestALimitForAddressesLeavesClientsWithAKeyAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := uploads(t)
		if r := upload(h, 1, true); strings.Contains(r.Header.Get("RateLimit"), "anonymous") {
			t.Errorf("%v", r.Header)
		}
		w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", 2000)))
		r.ContentLength = -1
		start := time.Now()
		if h.ServeHTTP(w, r); w.Code != 200 || time.Since(start) != 0 {
			t.Errorf("without a key a body is read at no pace: %d after %v", w.Code, time.Since(start))
		}
		if got := w.Header().Get("RateLimit"); !strings.Contains(got, `"anonymous";r=49`) {
			t.Errorf("%q", got)
		}
	})
}

func TestThePlanIsTheApplicationsWord(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		s := open(t, 1, limited(shed.Limit{
			Name: "quota", Rule: limits.FixedWindow{Quota: limits.PerDay(5)},
			Plans: map[string]limits.Rule{"premium": limits.FixedWindow{Quota: limits.PerDay(50)}},
		}))
		h := a.wrap(t, middleware.Config{Shedder: s, Plan: func(r *http.Request) string { return r.Header.Get("X-Plan") }}, ok)
		for i, v := range []struct{ plan, want string }{{"", `"quota";r=4`}, {"premium", `"quota";r=48`}, {"other", `"quota";r=2`}} {
			w := call(h, "GET", "/", "192.0.2.1:1", "X-Plan", v.plan)
			if got := w.Header().Get("RateLimit"); !strings.HasPrefix(got, v.want) {
				t.Errorf("request %d on plan %q: %s, want %s", i, v.plan, got, v.want)
			}
		}
	})
}

func TestTooManyAtOnceAre429WithAnEstimate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := shed.New(shed.Config{
			Limits: []shed.Limit{{Name: "parallel", Rule: limits.InFlight{Max: 1}}},
			Health: health.Config{Off: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		work := make(chan struct{})
		h := middleware.Shed(s)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-work }))
		ask := func() *httptest.ResponseRecorder {
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
			r.Header.Set("X-API-Key", "k")
			h.ServeHTTP(w, r)
			return w
		}
		first := make(chan int)
		go func() { first <- ask().Code }()
		synctest.Wait()
		w := ask()
		if w.Code != 429 || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `"in_flight"`) {
			t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
		}
		if got := w.Header().Get("RateLimit"); got != `"parallel";r=0` {
			t.Errorf("RateLimit: %s", got)
		}
		close(work)
		if code := <-first; code != 200 {
			t.Errorf("the first: %d", code)
		}
		if w := ask(); w.Code != 200 {
			t.Errorf("afterwards: %d %s", w.Code, w.Body)
		}
	})
}

// A client that sends more than it may is slowed down, and nobody else: while its body waits it holds no place.
func TestABodyThatWaitsHoldsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 1, limited(shed.Limit{
			Name: "upload", Rule: limits.TokenBucket{Capacity: 1000, Refill: limits.PerSecond(100)}, Unit: shed.RequestBytes,
		}))
		wrap, err := middleware.ShedWithConfig(middleware.Config{Shedder: s})
		if err != nil {
			t.Fatal(err)
		}
		h := wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
		start := time.Now()
		go upload(h, 3000, false) // takes 20 s
		synctest.Wait()
		if w := call(h, "GET", "/", "192.0.2.1:1"); w.Code != http.StatusOK {
			t.Errorf("another client got %d while the body was waiting", w.Code)
		}
		time.Sleep(30 * time.Second)
		if st := s.Status(); st.InFlight != 0 || st.Streams != 0 || time.Since(start) < 20*time.Second {
			t.Errorf("%d in flight, %d streams are left", st.InFlight, st.Streams)
		}
	})
}
