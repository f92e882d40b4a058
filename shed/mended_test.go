package shed

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// One test per defect that was found and mended, named after what must hold.

func TestATurnThatHasComeIsNeverGivenTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(1, Queue{Capacity: -1})
		cfg.Limits = []Limit{{
			Name: "smooth", Rule: limits.LeakyBucket{Capacity: 10, Leak: limits.PerSecond(10)}, Excess: Delay, Routes: []string{"orders"},
		}}
		cfg.Routes = []Route{{Name: "orders"}}
		s := open(t, cfg)
		start := time.Now()
		started := make(map[string]time.Duration)
		var mu sync.Mutex
		var all sync.WaitGroup
		order := func(name string, at time.Duration) {
			all.Go(func() {
				time.Sleep(at)
				if p, err := s.Admit(t.Context(), Request{Client: "a", Route: "orders"}); err == nil {
					mu.Lock()
					started[name] = time.Since(start)
					mu.Unlock()
					p.Done(Success)
				}
			})
		}
		for i, name := range []string{"A", "B", "C", "D"} { // turns at 0, 100, 200 and 300 ms
			order(name, time.Duration(i)*time.Microsecond)
		}
		all.Go(func() { // the gate is full when B's turn comes, so B is refused
			time.Sleep(50 * ms)
			p := admitted(t, s, Request{})
			time.Sleep(100 * ms)
			p.Done(Success)
		})
		order("N", 160*ms)
		all.Wait()
		if _, ran := started["B"]; ran || started["C"] != 200*ms || started["D"] != 300*ms {
			t.Errorf("started %v; want no B, C at 200 ms and D at 300 ms", started)
		}
		if started["N"] < 400*ms {
			t.Errorf("who came last started at %v, beside or before those who waited; its turn is at 400 ms", started["N"])
		}
	})
}

func TestRetryAfterIsTrueWhereABurstStandsBesideAnotherRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(100, Queue{})
		cfg.Limits = []Limit{
			{Name: "client", Rule: limits.TokenBucket{Capacity: 6, Refill: limits.PerSecond(1)}},
			{Name: "burst", Rule: limits.Burst{Soft: limits.PerSecond(2), Hard: limits.PerSecond(10)}},
		}
		s := open(t, cfg)
		for range 6 {
			admitted(t, s, Request{Client: "a"}).Done(Success)
		}
		r := refused(t, s, Request{Client: "a"}, OverLimit)
		time.Sleep(r.RetryAfter - time.Microsecond)
		refused(t, s, Request{Client: "a"}, OverLimit)
		time.Sleep(time.Microsecond)
		admitted(t, s, Request{Client: "a"}).Done(Success)
	})
}

func TestAnObserverThatPanicsTakesNoPermitWithIt(t *testing.T) {
	cfg := fixed(1, Queue{Capacity: -1})
	wild := true
	cfg.Observer = ObserverFunc(func(e Event) {
		if wild && e.Kind == Admitted {
			panic("observer")
		}
	})
	s := open(t, cfg)
	func() {
		defer func() { _ = recover() }()
		s.Admit(t.Context(), Request{})
	}()
	wild = false
	admitted(t, s, Request{}).Done(Success)
}

func TestAFloodOfExemptRequestsLeavesTheProbesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(1, Queue{})
		cfg.Routes = []Route{{Name: "probes", Exempt: true}}
		s := open(t, cfg)
		for range exemptGuard {
			admitted(t, s, Request{Exempt: true})
		}
		refused(t, s, Request{Exempt: true}, Overloaded)
		admitted(t, s, Request{Route: "probes"})
	})
}

func TestAfterCloseNobodyIsAdmittedAndNobodyIsOverLimit(t *testing.T) {
	cfg := fixed(1, Queue{})
	cfg.Limits = []Limit{bucket("per-client", 1, 1)}
	cfg.Routes = []Route{{Name: "probes", Exempt: true}}
	s := open(t, cfg)
	admitted(t, s, Request{Client: "a"}).Done(Success)
	s.Close()
	for _, req := range []Request{{Client: "a"}, {Client: "b"}, {Route: "probes"}} {
		if _, err := s.Admit(t.Context(), req); !errors.Is(err, ErrClosed) {
			t.Errorf("%+v: %v, want ErrClosed", req, err)
		}
	}
}

