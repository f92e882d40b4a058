package redisstore

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// TestWhatIsKnownIsDecidedHere: the first decisions ask, then none does while the balance is in use, and Close tells the rest.
func TestWhatIsKnownIsDecidedHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBooks()
		a := asynchronous(t, s, AsyncConfig{Every: every})
		p := async(t, "p", limits.TokenBucket{Capacity: 100, Refill: limits.PerHour(1)})
		if d := mustTake(t, a, single(p, "k", 1)); !d.Allowed || d.Source != limits.FromRedis {
			t.Fatalf("the first decision: %+v", d)
		}
		settled()
		asked := s.questions()
		for i := range 200 {
			d := mustTake(t, a, single(p, "k", 1))
			if want := i < 99; d.Allowed != want || d.Source != limits.FromAsync {
				t.Fatalf("decision %d: %v by %v", i, d.Allowed, d.Source)
			}
			if want := max(98-int64(i), 0); d.At(0).Remaining != want {
				t.Fatalf("decision %d: %d remain, want %d", i, d.At(0).Remaining, want)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n := s.questions() - asked; n != 0 {
			t.Errorf("the store was asked %d times", n)
		}
		if n := s.owed(p, "k"); n != 100 {
			t.Errorf("%d are owed, want 100", n)
		}
		r := a.Report()
		if r.Decisions["async"] != 200 || r.Merges == nil || r.Merges.Keys != 1 || r.Merges.Done < 20 || r.Merges.Failed != 0 || time.Since(r.Merges.Last) > every {
			t.Errorf("report: %+v, %+v", r, r.Merges)
		}
		time.Sleep(time.Minute) // it is forgotten
		synctest.Wait()
		if n := a.Report().Merges.Keys; n != 0 {
			t.Errorf("%d balances are known after a pause", n)
		}
		q := async(t, "q", limits.TokenBucket{Capacity: 100, Refill: limits.PerHour(1)})
		mustTake(t, a, single(q, "k", 1))
		settled()
		mustTake(t, a, single(q, "k", 5))
		a.Close()
		if n := s.owed(q, "k"); n != 6 {
			t.Errorf("after Close %d are owed, want 6", n)
		}
		if d := mustTake(t, a, single(q, "k", 1)); d.Source != limits.FromRedis {
			t.Errorf("a closed Async decides by %v", d.Source)
		}
	})
}

// TestOneInstanceGetsWhatOthersLeave: what the rate brings is divided, and what nobody takes is there after the next merge.
func TestOneInstanceGetsWhatOthersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBooks()
		busy, idle := asynchronous(t, among{s, 4}, AsyncConfig{Every: every}), asynchronous(t, among{s, 4}, AsyncConfig{Every: every})
		p := async(t, "p", limits.TokenBucket{Capacity: 200, Refill: limits.PerSecond(1000)})
		passed, begin := int64(0), time.Now()
		for time.Since(begin) < 5*time.Second {
			if mustTake(t, busy, single(p, "k", 1)).Allowed {
				passed++
			}
			time.Sleep(200 * time.Microsecond)
		}
		if want := int64(200 + 5*1000); passed > want || passed < want-1000/10-4 {
			t.Errorf("%d passed, want %d, or less by what the rate brings between merges", passed, want)
		}
		if d := mustTake(t, idle, single(p, "k", 1)); d.Source != limits.FromRedis {
			t.Errorf("what was not wanted is decided by %v", d.Source)
		}
	})
}

// TestWhatIsTooMuchIsPaidBack: two instances that have not heard of each other admit twice, and then nothing until time has
// paid for it.
func TestWhatIsTooMuchIsPaidBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBooks()
		p := async(t, "p", limits.TokenBucket{Capacity: 100, Refill: limits.PerSecond(100)})
		var all [2]*Async
		for i := range all {
			all[i] = asynchronous(t, among{s, 2}, AsyncConfig{Every: every})
			mustTake(t, all[i], single(p, "k", 1))
		}
		begin := time.Now()
		settled()
		passed := int64(2)
		for ; time.Since(begin) < 3*time.Second; time.Sleep(time.Millisecond) {
			for _, a := range all {
				if mustTake(t, a, single(p, "k", 1)).Allowed {
					passed++
				}
			}
			if most := int64(100 + 100 + 100*time.Since(begin).Seconds()); passed > most {
				t.Fatalf("%d passed after %v, want at most %d", passed, time.Since(begin), most)
			}
			if e := time.Since(begin); e > 300*time.Millisecond && e < time.Second && passed > 202+10 {
				t.Fatalf("%d passed after %v, though twice the capacity is owed", passed, e)
			}
		}
		if passed > 400 || passed < 100+300-8-10-2 { // the 2 at the beginning had drained before the others came
			t.Errorf("%d passed in 3s, want 400", passed)
		}
	})
}

