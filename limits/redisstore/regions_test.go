package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/internal/wait"
	"github.com/spillway-go/spillway/limits"
)

var euUs = map[string]int64{"eu": 2, "us": 1}

// inRegion makes one instance of a region.
func inRegion(t *testing.T, name string, region, home limits.Store) *Regions {
	t.Helper()
	g, err := NewGuard(home, GuardConfig{OnFailure: limits.Closed, Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLeases(g, LeaseConfig{Instances: 4})
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRegions(region, l, RegionsConfig{Region: name, Weights: euUs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// TestRegionsMintNothing plays two regions, whose links to home are cut at times, whose holders are killed, and one of which is dead
// for a while. A control in which each has the whole is above the bound.
func TestRegionsMintNothing(t *testing.T) {
	run := func(seed uint64, divided bool) (worst, borrowed int64) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 3))
			home := newFake(t)
			const capacity, rate = 600, 300
			p := named(t, "p", limits.TokenBucket{Capacity: capacity, Refill: limits.PerSecond(rate)})
			names := []string{"eu", "us"}
			stores := []*fake{newFake(t), newFake(t)}
			links := []*fake{{Memory: home.Memory}, {Memory: home.Memory}}
			all := make([]limits.Store, 2)
			start := func(i int) {
				if all[i] = stores[i]; divided {
					all[i] = inRegion(t, names[i], stores[i], fakeOpen{links[i]})
				}
			}
			start(0)
			start(1)
			begin, passed, dead := time.Now(), int64(0), -1
			pace := []int{3, 3}
			for time.Since(begin) < 8*time.Second {
				for i, s := range all {
					for range pace[i] {
						cost := 1 + random.Int64N(3)
						if d, err := s.Take(context.Background(), time.Time{}, single(p, "k", cost)); i != dead && err == nil && d.Allowed {
							passed += cost
							worst = max(worst, passed-capacity-int64(time.Since(begin)*rate/time.Second))
							if random.IntN(20) == 0 && s.Refund(context.Background(), time.Time{}, d) == nil {
								passed -= cost
							}
						}
					}
				}
				switch i := random.IntN(2); random.IntN(200) {
				case 0:
					links[i].set(refused, 0)
				case 1, 2:
					links[i].set(nil, 0)
				case 3:
					dead = random.IntN(3) - 1
				case 4:
					pace[i] = random.IntN(6)
				case 5: // killed: what it holds is lost
					start(i)
				}
				time.Sleep(time.Duration(1+random.IntN(5)) * time.Millisecond)
			}
			for _, s := range all {
				if r, ok := s.(*Regions); ok {
					borrowed += r.Report().Home.Borrowed
				}
			}
		})
		return worst, borrowed
	}
	borrowed := int64(0)
	for seed := range uint64(6) {
		worst, n := run(seed, true)
		if borrowed += n; worst > 0 {
			t.Errorf("seed %d: %d above capacity and rate", seed, worst)
		}
	}
	if borrowed == 0 {
		t.Error("nobody borrowed")
	}
	if worst, _ := run(1, false); worst <= 0 {
		t.Errorf("the control is only %d above", worst)
	}
}

// fakeOpen is a fake that its holder does not close, for others use it too.
type fakeOpen struct{ *fake }

func (fakeOpen) Close() error { return nil }

// TestWhatOneRegionLeavesAnotherMayHave: alone at work, a region has its own part and all that is lent.
func TestWhatOneRegionLeavesAnotherMayHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home := newFake(t)
		r := inRegion(t, "us", newFake(t), home)
		const capacity, rate = 600, 600
		p := named(t, "p", limits.TokenBucket{Capacity: capacity, Refill: limits.PerSecond(rate)})
		begin, passed := time.Now(), 0
		for time.Since(begin) < 5*time.Second {
			for range 2 {
				if mustTake(t, r, single(p, "k", 1)).Allowed {
					passed++
				}
			}
			time.Sleep(time.Millisecond)
		}
		// A third of one half is its own, and the other half is lent: 2/3 of the whole.
		if want := (capacity + 5*rate) * 2 / 3; passed > want || passed < want*95/100 {
			t.Errorf("%d passed, want %d", passed, want)
		}
		home.set(refused, 0) // cut off: blocks end with their leases, and then there is its own
		time.Sleep(2 * time.Second)
		for mustTake(t, r, single(p, "k", 1)).Allowed {
		}
		begin, passed = time.Now(), 0
		for time.Since(begin) < 5*time.Second {
			if mustTake(t, r, single(p, "k", 1)).Allowed {
				passed++
			}
			time.Sleep(time.Millisecond)
		}
		if want := 5 * rate / 6; passed > want+1 || passed < want-5 {
			t.Errorf("%d passed while cut off, want %d", passed, want)
		}
		if h := r.Report().Home; h.State != "down" || h.Region != "us" || h.Error == "" {
			t.Errorf("%+v", h)
		}
	})
}

