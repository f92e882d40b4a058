package middleware

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
)

// service is the world outside: it answers what it is told to, after a while.
type service struct {
	takes  time.Duration
	answer func(n int64, r *http.Request) (status int, header http.Header)

	calls, running, most atomic.Int64
}

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	n := s.calls.Add(1)
	s.most.Store(max(s.most.Load(), s.running.Add(1)))
	defer s.running.Add(-1)
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	if s.takes > 0 {
		select {
		case <-time.After(s.takes):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	status, header := http.StatusOK, http.Header{}
	if s.answer != nil {
		if status, header = s.answer(n, r); header == nil {
			header = http.Header{}
		}
	}
	if status == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader("an answer")), Request: r}, nil
}

// calling returns a Transport before s, with no randomness.
func calling(t *testing.T, s *service, cfg TransportConfig) *Transport {
	t.Helper()
	cfg.Base = s
	tr, err := NewTransport(cfg)
	if err != nil {
		t.Fatal(err)
	}
	tr.random = func(int64) int64 { return 0 }
	t.Cleanup(func() { tr.Close() })
	return tr
}

// get makes one call, reads its answer and tells its status.
func get(tr *Transport, ctx context.Context, url string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	answer, err := tr.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	return answer.StatusCode, err
}

func reasonOf(err error) shed.Reason {
	if e, ok := errors.AsType[*CallError](err); ok {
		return e.Reason
	}
	return ""
}

const api = "https://api.example.com/v1/places"

func TestAPaidQuotaIsHeldByAllInstancesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := limits.NewMemory(limits.MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		var s service
		quota := []shed.Limit{{Name: "paid", Rule: limits.FixedWindow{Quota: limits.PerDay(100)}}}
		a := calling(t, &s, TransportConfig{Limits: quota, Store: store})
		b := calling(t, &s, TransportConfig{Limits: quota, Store: store})
		refused := 0
		for i := range 150 {
			tr := a
			if i%3 == 0 {
				tr = b
			}
			switch _, err := get(tr, t.Context(), api); reasonOf(err) {
			case "":
				if err != nil {
					t.Fatal(err)
				}
			case shed.OverLimit:
				refused++
			default:
				t.Fatal(err)
			}
		}
		if s.calls.Load() != 100 || refused != 50 {
			t.Errorf("%d calls were made and %d refused, want 100 and 50", s.calls.Load(), refused)
		}
		if _, err := get(b, t.Context(), "https://other.example.com/"); err != nil {
			t.Errorf("another service has a quota of its own: %v", err)
		}
		if _, err := get(a, t.Context(), api); err == nil || !strings.Contains(err.Error(), "by rule paid, retry after") {
			t.Errorf("the error is %q", err)
		}
	})
}

// brokenStore cannot decide.
type brokenStore struct{ limits.Store }

func (brokenStore) Take(context.Context, time.Time, []limits.Charge) (limits.Decision, error) {
	return limits.Decision{}, errors.New("no answer")
}

func TestAQuotaThatCannotBeAskedIsClosed(t *testing.T) {
	var s service
	tr := calling(t, &s, TransportConfig{
		Limits: []shed.Limit{{Name: "paid", Rule: limits.FixedWindow{Quota: limits.PerDay(100)}}}, Store: brokenStore{},
	})
	_, err := get(tr, t.Context(), api)
	if reasonOf(err) != shed.StoreUnavailable || s.calls.Load() != 0 {
		t.Errorf("%v, %d calls; want store_unavailable and none", err, s.calls.Load())
	}
	if _, ok := errors.AsType[*shed.Rejection](err); !ok {
		t.Errorf("%v does not wrap its Rejection", err)
	}
}