// TestOtherRulesStandBeside: all is taken or nothing, whoever refuses, and refunds give back exactly.
func TestOtherRulesStandBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBooks()
		a := asynchronous(t, s, AsyncConfig{Every: every})
		wide := async(t, "wide", limits.TokenBucket{Capacity: 10, Refill: limits.PerHour(1)})
		own := named(t, "own", limits.TokenBucket{Capacity: 4, Refill: limits.PerHour(1)})
		both := []limits.Charge{{Policy: own, Key: "c", Cost: 1}, {Policy: wide, Key: "", Cost: 1}}
		mustTake(t, a, both)
		settled()
		for range 3 {
			if d := mustTake(t, a, both); !d.Allowed || d.Source != limits.FromRedis {
				t.Fatalf("%v by %v", d.Allowed, d.Source)
			}
		}
		d := mustTake(t, a, both)
		if d.Allowed || d.At(0).Reason != limits.OverLimit || d.At(1).Reason != limits.Allowed || d.At(1).Remaining != 6 || d.At(1).Taken != limits.NotTaken {
			t.Fatalf("refused by the other: %+v", d.Verdicts())
		}
		settled()
		if n := s.owed(wide, ""); n != 4 {
			t.Errorf("a refusal has charged: %d are owed, want 4", n)
		}
		for range 6 {
			if !mustTake(t, a, single(wide, "", 1)).Allowed {
				t.Fatal("6 are left")
			}
		}
		other := []limits.Charge{{Policy: own, Key: "other", Cost: 1}, {Policy: wide, Key: "", Cost: 1}}
		if d = mustTake(t, a, other); d.Allowed || d.Source != limits.FromAsync || d.At(0).Remaining != 4 || d.Binding().Policy != wide {
			t.Fatalf("refused here: %+v", d.Verdicts())
		}
		if n := s.owed(own, "other"); n != 0 {
			t.Errorf("a refusal has charged the other: %d", n)
		}
		if d, err := a.Peek(context.Background(), time.Time{}, single(wide, "", 1)); err != nil || d.Allowed || d.Source != limits.FromAsync {
			t.Errorf("Peek: %v, %v", d, err)
		}
	})
}

// TestRefundsOfWhatWasNotToldAndWhatWas: the first is as if it had never been, the others the store gives back.
func TestRefundsOfWhatWasNotToldAndWhatWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBooks()
		a := asynchronous(t, s, AsyncConfig{Every: every})
		p := async(t, "p", limits.TokenBucket{Capacity: 10, Refill: limits.PerMinute(1)})
		asked := mustTake(t, a, single(p, "k", 1))
		settled()
		told := mustTake(t, a, single(p, "k", 2))
		settled()
		fresh := mustTake(t, a, single(p, "k", 3))
		for i, d := range []limits.Decision{asked, told, fresh} {
			if err := a.Refund(context.Background(), time.Time{}, d); err != nil {
				t.Fatal(err)
			}
			left := []int64{5, 3, 0}[i]
			a.round(time.Now().Add(-time.Hour))
			if n := s.owed(p, "k"); n != left && i > 0 || n < 5-1 && i == 0 {
				t.Errorf("refund %d: %d are owed, want %d", i, n, left)
			}
		}
		if d := mustTake(t, a, single(p, "k", 10)); !d.Allowed || d.Source != limits.FromAsync {
			t.Errorf("all was given back, and %+v", d.Verdicts())
		}
	})
}

