package redisstore

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// TestRegionsHaveTheWholeTogether: parts add up to the policy.
func TestRegionsHaveTheWholeTogether(t *testing.T) {
	weights := map[string]int64{"a": 3, "b": 5, "c": 7}
	for _, rule := range []limits.Rule{
		limits.TokenBucket{Capacity: 101, Refill: limits.PerSecond(7)},
		limits.LeakyBucket{Capacity: 1, Leak: limits.PerMinute(1)},
		limits.FixedWindow{Quota: limits.PerHour(100)},
		limits.SlidingLog{Quota: limits.PerHour(17)},
		limits.SlidingWindow{Quota: limits.PerHour(101)},
		limits.Delay{Rule: limits.LeakyBucket{Capacity: 50, Leak: limits.PerSecond(9)}, MaxWait: time.Second},
		limits.Delay{Rule: limits.TokenBucket{Capacity: 52, Refill: limits.PerSecond(9)}, MaxWait: time.Second},
		limits.Burst{Soft: limits.PerSecond(30), Hard: limits.PerSecond(45), Total: limits.PerMinute(150)},
	} {
		p := named(t, "p", rule)
		var pool *limits.Policy
		var all []*limits.Policy
		for name := range weights {
			parts, err := RegionsConfig{name, weights}.divide(p)
			if err != nil {
				t.Fatal(err)
			}
			all, pool = append(all, parts.own), parts.pool
		}
		if pool != nil {
			all = append(all, pool)
		}
		held, rate := int64(0), 0.0
		for _, part := range all {
			held += part.Quota()
			rate += perNano(part)
		}
		if held != p.Quota() {
			t.Errorf("%v: the parts hold %d", rule, held)
		}
		if want := perNano(p); rate < want*0.999999 || rate > want*1.000001 {
			t.Errorf("%v: the parts bring %v a ns, want %v", rule, rate, want)
		}
	}
	burst := limits.Burst{Soft: limits.PerSecond(4), Hard: limits.PerSecond(20)} // a fifth of 4 is none
	if (RegionsConfig{"a", weights}).Check(named(t, "p", limits.FixedWindow{Quota: limits.PerDay(2)})) == nil {
		t.Error("a region is left with nothing of a window")
	}
	if (RegionsConfig{"a", weights}).Check(named(t, "p", burst)) == nil || (RegionsConfig{"a", weights}).Check(named(t, "p", burst, limits.Strict())) != nil {
		t.Error("a burst of which nothing is left is divided, or not left to home where it is strict")
	}
}

// TestPartsOfRegionsKeepWhatThePolicyChose, but nobody has anything of home while that does not answer, and all of it is lent.
func TestPartsOfRegionsKeepWhatThePolicyChose(t *testing.T) {
	p := named(t, "p", limits.TokenBucket{Capacity: 60, Refill: limits.PerSecond(7)}, limits.WhenStoreFails(limits.Open), limits.Shared(limits.SharedAsync))
	parts, err := RegionsConfig{"eu", euUs}.divide(p)
	if err != nil {
		t.Fatal(err)
	}
	if own := parts.own; own.Name() != "p" || own.OnFailure() != limits.Open || own.Sharing() != limits.SharedAsync {
		t.Errorf("the region's own: %v, %v", own.OnFailure(), own.Sharing())
	}
	if pool := parts.pool; pool.Name() != "p" || pool.OnFailure() != limits.Closed || pool.Sharing() != limits.SharedByLease {
		t.Errorf("what is lent: %v, %v", pool.OnFailure(), pool.Sharing())
	}
}

// perNano is the rate of a policy in tokens, or of a burst above which there is debt; 0 where it is said by the quota.
func perNano(p *limits.Policy) float64 {
	switch r := p.Rule().(type) {
	case limits.Delay:
		switch r := r.Rule.(type) {
		case limits.TokenBucket:
			return float64(r.Refill.Amount) / float64(r.Refill.Per)
		case limits.LeakyBucket:
			return float64(r.Leak.Amount) / float64(r.Leak.Per)
		}
	case limits.Burst:
		return float64(r.Soft.Amount)/float64(r.Soft.Per) + float64(r.Total.Amount)/float64(r.Total.Per)
	}
	m, _ := p.Meter()
	if m.Drain == 0 {
		return 0
	}
	return float64(m.Drain) / float64(m.Unit) / float64(m.Tick)
}

func TestRegionsThatCannotBe(t *testing.T) {
	f := newFake(t)
	for i, c := range []RegionsConfig{{}, {"eu", nil}, {"eu", map[string]int64{"eu": 1}}, {"asia", euUs}, {"eu", map[string]int64{"eu": 0, "us": 1}}, {"eu", map[string]int64{"eu": 999, "us": 2}}} {
		if _, err := NewRegions(f, f, c); err == nil {
			t.Errorf("%d: %+v is accepted", i, c)
		}
	}
	if _, err := NewRegions(nil, f, RegionsConfig{"eu", euUs}); err == nil {
		t.Error("no store is accepted")
	}
}
