package limits_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// Decide answers as Memory does, and leaves accounts as Memory leaves balances.
func TestDecideAnswersAsMemoryDoes(t *testing.T) {
	rules := []limits.Rule{
		limits.TokenBucket{Capacity: 8, Refill: limits.PerSecond(3)},
		limits.Delay{Rule: limits.LeakyBucket{Capacity: 5, Leak: limits.PerSecond(7)}},
		limits.FixedWindow{Quota: limits.PerSecond(9)},
		limits.SlidingWindow{Quota: limits.PerSecond(9)},
		limits.SlidingLog{Quota: limits.PerSecond(9)},
		limits.Burst{Soft: limits.PerSecond(3), Hard: limits.PerSecond(9)},
		limits.Burst{Soft: limits.PerSecond(3), Hard: limits.PerSecond(9), Total: limits.Rate{Amount: 20, Per: 5 * time.Second}},
	}
	policies := make([]*limits.Policy, len(rules))
	accounts := make([]limits.Account, len(rules))
	for i, r := range rules {
		policies[i] = mustPolicy(t, fmt.Sprint("rule ", i), r)
		accounts[i] = policies[i].Account(0, 0, 0, nil)
	}
	m := newMemory(t, limits.MemoryConfig{})
	r := rand.New(rand.NewPCG(1, 2))
	now := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
	for step := range 5000 {
		now = now.Add(time.Duration(r.Int64N(int64(200 * time.Millisecond)))).Truncate(time.Microsecond)
		charges := make([]limits.Charge, 1+r.IntN(6))
		of := make([]int, len(charges))
		for i := range charges {
			of[i] = r.IntN(len(rules))
			charges[i] = limits.Charge{Policy: policies[of[i]], Key: "k", Cost: r.Int64N(5), Shadow: r.IntN(5) == 0}
		}
		effect, ask := limits.Take, m.Take
		if r.IntN(4) == 0 {
			effect, ask = limits.Look, m.Peek
		}
		want, err := ask(context.Background(), now, charges)
		if err != nil {
			t.Fatal(err)
		}
		var refused limits.Decision
		limits.Decide(now.UnixMicro(), charges, accounts, of, limits.Refuse, &refused)
		var got limits.Decision
		limits.Decide(now.UnixMicro(), charges, accounts, of, effect, &got)
		if got.Allowed != want.Allowed || got.Len() != want.Len() || refused.Allowed {
			t.Fatalf("step %d: allowed %v and, refused, %v; want %v and false", step, got.Allowed, refused.Allowed, want.Allowed)
		}
		for i, p := range policies { // what a rule comes to it is taken at its word for
			owed, last, since := accounts[i].Numbers()
			same := p.Account(owed, last, since, nil)
			if o, l, s := same.Numbers(); o != owed || l != last || s != since {
				t.Fatalf("step %d: %v makes %d, %d, %d of %d, %d, %d", step, p, o, l, s, owed, last, since)
			}
		}
		for i := range want.Len() {
			if *got.At(i) != *want.At(i) {
				t.Fatalf("step %d, verdict %d\ngot  %+v\nwant %+v", step, i, *got.At(i), *want.At(i))
			}
			if v := refused.At(i); v.Taken != limits.NotTaken || v.Delay != 0 || v.OverSoft {
				t.Fatalf("step %d, verdict %d of a refusal: %+v", step, i, *v)
			}
		}
	}
}

// Whatever numbers somebody has written where balances are kept: nothing panics, nothing is negative, and no more is left than the rule has.
func TestNumbersThatNoRuleComesToAreBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	any := func() int64 {
		switch r.IntN(4) {
		case 0:
			return r.Int64N(30)
		case 1:
			return limits.Exact - r.Int64N(30)
		}
		return r.Int64N(1 << r.IntN(54))
	}
	for _, rule := range []limits.Rule{
		limits.TokenBucket{Capacity: 8, Refill: limits.PerSecond(3)},
		limits.FixedWindow{Quota: limits.PerSecond(9)}, limits.FixedWindow{Quota: limits.PerSecond(0)},
		limits.SlidingWindow{Quota: limits.PerSecond(9)}, limits.SlidingWindow{Quota: limits.PerDay(99_999)}, limits.SlidingWindow{Quota: limits.PerSecond(0)},
		limits.SlidingLog{Quota: limits.PerSecond(9)},
		limits.Burst{Soft: limits.PerSecond(3), Hard: limits.PerSecond(9)}, limits.Burst{Soft: limits.PerDay(2), Hard: limits.PerDay(10)},
		limits.Burst{Soft: limits.PerSecond(0), Hard: limits.PerSecond(0)},
		limits.Burst{Soft: limits.PerSecond(3), Hard: limits.PerSecond(9), Total: limits.Rate{Amount: 20, Per: 5 * time.Second}},
	} {
		p := mustPolicy(t, "p", rule)
		for range 20_000 {
			now := any()
			var past []limits.Passed
			for range r.IntN(4) {
				past = append(past, limits.Passed{At: any(), Amount: any()})
			}
			owed, last, since := any(), any(), any()
			accounts := []limits.Account{p.Account(owed, last, since, past)}
			charge := []limits.Charge{{Policy: p, Key: "k", Cost: r.Int64N(12)}}
			for _, effect := range []limits.Effect{limits.Look, limits.Take, limits.Refuse} {
				var d limits.Decision
				limits.Decide(now, charge, accounts, []int{0}, effect, &d)
				v := d.At(0)
				if v.Remaining < 0 || v.Remaining > p.Quota() || v.RetryAfter < 0 || v.NextAfter < 0 || v.ResetAfter < 0 || d.Allowed && v.Cost > p.Quota() {
					t.Fatalf("%v with %d, %d, %d, %v at %d: %+v", rule, owed, last, since, past, now, *v)
				}
			}
		}
	}
}

func mustPolicy(t *testing.T, name string, r limits.Rule, options ...limits.Option) *limits.Policy {
	t.Helper()
	p, err := limits.NewPolicy(name, r, options...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A store elsewhere keeps balances as numbers and lets Decide say what they mean.
func ExampleDecide() {
	p, err := limits.NewPolicy("per-client", limits.TokenBucket{Capacity: 3, Refill: limits.PerSecond(1)})
	if err != nil {
		panic(err)
	}
	const now = 1_775_000_000_000_000 // µs
	unit := p.Numbers().Meter.Unit    // what a cost of 1 owes
	half := p.Account(unit*3/2, now, now-5_000_000, nil)
	var d limits.Decision
	limits.Decide(now, []limits.Charge{{Policy: p, Key: "ann", Cost: 2}}, []limits.Account{half}, []int{0}, limits.Take, &d)
	fmt.Println(d.Allowed, d.At(0).Remaining, d.At(0).RetryAfter)
	// Output: false 1 500ms
}