func TestOddValuesAreAnErrorOrNothing(t *testing.T) {
	s := open(t, fixed(1, Queue{}))
	var r *Rejection
	if _, err := s.Admit(t.Context(), Request{Cost: -1}); err == nil || errors.As(err, &r) {
		t.Errorf("a negative cost: %v, want an error that is no refusal", err)
	}
	admitted(t, s, Request{}).Done(Outcome(9))
	if n := s.Status().Finished["ignored"]; n != 1 {
		t.Errorf("an unknown outcome was counted as %v", s.Status().Finished)
	}
	if _, err := New(Config{Queue: Queue{MaxWait: 1<<63 - 1}}); err == nil {
		t.Error("a line in which people wait for 292 years was accepted")
	}
	twice := bucket("x", 1, 1)
	twice.Routes = []string{"r", "r"}
	if _, err := New(Config{Routes: []Route{{Name: "r"}}, Limits: []Limit{twice}}); err == nil {
		t.Error("a limit that names a route twice was accepted, and would charge it twice")
	}
}

// emptyStore decides nothing and says so without an error.
type emptyStore struct{ limits.Store }

func (emptyStore) Take(context.Context, time.Time, []limits.Charge) (limits.Decision, error) {
	return limits.Decision{}, nil
}

func TestAStoreThatSaysNothingFailsClosed(t *testing.T) {
	cfg := fixed(1, Queue{})
	cfg.Limits, cfg.Store = []Limit{bucket("per-client", 1, 1)}, emptyStore{}
	refused(t, open(t, cfg), Request{Client: "a"}, StoreUnavailable)
}

func TestWhoLeavesOneOfTwoDelayingRulesGivesNoTurnTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(100, Queue{})
		cfg.Limits = []Limit{
			{Name: "mine", Rule: limits.LeakyBucket{Capacity: 10, Leak: limits.PerSecond(1)}, Excess: Delay},
			{Name: "site", Rule: limits.LeakyBucket{Capacity: 10, Leak: limits.PerSecond(10)}, Excess: Delay, Per: Global},
		}
		s := open(t, cfg)
		start := time.Now()
		started := make(map[string]time.Duration)
		var mu sync.Mutex
		var all sync.WaitGroup
		order := func(name, client string, at time.Duration, ctx context.Context) {
			all.Go(func() {
				time.Sleep(at)
				if p, err := s.Admit(ctx, Request{Client: client}); err == nil {
					mu.Lock()
					started[name] = time.Since(start)
					mu.Unlock()
					p.Done(Success)
				}
			})
		}
		leaves, leave := context.WithCancel(t.Context())
		order("a1", "a", 0, t.Context())
		order("a2", "a", ms, leaves) // waits for its second turn of "mine", and is ahead of b for the site
		order("b", "b", 2*ms, t.Context())
		time.AfterFunc(50*ms, leave)
		order("c", "c", 60*ms, t.Context())
		all.Wait()
		if started["c"]-started["b"] < 100*ms {
			t.Errorf("started %v: b and c are closer than the site's 100 ms", started)
		}
	})
}

func TestAPanicInTheObserverGivesEverythingBack(t *testing.T) {
	cfg := fixed(10, Queue{})
	cfg.Limits = []Limit{
		{Name: "at once", Rule: limits.InFlight{Max: 1}},
		{Name: "daily", Rule: limits.TokenBucket{Capacity: 1, Refill: limits.PerDay(1)}},
	}
	wild := true
	cfg.Observer = ObserverFunc(func(Event) {
		if wild {
			panic("observer")
		}
	})
	s := open(t, cfg)
	survive := func() {
		defer func() { _ = recover() }()
		s.Admit(t.Context(), Request{Client: "a"})
	}
	survive() // while it is admitted
	wild = false
	admitted(t, s, Request{Client: "a"}).Done(Success)
	wild = true
	survive() // while it is refused
	wild = false
	refused(t, s, Request{Client: "a"}, OverLimit) // and not for what is in flight
}
