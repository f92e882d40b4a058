package shed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/concurrency"
)

// fixed is a configuration whose gate runs exactly n at once, without health.
func fixed(n int, q Queue) Config {
	return Config{
		Concurrency: concurrency.Config{Algorithm: "fixed", Min: 1, Max: n, Initial: n},
		Queue:       q,
		Health:      health.Config{Off: true},
	}
}

func bucket(name string, capacity, perSecond int64) Limit {
	return Limit{Name: name, Rule: limits.TokenBucket{Capacity: capacity, Refill: limits.PerSecond(perSecond)}}
}

// open makes a Shedder that ends with the test. In a synctest bubble the test fails if a goroutine outlives it.
func open(t testing.TB, cfg Config) *Shedder {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func admitted(t testing.TB, s *Shedder, req Request) Permit {
	t.Helper()
	p, err := s.Admit(t.Context(), req)
	if err != nil {
		t.Fatalf("Admit(%+v): %v", req, err)
	}
	return p
}

func refused(t testing.TB, s *Shedder, req Request, want Reason) *Rejection {
	t.Helper()
	p, err := s.Admit(t.Context(), req)
	var r *Rejection
	if !errors.As(err, &r) || r.Reason != want {
		p.Done(Ignored)
		t.Fatalf("Admit(%+v): %v, want refused: %s", req, err, want)
	}
	return r
}

func TestThreeOneSecondRequestsAtLimitOneQueueOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, fixed(1, Queue{Capacity: 1, MaxWait: 5 * time.Second}))
		start := time.Now()
		var served, turnedAway atomic.Int32
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				p, err := s.Admit(t.Context(), Request{})
				if err != nil {
					turnedAway.Add(1)
					return
				}
				time.Sleep(time.Second)
				p.Done(Success)
				served.Add(1)
			})
		}
		all.Wait()
		if took := time.Since(start); served.Load() != 2 || turnedAway.Load() != 1 || took != 2*time.Second {
			t.Fatalf("served %d, refused %d in %v; want 2 and 1 in exactly 2s", served.Load(), turnedAway.Load(), took)
		}
	})
}

func TestAPanicGivesThePermitBack(t *testing.T) {
	s := open(t, fixed(1, Queue{Capacity: -1}))
	for range 3 {
		func() {
			defer func() { _ = recover() }()
			p := admitted(t, s, Request{})
			outcome := Ignored
			defer func() { p.Done(outcome) }()
			panic("handler")
		}()
	}
	admitted(t, s, Request{}).Done(Success)
	if st := s.Status(); st.InFlight != 0 || st.Finished["ignored"] != 3 {
		t.Fatalf("in flight %d, finished %v", st.InFlight, st.Finished)
	}
}

func TestDoneCountsOnceFromAnywhere(t *testing.T) {
	s := open(t, fixed(2, Queue{Capacity: -1}))
	p := admitted(t, s, Request{})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { p.Done(Success) })
	}
	all.Wait()
	a, b := admitted(t, s, Request{}), admitted(t, s, Request{})
	refused(t, s, Request{}, Overloaded)
	p.Done(Success) // late: its slot is somebody else's by now
	refused(t, s, Request{}, Overloaded)
	a.Done(Success)
	b.Done(Success)
	if n := s.Status().InFlight; n != 0 {
		t.Fatalf("in flight %d", n)
	}
}

func TestTheWaitEndsAtItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, fixed(1, Queue{Capacity: 5, MaxWait: 70 * ms}))
		p := admitted(t, s, Request{})
		start := time.Now()
		refused(t, s, Request{}, WaitExpired)
		if took := time.Since(start); took != 70*ms {
			t.Fatalf("waited %v, want 70ms", took)
		}
		p.Done(Success)
		admitted(t, s, Request{}).Done(Success)
	})
}

func TestACallersDeadlineIsARefusalAndItsLeavingIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, fixed(1, Queue{Capacity: 5, MaxWait: time.Second}))
		p := admitted(t, s, Request{})
		defer p.Done(Success)

		ctx, cancel := context.WithTimeout(t.Context(), 30*ms)
		defer cancel()
		start := time.Now()
		_, err := s.Admit(ctx, Request{})
		var r *Rejection
		if !errors.As(err, &r) || r.Reason != Deadline || time.Since(start) != 30*ms {
			t.Fatalf("after %v: %v, want the deadline's refusal after 30ms", time.Since(start), err)
		}

		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(20*ms, leave)
		start = time.Now()
		if _, err = s.Admit(ctx, Request{}); !errors.Is(err, context.Canceled) || time.Since(start) != 20*ms {
			t.Fatalf("after %v: %v, want canceled after 20ms", time.Since(start), err)
		}
		if st := s.Status(); st.Waiting != 0 || st.Gone != 1 {
			t.Fatalf("waiting %d, gone %d", st.Waiting, st.Gone)
		}
	})
}

