package middleware

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
)

func TestCallsStayAwayAsLongAsTheServiceSays(t *testing.T) {
	for name, header := range map[string]http.Header{
		"Retry-After":         {"Retry-After": {"3"}},
		"Retry-After, a date": {"Retry-After": {"Mon, 30 Nov 2026 12:00:03 GMT"}, "Date": {"Mon, 30 Nov 2026 12:00:00 GMT"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := service{answer: func(n int64, _ *http.Request) (int, http.Header) {
				if n == 1 {
					return http.StatusServiceUnavailable, header
				}
				return 200, nil
			}}
			tr := calling(t, &s, TransportConfig{Wait: 4 * time.Second, Retries: -1})
			begin := time.Now()
			if status, err := get(tr, t.Context(), api); status != 503 || err != nil {
				t.Errorf("%s: the refusal is %d, %v; want the answer itself", name, status, err)
			}
			impatient, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := get(tr, impatient, api)
			e, _ := errors.AsType[*CallError](err)
			if e == nil || e.Reason != ServerSaid || e.RetryAfter != 3*time.Second || time.Since(begin) != 0 {
				t.Errorf("%s: with a second left: %v after %v; want a refusal at once that says 3s", name, err, time.Since(begin))
			}
			if status, err := get(tr, t.Context(), "https://other.example.com/"); status != 200 || time.Since(begin) != 0 {
				t.Errorf("%s: another service: %d, %v", name, status, err)
			}
			if status, err := get(tr, t.Context(), api); status != 200 || time.Since(begin) != 3*time.Second {
				t.Errorf("%s: who may wait: %d, %v after %v; want 200 after 3s", name, status, err, time.Since(begin))
			}
			if st := tr.Status(); st.Paused != 1 || st.Calls != 4 {
				t.Errorf("%s: %+v", name, st)
			}
		})
	}
}

// A call that waits for a place when the service says to stay away must not be made the moment the place is free.
func TestAPauseHoldsForThoseWhoWaitForAPlaceToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := service{takes: time.Second, answer: func(n int64, _ *http.Request) (int, http.Header) {
			if n == 1 {
				return 429, http.Header{"Retry-After": {"5"}}
			}
			return 200, nil
		}}
		tr := calling(t, &s, TransportConfig{Parallel: 1, Retries: -1})
		go get(tr, t.Context(), api)
		synctest.Wait()
		begin := time.Now()
		if status, err := get(tr, t.Context(), api); status != 200 || time.Since(begin) != 7*time.Second {
			t.Errorf("%d, %v after %v; want 200 after 1 s, a pause of 5 s, and 1 s", status, err, time.Since(begin))
		}
	})
}

func TestAShorterPauseDoesNotEndALongerOne(t *testing.T) {
	var h host
	h.pause(0, 10*time.Second)
	h.pause(time.Second, time.Second)
	if left := h.pausedFor(2 * time.Second); left != 8*time.Second {
		t.Errorf("%v are left, want 8s", left)
	}
}

func TestAnAnswerThatItsCallerDropsTeachesNothing(t *testing.T) {
	var s service
	var ended []shed.Outcome
	tr := calling(t, &s, TransportConfig{Observer: shed.ObserverFunc(func(e shed.Event) {
		if e.Kind == shed.Finished {
			ended = append(ended, e.Outcome)
		}
	})})
	ctx, cancel := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, api, nil)
	answer, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	answer.Body.Close()
	get(tr, t.Context(), api)
	if len(ended) != 2 || ended[0] != shed.Ignored || ended[1] != shed.Success {
		t.Errorf("the calls ended in %v, want ignored and success", ended)
	}
}