// TestShadowsInRegions refuse nobody, keep nobody from borrowing, and borrow nothing.
func TestShadowsInRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, rule := range map[string]limits.Rule{
			"lent":     limits.TokenBucket{Capacity: 6, Refill: limits.PerDay(1)},
			"not lent": limits.FixedWindow{Quota: limits.PerDay(3)},
		} {
			r := inRegion(t, "eu", newFake(t), newFake(t))
			shadow := named(t, "shadow", rule) // eu has 2 of either
			acts := named(t, "acts", limits.TokenBucket{Capacity: 6, Refill: limits.PerDay(1)})
			both := []limits.Charge{{Policy: shadow, Key: "k", Cost: 1, Shadow: true}, {Policy: acts, Key: "k", Cost: 1}}
			for i := range 6 {
				d := mustTake(t, r, both)
				if want := i < 5; d.Allowed != want { // 2 of its own, and 3 that are lent
					t.Fatalf("%s, %d: %+v", name, i, d.Verdicts())
				}
				want := limits.Allowed
				if i >= 2 {
					want = limits.OverLimit
				}
				if v := d.At(0); v.Reason != want || !v.Shadow || v.Key != "k" {
					t.Errorf("%s, %d: the shadow says %+v, want %v", name, i, v, want)
				}
			}
			if n := r.Report().Home.Borrowed; n != 3 {
				t.Errorf("%s: %d were borrowed, want 3", name, n)
			}
		}
	})
}

// TestWhoIsRefusedInRegionsIsToldTheSoonerPart: of the region's own and home whichever admits first, and it does then.
func TestWhoIsRefusedInRegionsIsToldTheSoonerPart(t *testing.T) {
	for _, c := range []struct {
		pause time.Duration // between the last of the region's own 2 and the 3 of home
		cost  int64
		want  time.Duration
	}{
		{0, 1, 2 * time.Second},                               // home, with half of the rate; its own takes 3s
		{1500 * time.Millisecond, 1, 1500 * time.Millisecond}, // its own
		{0, 3, 6 * time.Second},                               // home alone can hold it
	} {
		synctest.Test(t, func(t *testing.T) {
			r := inRegion(t, "eu", newFake(t), newFake(t))
			p := named(t, "p", limits.TokenBucket{Capacity: 6, Refill: limits.PerSecond(1)})
			for i := range 5 {
				if d := mustTake(t, r, single(p, "k", 1)); !d.Allowed {
					t.Fatalf("%d: %+v", i, d.At(0))
				}
				if i == 1 {
					time.Sleep(c.pause)
				}
			}
			if d := mustTake(t, r, single(p, "k", c.cost)); d.Allowed || d.At(0).Reason != limits.OverLimit || d.At(0).RetryAfter != c.want {
				t.Errorf("%+v: %+v", c, d.At(0))
			}
			if d := mustTake(t, r, single(p, "k", 4)); d.Allowed || d.At(0).Reason != limits.CostTooLarge {
				t.Errorf("more than any part holds: %+v", d.At(0))
			}
			time.Sleep(c.want)
			if d := mustTake(t, r, single(p, "k", c.cost)); !d.Allowed {
				t.Errorf("%+v: it was early: %+v", c, d.At(0))
			}
		})
	}
}