// TestWhoComesWhenItWasSaidIsServed, though the rate's own part is all that comes here until the next merge.
func TestWhoComesWhenItWasSaidIsServed(t *testing.T) {
	for _, cost := range []int64{1, 7, 50} {
		synctest.Test(t, func(t *testing.T) {
			s := newBooks()
			a := asynchronous(t, among{s, 5}, AsyncConfig{Every: every})
			p := async(t, "p", limits.LeakyBucket{Capacity: 50, Leak: limits.PerSecond(40)})
			mustTake(t, a, single(p, "k", 1))
			settled()
			for mustTake(t, a, single(p, "k", 1)).Allowed {
			}
			for i := range 20 {
				d := mustTake(t, a, single(p, "k", cost))
				if d.Allowed {
					t.Fatalf("round %d: allowed", i)
				}
				time.Sleep(d.At(0).RetryAfter)
				if d := mustTake(t, a, single(p, "k", cost)); !d.Allowed {
					t.Fatalf("round %d: it was early by %v", i, d.At(0).RetryAfter)
				}
				for mustTake(t, a, single(p, "k", 1)).Allowed {
				}
				time.Sleep(time.Duration(i) * 7 * time.Millisecond)
				for mustTake(t, a, single(p, "k", 1)).Allowed {
				}
			}
		})
	}
}

// TestWhatIsNotCountedHere: other rules, other choices, what is strict, and more balances than may be.
func TestWhatIsNotCountedHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := limits.TokenBucket{Capacity: 100, Refill: limits.PerSecond(1)}
		for name, c := range map[string]struct {
			cfg    AsyncConfig
			policy *limits.Policy
			here   bool
		}{
			"by choice":        {AsyncConfig{}, async(t, "p", bucket), true},
			"by default":       {AsyncConfig{Default: limits.SharedAsync}, named(t, "p", bucket), true},
			"exactly":          {AsyncConfig{Default: limits.SharedAsync}, named(t, "p", bucket, limits.Shared(limits.SharedExactly)), false},
			"by lease":         {AsyncConfig{Default: limits.SharedAsync}, named(t, "p", bucket, limits.Shared(limits.SharedByLease)), false},
			"nobody says":      {AsyncConfig{}, named(t, "p", bucket), false},
			"strict":           {AsyncConfig{Default: limits.SharedAsync}, async(t, "p", bucket, limits.Strict()), false},
			"a delay":          {AsyncConfig{}, async(t, "p", limits.Delay{Rule: bucket, MaxWait: time.Second}), false},
			"a queue":          {AsyncConfig{}, async(t, "p", limits.Delay{Rule: limits.LeakyBucket{Capacity: 9, Leak: limits.PerSecond(9)}, MaxWait: time.Second}), false},
			"full too soon":    {AsyncConfig{}, async(t, "p", limits.TokenBucket{Capacity: 9, Refill: limits.PerSecond(100)}), false},
			"full in time":     {AsyncConfig{}, async(t, "p", limits.TokenBucket{Capacity: 10, Refill: limits.PerSecond(100)}), true},
			"too many balance": {AsyncConfig{MaxKeys: 1}, async(t, "p", bucket), false},
		} {
			c.cfg.Every = every
			a := asynchronous(t, newBooks(), c.cfg)
			if c.cfg.MaxKeys == 1 {
				mustTake(t, a, single(c.policy, "first", 1))
			}
			mustTake(t, a, single(c.policy, "k", 1))
			settled()
			if d := mustTake(t, a, single(c.policy, "k", 1)); (d.Source == limits.FromAsync) != c.here {
				t.Errorf("%s: decided by %v", name, d.Source)
			}
		}
	})
}

// TestChargesThatTheStoreDecides though their balance is known here: shadows, two of one balance, and what is no charge at all.
func TestChargesThatTheStoreDecides(t *testing.T) {
	known(t, limits.TokenBucket{Capacity: 100, Refill: limits.PerHour(1)}, func(t *testing.T, s *books, a *Async, p *limits.Policy) {
		for name, charges := range map[string][]limits.Charge{
			"a shadow":          {{Policy: p, Key: "k", Cost: 1, Shadow: true}},
			"two of one":        {{Policy: p, Key: "k", Cost: 1}, {Policy: p, Key: "k", Cost: 1}},
			"less than nothing": {{Policy: p, Key: "k", Cost: -1}},
		} {
			asked := s.questions()
			if d, _ := a.Peek(context.Background(), time.Time{}, charges); d.Source == limits.FromAsync || s.questions() != asked+1 {
				t.Errorf("%s: decided by %v", name, d.Source)
			}
		}
		if d := mustTake(t, a, single(p, "k", 1)); d.Source != limits.FromAsync {
			t.Errorf("the balance is not known any more: by %v", d.Source)
		}
	})
}

