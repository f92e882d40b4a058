package redisstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// leased wraps a store for an instance of its own.
func leased(t *testing.T, inner limits.Store, cfg LeaseConfig) *Leases {
	t.Helper()
	l, err := NewLeases(inner, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func byLease(t *testing.T, name string, r limits.Rule, options ...limits.Option) *limits.Policy {
	t.Helper()
	return named(t, name, r, append(options, limits.Shared(limits.SharedByLease))...)
}

// remaining is what the store has, whatever lies in blocks.
func remaining(t *testing.T, f *fake, p *limits.Policy, key string) int64 {
	t.Helper()
	d, err := f.Memory.Peek(context.Background(), time.Time{}, single(p, key, 0))
	if err != nil {
		t.Fatal(err)
	}
	return d.At(0).Remaining
}

// busy makes a key so busy that a block lies in l, and returns how much was admitted.
func busy(t *testing.T, l *Leases, p *limits.Policy, key string) (n int64) {
	t.Helper()
	for range 1000 {
		d := mustTake(t, l, single(p, key, 1))
		if d.Allowed {
			n++
		}
		if b, ok := l.leases.Load(balanceName{p.Name(), key}); ok && b.(*lease).left > 2 {
			return n
		}
	}
	t.Fatal("nothing is taken ahead")
	return 0
}

var wide = limits.TokenBucket{Capacity: 1000, Refill: limits.PerSecond(100)}

func TestABlockIsSpentWithoutAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		l := leased(t, f, LeaseConfig{Instances: 2})
		p := byLease(t, "p", wide)
		used := busy(t, l, p, "k")
		b, _ := l.leases.Load(balanceName{"p", "k"})
		asked, left, before := f.asked.Load(), b.(*lease).left, l.hits.Load()
		if have := remaining(t, f, p, "k"); have != 1000-used-left {
			t.Errorf("the store has %d, want 1000 less %d that passed and %d ahead", have, used, left)
		}
		for i := range left {
			d := mustTake(t, l, single(p, "k", 1))
			if v := d.At(0); !d.Allowed || d.Source != limits.FromLease || v.Policy != p || v.Cost != 1 || v.Remaining != 1000-used-i-1 || v.Taken == limits.NotTaken {
				t.Fatalf("from the block: %v %v %+v", d.Allowed, d.Source, v)
			}
		}
		if n := f.asked.Load() - asked; n != 0 {
			t.Errorf("the store was asked %d times", n)
		}
		if d := mustTake(t, l, single(p, "k", 1)); d.Source != limits.FromRedis || f.asked.Load() != asked+1 {
			t.Errorf("when the block is empty: from %v", d.Source)
		}
		if r := l.Report(); r.Decisions["lease"] != left+before {
			t.Errorf("reports %+v, want %d decisions by lease", r, left+before)
		}
	})
}

func TestWhatIsLeftGoesBackWhenTheLeaseEndsAndOnClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		l := leased(t, f, LeaseConfig{Lasts: 400 * time.Millisecond})
		slow := byLease(t, "p", limits.TokenBucket{Capacity: 1000, Refill: limits.PerDay(1)})
		time.Sleep(50 * time.Millisecond) // so that no round comes as the lease ends
		used := busy(t, l, slow, "k")
		time.Sleep(400*time.Millisecond - 1)
		if d := mustTake(t, l, single(slow, "k", 1)); d.Source != limits.FromLease {
			t.Errorf("within the lease: from %v", d.Source)
		}
		time.Sleep(time.Nanosecond)
		if d := mustTake(t, l, single(slow, "k", 1)); d.Source != limits.FromRedis {
			t.Errorf("as the lease ends: from %v", d.Source)
		}
		time.Sleep(501 * time.Millisecond) // that asked for a little ahead: it goes back too
		if have := remaining(t, f, slow, "k"); have != 1000-used-2 {
			t.Errorf("after the lease the store has %d, want %d", have, 1000-used-2)
		}
		if d := mustTake(t, l, single(slow, "k", 1)); d.Source != limits.FromRedis {
			t.Errorf("after the lease: from %v", d.Source)
		}
		used += 3 + busy(t, l, slow, "k")
		if err := l.Close(); err != nil || !f.closed.Load() {
			t.Errorf("%v, closed %v", err, f.closed.Load())
		}
		if have := remaining(t, f, slow, "k"); have != 1000-used {
			t.Errorf("after Close the store has %d, want %d", have, 1000-used)
		}
		for range 100 {
			if d := mustTake(t, l, single(slow, "k", 1)); d.Source != limits.FromRedis {
				t.Fatalf("closed, and from %v", d.Source)
			}
		}
	})
}

func TestBalancesThatNobodyUsesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := leased(t, newFake(t), LeaseConfig{MaxKeys: 10})
		p := byLease(t, "p", wide)
		for i := range 50 {
			mustTake(t, l, single(p, fmt.Sprint(i), 1))
		}
		if n := l.known.Load(); n != 10 {
			t.Errorf("%d are known, want 10", n)
		}
		time.Sleep(2 * time.Second)
		if n := l.known.Load(); n != 0 {
			t.Errorf("%d are known after a while", n)
		}
		busy(t, l, p, "later")
	})
}

func TestWhatIsNotTakenAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		l := leased(t, f, LeaseConfig{Default: limits.SharedByLease})
		exactly := named(t, "exact", wide, limits.Shared(limits.SharedExactly))
		asked := map[string][]limits.Charge{
			"strict":        single(byLease(t, "strict", wide, limits.Strict()), "k", 1),
			"exact":         single(exactly, "k", 1),
			"a window":      single(named(t, "w", limits.FixedWindow{Quota: limits.PerDay(1000)}), "k", 1),
			"a queue":       single(named(t, "q", limits.Delay{Rule: limits.LeakyBucket{Capacity: 1000, Leak: limits.PerSecond(1000)}, MaxWait: time.Second}), "k", 1),
			"turns":         single(named(t, "d", limits.Delay{Rule: wide, MaxWait: time.Second}), "k", 1),
			"a shadow":      {{Policy: named(t, "s", wide), Key: "k", Cost: 1, Shadow: true}},
			"two of one":    append(single(named(t, "t", wide), "k", 1), single(named(t, "t", wide), "k", 1)...),
			"a small limit": single(named(t, "small", limits.TokenBucket{Capacity: 3, Refill: limits.PerSecond(1000)}), "k", 1),
		}
		for what, charges := range asked {
			for range 100 {
				before := f.asked.Load()
				if d := mustTake(t, l, charges); d.Source != limits.FromRedis || f.asked.Load() != before+1 {
					t.Fatalf("%s: from %v", what, d.Source)
				}
			}
		}
		seldom := named(t, "seldom", wide)
		for range 20 {
			if d := mustTake(t, l, single(seldom, "k", 1)); d.Source != limits.FromRedis {
				t.Fatalf("seldom: from %v", d.Source)
			}
			time.Sleep(leaseAhead)
		}
		if have := remaining(t, f, seldom, "k"); have < 990 {
			t.Errorf("of what is seldom used the store has %d", have)
		}
		busy(t, l, named(t, "default", wide), "k")
		if _, err := l.Take(context.Background(), time.Time{}, single(nil, "k", 1)); err == nil {
			t.Error("no policy is no error")
		}
		done, cancel := context.WithCancel(context.Background())
		cancel()
		before := remaining(t, f, seldom, "k")
		if _, err := l.Peek(done, time.Time{}, single(seldom, "k", 1)); err != nil && remaining(t, f, seldom, "k") != before {
			t.Error("a peek takes")
		}
	})
}

// TestAnotherRuleRefuses: what was spent from a block is put back, also when the store fails.
func TestAnotherRuleRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		l := leased(t, f, LeaseConfig{})
		p := byLease(t, "all", wide)
		each := named(t, "each", limits.FixedWindow{Quota: limits.PerDay(1)})
		busy(t, l, p, "")
		found, _ := l.leases.Load(balanceName{"all", ""})
		b := found.(*lease)
		left := b.left
		both := []limits.Charge{{Policy: each, Key: "k", Cost: 1}, {Policy: p, Cost: 1}}
		d := mustTake(t, l, both)
		if !d.Allowed || d.Source != limits.FromRedis || d.At(0).Policy != each || d.At(1).Policy != p || d.At(1).Taken != b.taken || b.left != left-1 {
			t.Fatalf("both fit: %+v; %d left of %d", d, b.left, left)
		}
		refused := mustTake(t, l, both)
		if v := refused.At(1); refused.Allowed || refused.Binding().Policy != each || v.Reason != limits.Allowed || v.Taken != limits.NotTaken || v.Cost != 1 || b.left != left-1 {
			t.Errorf("one refuses: %+v; %d left of %d", refused, b.left, left-1)
		}
		f.set(errors.New("away"), 0)
		if _, err := l.Take(context.Background(), time.Time{}, both); err == nil || b.left != left-1 {
			t.Errorf("%v; %d left of %d", err, b.left, left-1)
		}
		if d := mustTake(t, l, single(p, "", 1)); !d.Allowed || d.Source != limits.FromLease {
			t.Errorf("while the store is away: %+v", d)
		}
		f.set(nil, 0)
		if err := l.Refund(context.Background(), time.Time{}, d); err != nil {
			t.Fatal(err)
		}
		if b.left != left-1 {
			t.Errorf("%d are left after a refund, want %d", b.left, left-1)
		}
		if d := mustTake(t, l, both); !d.Allowed {
			t.Error("the other charge was not given back")
		}
	})
}
