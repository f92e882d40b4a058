package middleware

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/shed"
)

func TestRetriesAreTenAndATenthOfTheCallsAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := service{answer: func(int64, *http.Request) (int, http.Header) { return 503, nil }}
		tr := calling(t, &s, TransportConfig{KeepCalling: true})
		for range 1000 {
			if status, err := get(tr, t.Context(), api); status != 503 || err != nil {
				t.Fatal(status, err)
			}
		}
		if n := tr.Status().Retries; n != 109 || s.calls.Load() != 1109 { // the first call finds nothing to add to
			t.Errorf("%d retries and %d calls, want 109 and 1109", n, s.calls.Load())
		}
	})
}

// A call is sent as often again as it may be and no more, and what it was answered before keeps neither place nor connection.
func TestACallIsSentAgainAsOftenAsItMayBe(t *testing.T) {
	for retries, want := range map[int]int64{0: 1 + DefaultTransportRetries, -1: 1, 1: 2, 5: 6} {
		synctest.Test(t, func(t *testing.T) {
			closed := 0
			s := service{answer: func(int64, *http.Request) (int, http.Header) { return 200, nil }}
			tr := calling(t, &s, TransportConfig{KeepCalling: true, Retries: retries, Parallel: 1, Wait: time.Hour})
			for range 100 {
				get(tr, t.Context(), api)
			}
			s.calls.Store(0)
			s.answer = func(int64, *http.Request) (int, http.Header) { return 503, nil }
			tr.cfg.Base = roundTripper(func(r *http.Request) (*http.Response, error) {
				answer, err := s.RoundTrip(r)
				answer.Body = held(io.NopCloser(io.LimitReader(endless{}, 1<<20)), func() { closed++ })
				return answer, err
			})
			if status, err := get(tr, t.Context(), api); status != 503 || err != nil || s.calls.Load() != want || closed != int(want) {
				t.Errorf("%d retries: %d, %v after %d calls, %d answers closed; want %d", retries, status, err, s.calls.Load(), closed, want)
			}
		})
	}
}

// endless reads zeros.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func TestWhatMayBeRepeatedIsAndNothingElse(t *testing.T) {
	for _, c := range []struct {
		name   string
		method string
		body   io.Reader
		key    string // the field that tells calls apart
		answer int    // 0 is no answer
		again  bool
	}{
		{"a GET that is refused", "GET", nil, "", 503, true},
		{"a GET without an answer", "GET", nil, "", 0, true},
		{"a GET that a gateway could not pass on", "GET", nil, "", 502, true},
		{"a GET that took a gateway too long", "GET", nil, "", 504, true},
		{"a GET that is a mistake", "GET", nil, "", 400, false},
		{"a GET that has failed", "GET", nil, "", 500, false},
		{"a PUT with a body that can be had again", "PUT", bytes.NewReader([]byte("x")), "", 503, true},
		{"a PUT with a body that cannot", "PUT", io.MultiReader(bytes.NewReader([]byte("x"))), "", 503, false},
		{"a POST for which nothing was done", "POST", bytes.NewReader([]byte("x")), "", 429, true},
		{"a POST that may have been done", "POST", bytes.NewReader([]byte("x")), "", 503, false},
		{"a POST without an answer", "POST", bytes.NewReader([]byte("x")), "", 0, false},
		{"a POST with a key", "POST", bytes.NewReader([]byte("x")), "Idempotency-Key", 503, true},
		{"a POST with a key, as some say it", "POST", bytes.NewReader([]byte("x")), "X-Idempotency-Key", 503, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var bodies []string
			s := service{answer: func(n int64, r *http.Request) (int, http.Header) {
				if n == 21 {
					return c.answer, nil
				}
				return 200, nil
			}}
			tr := calling(t, &s, TransportConfig{Base: nil})
			for range 20 {
				get(tr, t.Context(), api)
			}
			r, err := http.NewRequestWithContext(t.Context(), c.method, api, c.body)
			if err != nil {
				t.Fatal(err)
			}
			if c.key != "" {
				r.Header.Set(c.key, "1")
			}
			tr.cfg.Base = roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Body != nil {
					text, _ := io.ReadAll(r.Body)
					bodies = append(bodies, string(text))
				}
				return s.RoundTrip(r)
			})
			answer, err := tr.RoundTrip(r)
			if answer != nil {
				answer.Body.Close()
			}
			if again := s.calls.Load() == 22; again != c.again || again && (err != nil || answer.StatusCode != 200) {
				t.Errorf("%s: %d calls, %v; want another one: %v", c.name, s.calls.Load()-20, err, c.again)
			}
			if c.again && c.body != nil && (len(bodies) != 2 || bodies[1] != "x") {
				t.Errorf("%s: the bodies are %q", c.name, bodies)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestARetryWaitsAsLongAsTheServiceSaysAndLeavesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := service{answer: func(n int64, _ *http.Request) (int, http.Header) {
			if n == 11 {
				return 429, http.Header{"Retry-After": {"2"}}
			}
			return 200, nil
		}}
		tr := calling(t, &s, TransportConfig{Parallel: 1})
		for range 10 {
			get(tr, t.Context(), api)
		}
		begin := time.Now()
		ended := make(chan int)
		go func() {
			status, _ := get(tr, t.Context(), api)
			ended <- status
		}()
		synctest.Wait()
		if n := tr.Status().Services[0].Running; n != 0 {
			t.Errorf("%d places are kept meanwhile", n)
		}
		if status := <-ended; status != 200 || time.Since(begin) != 2*time.Second+1 { // the random part is 1 ns here
			t.Errorf("%d after %v", status, time.Since(begin))
		}
	})
}

func TestARetryEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := service{answer: func(int64, *http.Request) (int, http.Header) { return 429, http.Header{"Retry-After": {"2"}} }}
		tr := calling(t, &s, TransportConfig{Retries: 1})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := get(tr, ctx, api); !errors.Is(err, context.Canceled) || s.calls.Load() != 1 {
			t.Errorf("%v, %d calls", err, s.calls.Load())
		}
		if got := tr.Status().Services[0].Running; got != 0 || tr.Status().Waiting != 0 {
			t.Errorf("%+v", tr.Status())
		}
	})
}

func TestBackoffIsAtRandomUpToABoundThatDoubles(t *testing.T) {
	for n, want := range []time.Duration{100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000} {
		bound := int64(0)
		least := backoff(n, func(max int64) int64 { bound = max; return 0 })
		if time.Duration(bound) != want*time.Millisecond || least != 1 {
			t.Errorf("before retry %d: up to %v, from %v; want up to %v ms", n, time.Duration(bound), least, want)
		}
	}
	backoff(1000, func(int64) int64 { return 0 }) // overflows nowhere
}

func TestTheThrottleIsTheFormula(t *testing.T) {
	var th throttle
	for i := range 9 {
		th.count(time.Duration(i), false)
	}
	if got := th.share(9); got != 0 {
		t.Errorf("nine calls say %v already", got)
	}
	for i := range 91 {
		th.count(time.Duration(i), i < 30)
	}
	if got, want := th.share(100), float64(100-2*30)/101; got != want {
		t.Errorf("30 accepted of 100: %v, want %v", got, want)
	}
	if got := th.share(9 * time.Second); got != float64(100-2*30)/101 {
		t.Errorf("within the window: %v", got)
	}
	if got := th.share(10 * time.Second); got != 0 || !th.idle(10*time.Second) {
		t.Errorf("after the window: %v", got)
	}
	for range 50 {
		th.count(20*time.Second, true)
		th.count(20*time.Second, false)
	}
	if got := th.share(20 * time.Second); got != 0 {
		t.Errorf("half accepted: %v, want 0", got)
	}
	for range 10000 {
		th.count(40*time.Hour, false)
	}
	if got := th.share(40 * time.Hour); got != throttleMost {
		t.Errorf("nothing accepted: %v, want the most", got)
	}
}

// A service that is down is left alone but for a twentieth, and is used again within two windows of its return.
func TestADeadServiceIsSparedAndFoundAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := true
		s := service{answer: func(int64, *http.Request) (int, http.Header) {
			if down {
				return 0, nil
			}
			return 200, nil
		}}
		tr := calling(t, &s, TransportConfig{Retries: -1})
		draw := int64(0)
		tr.random = func(n int64) int64 { // evenly
			draw = (draw + n*618/1000) % n
			return draw
		}
		second := func() (made, throttled int64) {
			before := s.calls.Load()
			for range 100 {
				if _, err := get(tr, t.Context(), api); reasonOf(err) == Throttled {
					throttled++
				}
				time.Sleep(10 * time.Millisecond)
			}
			return s.calls.Load() - before, throttled
		}
		for range 20 {
			second()
		}
		if made, throttled := second(); made > 8 || made < 2 || made+throttled != 100 {
			t.Errorf("while it is down %d of 100 calls are made, %d throttled", made, throttled)
		}
		down = false
		seconds := 0
		for throttled := int64(1); throttled > 0; seconds++ {
			if _, throttled = second(); seconds > 60 {
				t.Fatal("the service is never found again")
			}
		}
		if seconds > 25 {
			t.Errorf("all calls are made again only after %d s", seconds)
		}
		if tr.Status().Throttled == 0 {
			t.Error("nothing is counted")
		}
	})
}

func TestTheCallersOwnCancelSaysNothingAboutTheService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := service{takes: time.Second}
		var finished []shed.Outcome
		tr := calling(t, &s, TransportConfig{Observer: shed.ObserverFunc(func(e shed.Event) {
			if e.Kind == shed.Finished {
				finished = append(finished, e.Outcome)
			}
		})})
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			get(tr, ctx, api)
			cancel()
		}
		if share := tr.Status().Services[0].Throttle; share != 0 {
			t.Errorf("the throttle holds back %v", share)
		}
		for _, o := range finished {
			if o != shed.Ignored {
				t.Fatalf("a cancelled call ended in %v", o)
			}
		}
	})
}

func TestServicesWithoutEndDoNotFillTheTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s service
		tr := calling(t, &s, TransportConfig{Key: func(r *http.Request) string { return r.URL.Path }})
		for i := range 3 * DefaultTransportHosts {
			if _, err := get(tr, t.Context(), "https://api.example.com/"+string(rune('a'+i%26))+"/"+time.Duration(i).String()); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(tr.Status().Services); n != DefaultTransportHosts+1 {
			t.Errorf("%d services are remembered, want %d and one for all others", n, DefaultTransportHosts)
		}
		time.Sleep(throttleWindow)
		get(tr, t.Context(), "https://api.example.com/new")
		if n := len(tr.Status().Services); n != 1 {
			t.Errorf("%d services after a quiet time, want 1", n)
		}
	})
}