func TestCallsWaitForQuotaAsLongAsTheyMayAndNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s service
		tr := calling(t, &s, TransportConfig{
			Limits: []shed.Limit{{Name: "slow", Rule: limits.TokenBucket{Capacity: 1, Refill: limits.PerSecond(1)}}}, Wait: 1500 * time.Millisecond,
		})
		begin := time.Now()
		for _, want := range []time.Duration{0, time.Second, 2 * time.Second} {
			if _, err := get(tr, t.Context(), api); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took != want {
				t.Errorf("after %v, want %v", took, want)
			}
		}
		// A context that ends before the quota is there: no use in waiting.
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := get(tr, ctx, api); reasonOf(err) != shed.OverLimit || time.Since(begin) != 2*time.Second {
			t.Errorf("%v after %v; want over_limit at once", err, time.Since(begin))
		}
		// Cancelled while waiting.
		gone, leave := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, leave)
		if _, err := get(tr, gone, api); !errors.Is(err, context.Canceled) || time.Since(begin) != 2100*time.Millisecond {
			t.Errorf("%v after %v; want canceled after 100 ms", err, time.Since(begin))
		}
		if n := tr.Status().Waiting; n != 0 {
			t.Errorf("%d wait still", n)
		}
	})
}

func TestRoutesAndCostsOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s service
		tr := calling(t, &s, TransportConfig{
			Limits: []shed.Limit{{Name: "search", Rule: limits.TokenBucket{Capacity: 10, Refill: limits.PerDay(1)}, Routes: []string{"search"}}},
			Routes: []shed.Route{{Name: "search", Match: "GET api.example.com/search/"}},
			Cost:   func(r *http.Request) int64 { return int64(len(r.URL.Query())) },
		})
		for i, want := range []shed.Reason{"", "", shed.OverLimit} {
			if _, err := get(tr, t.Context(), "https://api.example.com/search/?a=1&b=2&c=3&d=4&e=5"); reasonOf(err) != want {
				t.Errorf("search %d: %v, want %q", i, err, want)
			}
		}
		if _, err := get(tr, t.Context(), "https://api.example.com/other?a=1"); err != nil {
			t.Errorf("another route: %v", err)
		}
	})
}

func TestParallelCallsWaitInOrderUntilAnswersAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := service{takes: 100 * time.Millisecond}
		tr := calling(t, &s, TransportConfig{Parallel: 2, Wait: time.Second})
		begin := time.Now()
		ended := make(chan time.Duration, 7)
		for range 7 {
			go func() {
				if _, err := get(tr, t.Context(), api); err != nil {
					t.Error(err)
				}
				ended <- time.Since(begin)
			}()
			synctest.Wait()
		}
		for i := range 7 {
			if got, want := <-ended, time.Duration(i/2+1)*100*time.Millisecond; got != want {
				t.Errorf("call %d ended after %v, want %v", i, got, want)
			}
		}
		if s.most.Load() != 2 {
			t.Errorf("%d ran at once", s.most.Load())
		}
		// An answer that nobody reads keeps its place.
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, api, nil)
		first, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		second, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		begin = time.Now()
		if _, err := get(tr, t.Context(), api); reasonOf(err) != shed.WaitExpired || time.Since(begin) != time.Second {
			t.Errorf("%v after %v; want wait_expired after a second", err, time.Since(begin))
		}
		first.Body.Close()
		first.Body.Close() // gives back one place, not two
		second.Body.Close()
		if n := tr.Status().Services[0].Running; n != 0 {
			t.Errorf("%d run still", n)
		}
	})
}

func TestNobodyKeepsAPlaceWhileWaitingForQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s service
		tr := calling(t, &s, TransportConfig{
			Parallel: 1,
			Limits:   []shed.Limit{{Name: "slow", Rule: limits.TokenBucket{Capacity: 1, Refill: limits.PerSecond(1)}, Routes: []string{"slow"}}},
			Routes:   []shed.Route{{Name: "slow", Match: "/slow"}},
		})
		get(tr, t.Context(), "https://api.example.com/slow")
		go get(tr, t.Context(), "https://api.example.com/slow")
		synctest.Wait()
		begin := time.Now()
		if _, err := get(tr, t.Context(), "https://api.example.com/quick"); err != nil || time.Since(begin) != 0 {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		time.Sleep(2 * time.Second)
	})
}