// TestStrictQuotasAreDecidedAtHome, and all is taken or nothing.
func TestStrictQuotasAreDecidedAtHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home, region := newFake(t), newFake(t)
		r := inRegion(t, "eu", region, home)
		strict := named(t, "strict", limits.FixedWindow{Quota: limits.PerDay(3)}, limits.Strict())
		own := named(t, "own", limits.FixedWindow{Quota: limits.PerDay(30)})
		both := []limits.Charge{{Policy: own, Key: "c", Cost: 1}, {Policy: strict, Key: "c", Cost: 1}}
		left := func() int64 {
			d, err := r.Peek(context.Background(), time.Time{}, single(own, "c", 0))
			if err != nil {
				t.Fatal(err)
			}
			return d.At(0).Remaining
		}
		for i := range 5 {
			d := mustTake(t, r, both)
			if d.Allowed != (i < 3) || d.At(0).Policy != own || d.At(1).Policy != strict {
				t.Fatalf("%d: %+v", i, d.Verdicts())
			}
			if i == 2 {
				if err := r.Refund(context.Background(), time.Time{}, d); err != nil {
					t.Fatal(err)
				}
				if d = mustTake(t, r, both); !d.Allowed {
					t.Fatal("the refund is missing")
				}
			}
		}
		if n := left(); n != 20-3 {
			t.Errorf("%d of the region's 20 are left", n)
		}
		home.set(refused, 0)
		var u *limits.UnavailableError
		if _, err := r.Take(context.Background(), time.Time{}, both); !errors.As(err, &u) || u.Policy != strict {
			t.Errorf("while cut off: %v", err)
		}
		if n := left(); n != 17 {
			t.Errorf("what was not admitted has charged: %d are left", n)
		}
	})
}

// TestRegionsWithRealServers: each with its own, a home between them, a link that is cut and healed, and a region that is killed.
func TestRegionsWithRealServers(t *testing.T) {
	t.Parallel()
	eu, us, home := redistest.Single(t), redistest.Single(t), redistest.Single(t)
	link := redistest.NewProxy(t, home.Addr)
	make := func(name string, region *redistest.Server, homeAt string) *Regions {
		own := opened(t, at(region), Options{}, GuardConfig{Timeout: time.Second, OnFailure: limits.Closed})
		client := home.Client(t, func(o *redis.Options) { o.Addr = homeAt })
		s, err := New(client, Config{Prefix: "spillway-home"})
		if err != nil {
			t.Fatal(err)
		}
		return inRegion(t, name, own, s)
	}
	a, b := make("eu", eu, home.Addr), make("us", us, link.Addr)
	p := named(t, "p", limits.TokenBucket{Capacity: 600, Refill: limits.Rate{Amount: 1, Per: 10 * time.Hour}})
	take := func(r *Regions) (passed int) {
		for range 700 {
			if d, err := r.Take(ctx, time.Time{}, single(p, "k", 1)); err == nil && d.Allowed {
				passed++
			}
		}
		return passed
	}
	link.Cut()
	if n := take(b); n != 100 {
		t.Errorf("cut off, us has %d, want its own 100", n)
	}
	eu.Kill()
	link.Heal()
	wait.Until(t, "what is lent, to us", func() bool {
		d, err := b.Take(ctx, time.Time{}, single(p, "k", 1))
		return err == nil && d.Allowed
	})
	n := take(b)
	if n > 299 || n < 250 {
		t.Errorf("with eu dead, us has %d more, want all of the 300 that are lent but what it lost", n)
	}
	eu.Restart(t)
	wait.Until(t, "eu's own", func() bool {
		d, err := a.Take(ctx, time.Time{}, single(p, "k", 1))
		return err == nil && d.Allowed
	})
	if m := take(a); m < 199 || m+n+1+1+100 > 600 {
		t.Errorf("back, eu has %d, want its own 200 and what is left", m)
	}
}

func TestRegionsCloseBothStores(t *testing.T) {
	region, home := newFake(t), newFake(t)
	inRegion(t, "eu", region, home).Close()
	if !region.closed.Load() || !home.closed.Load() {
		t.Errorf("region closed: %v, home closed: %v", region.closed.Load(), home.closed.Load())
	}
}
