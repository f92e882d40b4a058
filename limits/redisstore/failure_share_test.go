package redisstore

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

func TestSharesAddUp(t *testing.T) {
	for _, r := range []limits.Rule{
		bucket, limits.LeakyBucket{Capacity: 7, Leak: limits.PerSecond(2)},
		limits.Delay{Rule: limits.LeakyBucket{Capacity: 100, Leak: limits.PerSecond(50)}},
		limits.FixedWindow{Quota: limits.PerMinute(100)}, limits.SlidingLog{Quota: limits.PerMinute(5)},
		limits.SlidingWindow{Quota: limits.PerSecond(1)}, limits.FixedWindow{},
		limits.Burst{Soft: limits.PerSecond(100), Hard: limits.PerSecond(200), Total: limits.PerMinute(5000)},
		limits.Burst{Soft: limits.PerSecond(2), Hard: limits.PerSecond(3)},
		limits.TokenBucket{Capacity: 999_983, Refill: limits.PerDay(999_983)},
		limits.InFlight{Max: 8},
	} {
		if r == (limits.FixedWindow{}) {
			r = limits.FixedWindow{Quota: limits.Rate{Amount: 0, Per: time.Second}}
		}
		whole, err := limits.NewPolicy("p", r)
		if err != nil {
			t.Errorf("%v: %v", r, err)
			continue
		}
		for _, n := range []int64{1, 2, 3, 7, 100, 1000} {
			p := divided(whole, n)
			if p == nil {
				t.Errorf("%v has no share for %d instances", r, n)
				continue
			}
			if q := p.Quota(); q > max(whole.Quota()/n, min(whole.Quota(), 1)) && q*int64(whole.Window()) > whole.Quota()*int64(p.Window())/n {
				t.Errorf("%v for %d instances: %v", r, n, p)
			}
			if p.Quota() == 0 && whole.Quota() > 0 {
				t.Errorf("%v for %d instances lets nothing through", r, n)
			}
			if rate, share := rateOf(r), rateOf(p.Rule()); share*float64(n) > rate*(1+1e-9) {
				t.Errorf("%v for %d instances: %v each", r, n, p)
			}
		}
	}
}

// rateOf is what a rule lets through in a second in the long run.
func rateOf(r limits.Rule) float64 {
	per := func(r limits.Rate) float64 { return float64(r.Amount) / r.Per.Seconds() }
	switch r := r.(type) {
	case limits.TokenBucket:
		return per(r.Refill)
	case limits.LeakyBucket:
		return per(r.Leak)
	case limits.Delay:
		return rateOf(r.Rule)
	case limits.FixedWindow:
		return per(r.Quota)
	case limits.SlidingLog:
		return per(r.Quota)
	case limits.SlidingWindow:
		return per(r.Quota)
	case limits.Burst:
		return per(r.Soft)
	}
	return 0
}

func TestInstancesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		there := map[string]time.Time{"a": time.Now().Add(time.Hour), "b": time.Now().Add(time.Hour)}
		f.beats = func(id string, lasts time.Duration) (int, error) {
			if lasts == 0 {
				delete(there, id)
			} else {
				there[id] = time.Now().Add(lasts)
			}
			return len(there), nil
		}
		g := guard(t, f, GuardConfig{Heartbeat: true, Instances: 5})
		if n := g.Report().Instances; n != 3 {
			t.Errorf("%d instances, want 3", n)
		}
		f.mu.Lock()
		delete(there, "a")
		f.mu.Unlock()
		time.Sleep(beatEvery)
		synctest.Wait()
		if n := g.Report().Instances; n != 2 {
			t.Errorf("%d instances, want 2", n)
		}
		f.mu.Lock()
		f.beats = nil
		f.mu.Unlock()
		time.Sleep(10 * beatEvery)
		if n := g.Report().Instances; n != 2 {
			t.Errorf("the last count is forgotten: %d", n)
		}
	})
}

func BenchmarkGuardWhileDown(b *testing.B) {
	m, err := limits.NewMemory(limits.MemoryConfig{})
	if err != nil {
		b.Fatal(err)
	}
	f := &fake{Memory: m}
	f.set(refused, 0)
	g, err := NewGuard(f, GuardConfig{Instances: 3})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	p, err := limits.NewPolicy("p", bucket)
	if err != nil {
		b.Fatal(err)
	}
	charges := single(p, "k", 1)
	for !g.breaker.open() {
		_, _ = g.Take(context.Background(), time.Time{}, charges)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Take(context.Background(), time.Time{}, charges); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleGuard() {
	// The store that the Guard wraps is usually made by New.
	inner, err := limits.NewMemory(limits.MemoryConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	store, err := NewGuard(inner, GuardConfig{Instances: 3, OnFailure: limits.Local})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	payments, err := limits.NewPolicy("payments", limits.TokenBucket{Capacity: 5, Refill: limits.PerSecond(1)}, limits.Strict())
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := store.Take(context.Background(), time.Now(), []limits.Charge{{Policy: payments, Key: "customer-42", Cost: 1}})
	fmt.Println(d.Allowed, err)
	// Output: true <nil>
}