// TestABalanceOfAnotherRuleIsAskedAbout: what a merge finds counted in a rule of before is taken over by the store.
func TestABalanceOfAnotherRuleIsAskedAbout(t *testing.T) {
	known(t, limits.TokenBucket{Capacity: 100, Refill: limits.PerHour(1)}, func(t *testing.T, s *books, a *Async, p *limits.Policy) {
		found, _ := a.views.Load(balanceName{"p", "k"})
		found.(*view).hear(&merging{policy: p, now: time.Now().UnixMicro()}, false, false, time.Now(), time.Second, 1)
		if d := mustTake(t, a, single(p, "k", 1)); d.Source != limits.FromRedis {
			t.Errorf("decided by %v, in a rule that the store does not count in", d.Source)
		}
		q := async(t, "p", limits.TokenBucket{Capacity: 50, Refill: limits.PerHour(1)})
		settled()
		if d := mustTake(t, a, single(q, "k", 1)); d.Source != limits.FromRedis {
			t.Errorf("decided by %v, in a rule that the store has not seen", d.Source)
		}
		settled()
		if d := mustTake(t, a, single(q, "k", 1)); d.Source != limits.FromAsync {
			t.Errorf("decided by %v, in a rule that was heard of", d.Source)
		}
		found.(*view).hear(&merging{policy: p, same: true, now: time.Now().UnixMicro()}, false, false, time.Now(), time.Second, 1)
		if d := mustTake(t, a, single(q, "k", 1)); d.Source != limits.FromRedis {
			t.Errorf("decided by %v, by what was heard of the rule before", d.Source)
		}
	})
}

// TestARefundOfWhatWasToldIsTheStores also where something else has not been told yet.
func TestARefundOfWhatWasToldIsTheStores(t *testing.T) {
	known(t, limits.TokenBucket{Capacity: 10, Refill: limits.PerHour(1)}, func(t *testing.T, s *books, a *Async, p *limits.Policy) {
		told := mustTake(t, a, single(p, "k", 2))
		settled()
		mustTake(t, a, single(p, "k", 3))
		if err := a.Refund(context.Background(), time.Time{}, told); err != nil {
			t.Fatal(err)
		}
		if n := s.owed(p, "k"); n != 1 {
			t.Errorf("%d are owed, want 1", n)
		}
	})
}

func TestAnAsyncThatCannotBe(t *testing.T) {
	f := newFake(t)
	if _, err := NewAsync(f, AsyncConfig{}); err == nil {
		t.Error("a store that cannot merge is accepted")
	}
	if _, err := NewAsync(nil, AsyncConfig{}); err == nil {
		t.Error("no store is accepted")
	}
	for i, cfg := range []AsyncConfig{{Default: 9}, {Every: -1}, {Every: time.Millisecond}, {Every: time.Minute}, {MaxKeys: -1}} {
		if _, err := NewAsync(newBooks(), cfg); err == nil {
			t.Errorf("%d: %+v is accepted", i, cfg)
		}
	}
}

func TestDecidingHereAllocatesNothing(t *testing.T) {
	a := asynchronous(t, newBooks(), AsyncConfig{Every: time.Second})
	p := async(t, "p", limits.TokenBucket{Capacity: 1_000_000_000, Refill: limits.PerSecond(1_000_000)})
	charges := single(p, "k", 1)
	mustTake(t, a, charges)
	a.round(time.Now().Add(-time.Hour))
	if n := testing.AllocsPerRun(100, func() {
		if d := mustTake(t, a, charges); d.Source != limits.FromAsync {
			t.Fatal(d.Source)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestWhatIsAdmittedWhileAMergeIsOnItsWay is no part of what that says, and counts all the same.
func TestWhatIsAdmittedWhileAMergeIsOnItsWay(t *testing.T) {
	known(t, limits.TokenBucket{Capacity: 10, Refill: limits.PerHour(1)}, func(t *testing.T, s *books, a *Async, p *limits.Policy) {
		s.delay(every / 2)
		mustTake(t, a, single(p, "k", 1))
		settled() // the next merge has been sent, and its answer is on its way
		mustTake(t, a, single(p, "k", 4))
		s.delay(0)
		time.Sleep(every / 2)
		synctest.Wait()
		if d := mustTake(t, a, single(p, "k", 0)); d.At(0).Remaining != 4 || d.Source != limits.FromAsync {
			t.Errorf("%d are left by %v, want 4", d.At(0).Remaining, d.Source)
		}
	})
}
