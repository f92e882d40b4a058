package limits_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// The tests of this file are named after kinds of defects that rate limiters have had; CONTRIBUTING.md lists them all.

// tenPerSecond is every kind of rule with ten a second, and how much of it may come at once.
var tenPerSecond = map[string]limits.Rule{
	"token bucket":   limits.TokenBucket{Capacity: 10, Refill: limits.PerSecond(10)},
	"leaky bucket":   limits.LeakyBucket{Capacity: 10, Leak: limits.PerSecond(10)},
	"burst":          limits.Burst{Soft: limits.PerSecond(10), Hard: limits.PerSecond(10)},
	"fixed window":   limits.FixedWindow{Quota: limits.PerSecond(10)},
	"sliding window": limits.SlidingWindow{Quota: limits.PerSecond(10)},
	"sliding log":    limits.SlidingLog{Quota: limits.PerSecond(10)},
}

func eachRule(t *testing.T, test func(t *testing.T, store limits.Store, p *limits.Policy)) {
	for name, rule := range tenPerSecond {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test(t, newMemory(t, limits.MemoryConfig{}), must(limits.NewPolicy("p", rule)))
			})
		})
	}
}

// passed says how many of n that come now are allowed.
func passed(t *testing.T, store limits.Store, p *limits.Policy, n int) (count int) {
	t.Helper()
	for range n {
		d, err := store.Take(t.Context(), time.Now(), []limits.Charge{{Policy: p, Key: "k", Cost: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed {
			count++
		}
	}
	return count
}

// idle-then-unlimited: an idle time saves no more than a capacity (uber-go/ratelimit#119).
func TestKindIdleThenUnlimited(t *testing.T) {
	eachRule(t, func(t *testing.T, store limits.Store, p *limits.Policy) {
		passed(t, store, p, 1)
		for _, idle := range []time.Duration{4 * time.Second, time.Hour, 300 * 24 * time.Hour} {
			time.Sleep(idle)
			if n := passed(t, store, p, 100); n != 10 {
				t.Errorf("after %v of rest %d pass at once, want 10", idle, n)
			}
		}
	})
}

// config-ignored: the rate is the one that was asked for, whoever asks how often (projectdiscovery/ratelimit#167).
func TestKindConfigIgnored(t *testing.T) {
	eachRule(t, func(t *testing.T, store limits.Store, p *limits.Policy) {
		passed(t, store, p, 100)
		n := 0
		for range 20_000 {
			time.Sleep(5 * time.Millisecond)
			n += passed(t, store, p, 1)
		}
		least := 990
		if p.Rule() == tenPerSecond["sliding window"] {
			least = 880 // its estimate, in whole requests, is on the safe side of a quota this small
		}
		if n < least || n > 1010 {
			t.Errorf("%d pass in 100 s, want 1000", n)
		}
	})
}

// window-stale: what was used two windows ago weighs nothing, and what is left counts the request itself
// (AliRizaAynaci/gorl#14).
func TestKindWindowStale(t *testing.T) {
	eachRule(t, func(t *testing.T, store limits.Store, p *limits.Policy) {
		passed(t, store, p, 10)
		time.Sleep(2500 * time.Millisecond)
		for left := int64(9); left >= 0; left-- {
			d := must(store.Take(t.Context(), time.Now(), []limits.Charge{{Policy: p, Key: "k", Cost: 1}}))
			if !d.Allowed || d.At(0).Remaining != left {
				t.Errorf("allowed %v with %d left, want %d left", d.Allowed, d.At(0).Remaining, left)
			}
		}
		if n := passed(t, store, p, 1); n != 0 {
			t.Error("an eleventh passes")
		}
	})
}

// cost-over-burst: what can never fit is refused in that instant and is waited for by nobody (golang/go#16854).
func TestKindCostOverBurst(t *testing.T) {
	for name, rule := range tenPerSecond {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				switch rule.(type) {
				case limits.TokenBucket, limits.LeakyBucket:
					rule = limits.Delay{Rule: rule, MaxWait: time.Hour}
				}
				store, p := newMemory(t, limits.MemoryConfig{}), must(limits.NewPolicy("p", rule))
				for _, cost := range []int64{1 << 20, 1 << 53} {
					start := time.Now()
					d, err := limits.Wait(t.Context(), store, []limits.Charge{{Policy: p, Key: "k", Cost: cost}})
					if err != nil || d.Allowed || d.Binding().Reason != limits.CostTooLarge || d.Binding().RetryAfter != 0 {
						t.Errorf("a cost of %d: %+v, %v", cost, d, err)
					}
					if waited := time.Since(start); waited != 0 {
						t.Errorf("a cost of %d waits for %v", cost, waited)
					}
				}
				if n := passed(t, store, p, 1); n != 1 {
					t.Error("what was refused has used something up")
				}
			})
		})
	}
}

// clock-overflow: a time before all times, or behind them, takes nothing away and gives nothing (sethvargo/go-limiter#57).
func TestKindClockOverflow(t *testing.T) {
	eachRule(t, func(t *testing.T, store limits.Store, p *limits.Policy) {
		passed(t, store, p, 100)
		now := time.Now()
		for _, at := range []time.Time{time.Unix(-1<<40, 0), time.Unix(0, 0), now.Add(-time.Hour), now} {
			d, err := store.Take(t.Context(), at, []limits.Charge{{Policy: p, Key: "k", Cost: 1}})
			if err == nil && d.Allowed {
				t.Errorf("at %v one more passes", at)
			}
		}
	})
}

// key-growth: clients that come once each are not remembered for ever, and who is limited is not forgotten for them
// (didip/tollbooth#30).
func TestKindKeyGrowth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound = 1000
		store := newMemory(t, limits.MemoryConfig{MaxKeys: bound})
		p := must(limits.NewPolicy("p", limits.TokenBucket{Capacity: 2, Refill: limits.PerSecond(1)}))
		hourly := must(limits.NewPolicy("hourly", limits.TokenBucket{Capacity: 1, Refill: limits.PerHour(1)}))
		passed(t, store, hourly, 1)
		most := int64(0)
		for i := range 100_000 {
			if i%5000 == 0 {
				time.Sleep(time.Second)
				most = max(most, int64(store.Stats().Keys))
			}
			must(store.Take(t.Context(), time.Now(), []limits.Charge{{Policy: p, Key: fmt.Sprint("client-", i), Cost: 1}}))
		}
		if most > bound {
			t.Errorf("%d keys are kept, the bound is %d", most, bound)
		}
		if n := passed(t, store, hourly, 1); n != 0 {
			t.Error("the table was flooded, and who had used up its quota has it back")
		}
	})
}