// TestAGrantToWhoJustLeftPassesOn races leaving against being granted, many times, with real goroutines: whatever happens,
// the permit comes back and the next in line gets it.
func TestAGrantToWhoJustLeftPassesOn(t *testing.T) {
	s := open(t, fixed(1, Queue{Capacity: 10, MaxWait: 10 * time.Second}))
	for range 2000 {
		p := admitted(t, s, Request{})
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if q, err := s.Admit(ctx, Request{}); err == nil {
				q.Done(Success)
			}
		})
		all.Go(func() { admitted(t, s, Request{}).Done(Success) })
		all.Go(leave)
		all.Go(func() { p.Done(Success) })
		all.Wait()
		if st := s.Status(); st.InFlight != 0 || st.Waiting != 0 {
			t.Fatalf("in flight %d, waiting %d", st.InFlight, st.Waiting)
		}
	}
}

func TestNobodyWaitsWhileThereIsRoom(t *testing.T) {
	s := open(t, fixed(1, Queue{Capacity: 100, MaxWait: 30 * time.Second}))
	var all sync.WaitGroup
	var running atomic.Int32
	for range 100 {
		all.Go(func() {
			for range 200 {
				p := admitted(t, s, Request{})
				if n := running.Add(1); n != 1 {
					t.Errorf("%d run at limit 1", n)
				}
				running.Add(-1)
				p.Done(Success)
			}
		})
	}
	all.Wait() // a lost wake-up would end in a refusal after 30 s
}

func TestARefusedRequestGetsItsQuotaBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(1, Queue{Capacity: 5, MaxWait: 50 * ms})
		cfg.Limits = []Limit{{Name: "daily", Rule: limits.TokenBucket{Capacity: 3, Refill: limits.PerDay(1)}}}
		s := open(t, cfg)
		p := admitted(t, s, Request{Client: "a"})
		for range 5 {
			refused(t, s, Request{Client: "a"}, WaitExpired)
		}
		p.Done(Success)
		for range 2 {
			admitted(t, s, Request{Client: "a"}).Done(Success)
		}
		refused(t, s, Request{Client: "a"}, OverLimit)
	})
}

func memory(t testing.TB) *limits.Memory {
	t.Helper()
	m, err := limits.NewMemory(limits.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// countingStore counts calls and can fail.
type countingStore struct {
	limits.Store
	takes, refunds atomic.Int32
	fail           error
}

func (c *countingStore) Take(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	c.takes.Add(1)
	if c.fail != nil {
		return limits.Decision{}, c.fail
	}
	return c.Store.Take(ctx, now, charges)
}

func (c *countingStore) Refund(ctx context.Context, now time.Time, d limits.Decision) error {
	c.refunds.Add(1)
	return c.Store.Refund(ctx, now, d)
}

func TestAShedRequestCostsNoStoreCall(t *testing.T) {
	store := &countingStore{Store: memory(t)}
	cfg := fixed(1, Queue{Capacity: -1})
	cfg.Limits, cfg.Store = []Limit{bucket("per-client", 20, 5)}, store
	s := open(t, cfg)
	p := admitted(t, s, Request{Client: "a"})
	for range 10 {
		refused(t, s, Request{Client: "a"}, Overloaded)
	}
	if store.takes.Load() != 1 || store.refunds.Load() != 0 {
		t.Fatalf("%d takes, %d refunds; want 1 and 0", store.takes.Load(), store.refunds.Load())
	}
	p.Done(Success)
}

func TestAStoreThatCannotDecideFailsClosed(t *testing.T) {
	cfg := fixed(1, Queue{})
	cfg.Limits = []Limit{bucket("per-client", 20, 5)}
	cfg.Store = &countingStore{Store: memory(t), fail: errors.New("down")}
	s := open(t, cfg)
	refused(t, s, Request{Client: "a"}, StoreUnavailable)
	if n := s.Status().InFlight; n != 0 {
		t.Fatalf("in flight %d", n)
	}
}

// switchboard is a Features with one switch.
type switchboard struct{ off atomic.Bool }

func (b *switchboard) FeatureOff(feature, _ string) (string, time.Duration, bool) {
	return "Reports are being repaired.", 15 * time.Second, b.off.Load() && feature == "reports"
}

func TestAFeatureThatIsOffIsRefusedInTheBannersWords(t *testing.T) {
	board := &switchboard{}
	cfg := fixed(10, Queue{})
	cfg.Features, cfg.Limits = board, []Limit{bucket("per-client", 1, 1)}
	cfg.Routes = []Route{{Name: "report", Feature: "reports"}, {Name: "items"}}
	s := open(t, cfg)
	board.off.Store(true)
	r := refused(t, s, Request{Client: "a", Route: "report"}, FeatureOff)
	if r.Words != "Reports are being repaired." || r.RetryAfter != 15*time.Second || r.Feature != "reports" {
		t.Fatalf("%+v", r)
	}
	board.off.Store(false)
	admitted(t, s, Request{Client: "a", Route: "report"}).Done(Success) // and the refusal cost no quota
}

// allOff is a Features with the one big switch.
type allOff struct{ off atomic.Bool }

func (a *allOff) FeatureOff(feature, _ string) (string, time.Duration, bool) {
	return "We are down.", 15 * time.Second, a.off.Load() && (feature == "*" || feature == "reports")
}

func TestWhenEverythingIsOffSoAreRoutesWithoutAFeature(t *testing.T) {
	board := &allOff{}
	cfg := fixed(10, Queue{})
	cfg.Features = board
	cfg.Routes = []Route{{Name: "report", Feature: "reports"}, {Name: "items"}, {Name: "probes", Exempt: true}}
	s := open(t, cfg)
	admitted(t, s, Request{Client: "a", Route: "items"}).Done(Success)
	board.off.Store(true)
	for route, feature := range map[string]string{"report": "reports", "items": "*", "": "*"} {
		if r := refused(t, s, Request{Client: "a", Route: route}, FeatureOff); r.Feature != feature || r.Words != "We are down." || r.RetryAfter != 15*time.Second {
			t.Errorf("route %q: %+v", route, r)
		}
	}
	admitted(t, s, Request{Client: "a", Route: "probes"}).Done(Success)
}

func TestNobodyIsNotAClient(t *testing.T) {
	cfg := fixed(10, Queue{})
	global := bucket("site", 2, 1)
	global.Per = Global
	cfg.Limits = []Limit{bucket("per-client", 1, 1), global}
	s := open(t, cfg)
	refused(t, s, Request{}, NoIdentity)
	for range 2 {
		admitted(t, s, Request{Anonymous: true}).Done(Success)
	}
	refused(t, s, Request{Anonymous: true}, OverLimit) // the rule for all still holds
}

func TestExemptRoutesPassWhileEverythingIsShed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(1, Queue{Capacity: -1})
		cfg.Limits = []Limit{{Name: "none", Rule: limits.TokenBucket{Capacity: 0, Refill: limits.PerSecond(1)}}}
		cfg.Routes = []Route{{Name: "probes", Exempt: true}}
		s := open(t, cfg)
		refused(t, s, Request{Client: "a"}, CostTooLarge)
		for range exemptGuard {
			admitted(t, s, Request{Route: "probes"}).Done(Success)
		}
		refused(t, s, Request{Route: "probes"}, Overloaded) // no open door either
		time.Sleep(time.Second)
		admitted(t, s, Request{Route: "probes"}).Done(Success)
	})
}

func TestCloseEndsEveryWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(1, Queue{Capacity: 10, MaxWait: time.Hour})
		cfg.Limits = []Limit{{
			Name: "smooth", Rule: limits.LeakyBucket{Capacity: 10, Leak: limits.PerHour(1)}, Excess: Delay, MaxWait: 24 * time.Hour, Routes: []string{"slow"},
		}}
		cfg.Routes = []Route{{Name: "slow"}}
		s := open(t, cfg)
		p := admitted(t, s, Request{Client: "a", Route: "slow"})
		var all sync.WaitGroup
		for _, route := range []string{"", "", "slow"} {
			all.Go(func() {
				if _, err := s.Admit(t.Context(), Request{Client: "a", Route: route}); !errors.Is(err, ErrClosed) {
					t.Errorf("waiting on %q: %v, want ErrClosed", route, err)
				}
			})
		}
		synctest.Wait()
		s.Close()
		s.Close()
		all.Wait()
		p.Done(Success) // a permit that is out can still be ended
		if _, err := s.Admit(t.Context(), Request{}); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		if st := s.Status(); st.InFlight != 0 {
			t.Errorf("in flight %d", st.InFlight)
		}
	})
}

func TestTheObserverHearsEverythingAndHoldsNoLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *Shedder
		var heard []string
		cfg := fixed(1, Queue{Capacity: -1})
		cfg.Routes = []Route{{Name: "report", Priority: Sheddable}}
		cfg.Observer = ObserverFunc(func(e Event) {
			s.Status() // would deadlock if the gate's lock were held
			heard = append(heard, fmt.Sprint(e.Kind, e.Route, e.Reason, e.Service, e.Outcome))
		})
		s = open(t, cfg)
		p := admitted(t, s, Request{Route: "report"})
		refused(t, s, Request{}, Overloaded)
		time.Sleep(time.Second)
		p.Done(Success)
		p.Done(Dropped)
		want := []string{
			fmt.Sprint(Admitted, "report", Reason(""), time.Duration(0), Ignored),
			fmt.Sprint(Refused, "", Overloaded, time.Duration(0), Ignored),
			fmt.Sprint(Finished, "report", Reason(""), time.Second, Success),
		}
		if strings.Join(heard, "\n") != strings.Join(want, "\n") {
			t.Fatalf("heard\n%s\nwant\n%s", strings.Join(heard, "\n"), strings.Join(want, "\n"))
		}
	})
}

func TestRetryAfterOfAShedRequestIsNoConstant(t *testing.T) {
	cfg := fixed(1, Queue{Capacity: -1})
	s := open(t, cfg)
	p := admitted(t, s, Request{})
	defer p.Done(Success)
	seen := make(map[time.Duration]bool)
	for range 200 {
		seen[refused(t, s, Request{}, Overloaded).RetryAfter] = true
	}
	if len(seen) != 2 || !seen[time.Second] || !seen[2*time.Second] {
		t.Fatalf("retry after %v, want 1s and 2s by chance", seen)
	}
}
