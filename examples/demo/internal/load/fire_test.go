package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// server answers requests over in-memory connections, so that it lives in virtual time.
type server struct {
	respond func(r *http.Request) (status int, after time.Duration)

	mu   sync.Mutex
	keys map[string]int
	wg   sync.WaitGroup
}

func (s *server) dial(context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	s.wg.Go(func() {
		defer ours.Close()
		in := bufio.NewReader(ours)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			s.mu.Lock()
			if s.keys == nil {
				s.keys = map[string]int{}
			}
			s.keys[r.Header.Get("X-API-Key")]++
			s.mu.Unlock()
			status, after := s.respond(r)
			time.Sleep(after)
			fmt.Fprintf(ours, "HTTP/1.1 %d X\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nok", status)
		}
	})
	return theirs, nil
}

func TestEveryRequestIsSentWhenItIsDueWhateverBecameOfTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The server takes 2 s for each: a loop that waited for answers would send 10 in 20 s.
		s := &server{respond: func(*http.Request) (int, time.Duration) { return 200, 2 * time.Second }}
		p := sound()
		p.Detail = true
		for i, shot := range fire(t.Context(), p, s.dial) {
			if shot.Due != p.due(i) || shot.Lag != 0 || shot.Latency != 2*time.Second || shot.Status != 200 {
				t.Fatalf("request %d: %+v, want it due at %v, sent then, answered 2s later", i, shot, p.due(i))
			}
			if shot.Body != "ok" || shot.RetryAfter != 7 {
				t.Fatalf("request %d: body %q, Retry-After %d", i, shot.Body, shot.RetryAfter)
			}
		}
		s.wg.Wait()
		if len(s.keys) != p.Keys || s.keys["t-3"] != p.Count/p.Keys {
			t.Errorf("the server saw %v, want %d keys with %d requests each", s.keys, p.Keys, p.Count/p.Keys)
		}
	})
}

// A server that stalls for a second delays every request that was due in that second. Measured from when they were sent,
// a single slow request would be all there is to see.
func TestAStallIsSeenByEveryRequestItDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		stallEnds := begin.Add(2 * time.Second)
		s := &server{respond: func(*http.Request) (int, time.Duration) {
			if since := time.Since(begin); since >= time.Second {
				return 200, max(time.Until(stallEnds), 0)
			}
			return 200, 0
		}}
		p := sound()
		p.Count, p.Rate, p.Timeout = 300, 100, 5*time.Second
		slow := 0
		for _, shot := range fire(t.Context(), p, s.dial) {
			if shot.Latency > 100*ms {
				slow++
			}
		}
		if slow < 85 || slow > 95 {
			t.Errorf("%d requests were slow, want about 90 of the 100 that were due in the stall", slow)
		}
		s.wg.Wait()
	})
}

func TestWhenAllConnectionsAreBusyTheLagTellsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{respond: func(*http.Request) (int, time.Duration) { return 200, time.Second }}
		p := sound()
		p.Count, p.Rate, p.Timeout = 1024, 0, 4*time.Second
		shots := fire(t.Context(), p, s.dial)
		r := p.report(shots)
		if r.Sent != 1024 || r.Lag.P50 != 0 || r.Lag.Max != time.Second || r.Success.Max != 2*time.Second {
			t.Errorf("sent %d, lag %v, success %v; want the second half a second late", r.Sent, r.Lag, r.Success)
		}
		s.wg.Wait()
	})
}

func TestNoAnswerIsAnErrorAtItsTimeoutAndNoSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{respond: func(*http.Request) (int, time.Duration) { return 200, time.Minute }}
		p := sound()
		p.Count = 5
		r := p.report(fire(t.Context(), p, s.dial))
		if r.Errors != 5 || r.OK() != 0 || len(r.Statuses) != 0 {
			t.Errorf("%+v, want 5 errors and nothing else", r)
		}
		s.wg.Wait()
	})
}

func TestAServerThatIsGoneMakesErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := func(context.Context) (net.Conn, error) { return nil, errors.New("connection refused") }
		p := sound()
		if r := p.report(fire(t.Context(), p, refuse)); r.Errors != p.Count {
			t.Errorf("%d errors, want %d", r.Errors, p.Count)
		}
	})
}

func TestACancelledPlanStopsAndReportsOnlyWhatItSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{respond: func(*http.Request) (int, time.Duration) { return 200, ms }}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		p := sound()
		p.Count, p.Rate = 2500, 50
		shots := fire(ctx, p, s.dial)
		if len(shots) < 45 || len(shots) > 50 {
			t.Errorf("%d requests in the second before the end, want about 50", len(shots))
		}
		s.wg.Wait()
	})
}
