package shed

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

func TestTheSoonerDeadlineOfRouteAndCallerEndsTheWait(t *testing.T) {
	const none = 0
	for _, row := range []struct {
		name          string
		route, caller time.Duration
		want          time.Duration // waited
		reason        Reason
	}{
		{"neither", none, none, 500 * ms, WaitExpired},
		{"the route's", 80 * ms, none, 80 * ms, Deadline},
		{"the caller's", none, 60 * ms, 60 * ms, Deadline},
		{"the route's is sooner", 40 * ms, 60 * ms, 40 * ms, Deadline},
		{"the caller's is sooner", 60 * ms, 40 * ms, 40 * ms, Deadline},
		{"later than the longest wait", time.Second, none, 500 * ms, WaitExpired},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := fixed(1, Queue{})
				cfg.Routes = []Route{{Name: "timed", Deadline: row.route}}
				s := open(t, cfg)
				running := admitted(t, s, Request{})
				defer running.Done(Ignored)
				ctx := t.Context()
				if row.caller > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, row.caller)
					defer cancel()
				}
				began := time.Now()
				_, err := s.Admit(ctx, Request{Route: "timed"})
				if r, ok := err.(*Rejection); !ok || r.Reason != row.reason || time.Since(began) != row.want {
					t.Fatalf("after %v: %v, want %s after %v", time.Since(began), err, row.reason, row.want)
				}
			})
		})
	}
}

func TestADeadlineThatCannotBeMetIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(1, Queue{})
		cfg.Routes = []Route{{Name: "timed", Deadline: 50 * ms}}
		s := open(t, cfg)
		for range 3 * latencyBlock { // work takes 40 ms
			p := admitted(t, s, Request{})
			time.Sleep(40 * ms)
			p.Done(Success)
		}
		began, running := time.Now(), admitted(t, s, Request{})
		if refused(t, s, Request{Route: "timed"}, Deadline); time.Since(began) != 0 {
			t.Fatalf("refused after %v", time.Since(began))
		}
		time.AfterFunc(30*ms, func() { running.Done(Success) })
		admitted(t, s, Request{}).Done(Success)
		if time.Since(began) != 30*ms {
			t.Errorf("without a deadline it waited %v", time.Since(began))
		}
	})
}

func TestTheDeadlineBoundsTheWaitForATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(10, Queue{})
		cfg.Routes = []Route{{Name: "timed", Deadline: 80 * ms}, {Name: "patient"}}
		cfg.Limits = []Limit{{Name: "turns", Per: Global, Excess: Delay, Rule: limits.LeakyBucket{Capacity: 9, Leak: limits.PerSecond(10)}}}
		s := open(t, cfg)
		admitted(t, s, Request{Route: "timed"}).Done(Ignored)
		began := time.Now()
		if refused(t, s, Request{Route: "timed"}, Deadline); time.Since(began) != 0 {
			t.Fatalf("its turn comes in 100 ms, its deadline in 80: refused only after %v", time.Since(began))
		}
		admitted(t, s, Request{Route: "patient"}).Done(Ignored)
		if time.Since(began) != 100*ms {
			t.Errorf("the turn that was given on came after %v, want 100 ms", time.Since(began))
		}
	})
}

func TestDeadlinesThatCannotBeMeantAreErrors(t *testing.T) {
	for _, r := range []Route{
		{Name: "a", Deadline: -1}, {Name: "a", Deadline: 25 * time.Hour}, {Name: "a", Deadline: 1, Exempt: true},
		{Name: "a", Deadline: 1, LongLived: 1},
	} {
		if _, err := New(Config{Routes: []Route{r}}); err == nil {
			t.Errorf("%+v: no error", r)
		}
	}
}