func TestAnEmptyQuotaIsNotAskedAgainBeforeItGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := service{answer: func(int64, *http.Request) (int, http.Header) {
			return 200, http.Header{"Ratelimit": {`"day";r=80;t=3600, "burst";r=0;t=2`}}
		}}
		tr := calling(t, &s, TransportConfig{})
		begin := time.Now()
		for i := range 3 {
			if _, err := get(tr, t.Context(), api); err != nil || time.Since(begin) != time.Duration(i)*2*time.Second {
				t.Errorf("call %d: %v after %v", i, err, time.Since(begin))
			}
		}
	})
}

func TestARequestIsClosedWhateverBecomesOfIt(t *testing.T) {
	var s service
	tr := calling(t, &s, TransportConfig{
		Limits:   []shed.Limit{{Name: "none", Rule: limits.TokenBucket{Capacity: 0, Refill: limits.PerSecond(1)}}},
		Features: features{"off": true}, Feature: func(r *http.Request) string { return r.Header.Get("Feature") },
	})
	for _, feature := range []string{"", "off"} {
		var body closing
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, api, &body)
		r.Header.Set("Feature", feature)
		if _, err := tr.RoundTrip(r); err == nil || body.closed != 1 {
			t.Errorf("feature %q: %v, closed %d times; want a refusal and once", feature, err, body.closed)
		}
	}
	if st := tr.Status(); st.Blocked != 1 || s.calls.Load() != 0 {
		t.Errorf("%+v, %d calls", st, s.calls.Load())
	}
}

type features map[string]bool

func (f features) Blocked(feature string) bool { return f[feature] }

// closing counts how often it is closed.
type closing struct{ closed int }

func (*closing) Read([]byte) (int, error) { return 0, io.EOF }

func (c *closing) Close() error {
	c.closed++
	return nil
}

func TestNoMoreWaitThanMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := service{takes: time.Second}
		tr := calling(t, &s, TransportConfig{Parallel: 1, Waiting: 3})
		refused := make(chan shed.Reason, 10)
		for range 10 {
			go func() {
				_, err := get(tr, t.Context(), api)
				refused <- reasonOf(err)
			}()
			synctest.Wait()
		}
		counts := map[shed.Reason]int{}
		for range 10 {
			counts[<-refused]++
		}
		if counts[""] != 4 || counts[shed.InFlight] != 6 {
			t.Errorf("%v; want one that runs, three that wait, six refused", counts)
		}
	})
}

func TestTheObserverHearsOfEveryRefusal(t *testing.T) {
	var heard []shed.Event
	s := service{answer: func(int64, *http.Request) (int, http.Header) { return 429, http.Header{"Retry-After": {"100"}} }}
	tr := calling(t, &s, TransportConfig{Observer: shed.ObserverFunc(func(e shed.Event) { heard = append(heard, e) })})
	get(tr, t.Context(), api)
	get(tr, t.Context(), api)
	if len(heard) != 3 || heard[1].Outcome != shed.Dropped || heard[2].Reason != ServerSaid {
		t.Errorf("%+v", heard)
	}
}

func TestATransportThatCannotWorkIsRefused(t *testing.T) {
	for _, cfg := range []TransportConfig{
		{Parallel: -1}, {Waiting: -1}, {Features: features{}}, {Limits: []shed.Limit{{}}}, {Routes: []shed.Route{{Name: "x", Match: "GET /{"}}}, {Routes: []shed.Route{{Name: "x", Match: "PSOT /x"}}},
	} {
		if _, err := NewTransport(cfg); err == nil || !strings.HasPrefix(err.Error(), "middleware: ") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestAPanicOfTheBaseGivesItsPlaceBack(t *testing.T) {
	s := service{answer: func(int64, *http.Request) (int, http.Header) { panic("no good") }}
	tr := calling(t, &s, TransportConfig{Parallel: 1})
	func() {
		defer func() { _ = recover() }()
		get(tr, t.Context(), api)
	}()
	if st := tr.Status(); st.Services[0].Running != 0 || tr.Shedder().Status().InFlight != 0 {
		t.Errorf("%+v", st)
	}
	s.answer = nil
	if _, err := get(tr, t.Context(), api); err != nil {
		t.Error(err)
	}
}
