package storetest

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// bucketExample is the rule as one explains it to people.
func bucketExample(s limits.Store) error {
	c, p := newClient(s), policy("example", limits.TokenBucket{Capacity: 20, Refill: limits.PerSecond(5)})
	for i := range int64(20) {
		d := c.allowed(charge(p, "k", 1))
		if v := d.At(0); v.Remaining != 19-i {
			c.failf("remaining %d after %d of 20", v.Remaining, i+1)
		}
	}
	if d := c.refused(limits.OverLimit, charge(p, "k", 1)); d.At(0).RetryAfter != 200*time.Millisecond {
		c.failf("RetryAfter %v at 5/s, want 200ms", d.At(0).RetryAfter)
	}
	c.wait(time.Second)
	if n := c.drainedBy(p, "k", 1, 100); n != 5 {
		c.failf("%d pass one second after emptying, want 5", n)
	}
	c.wait(time.Hour)
	if n := c.drainedBy(p, "k", 1, 100); n != 20 {
		c.failf("%d pass after an idle hour, want 20", n)
	}
	return c.err
}

func refusalWritesNothing(s limits.Store) error {
	c, p := newClient(s), policy("refusal", limits.TokenBucket{Capacity: 10, Refill: limits.Rate{Amount: 1, Per: time.Hour}})
	c.allowed(charge(p, "k", 8))
	c.wait(time.Minute)
	before := c.peek(charge(p, "k", 5))
	for range 50 {
		c.refused(limits.OverLimit, charge(p, "k", 5))
		c.refused(limits.CostTooLarge, charge(p, "k", 11))
	}
	if err := differ(c.peek(charge(p, "k", 5)), before); err != nil {
		c.failf("after refusals: %v", err)
	}
	c.allowed(charge(p, "k", 2))
	// Nor does a refusal move the balance's clock: it would, if it wrote the time alone.
	c.wait(time.Minute)
	later := c.now
	c.wait(30 * time.Minute)
	c.refused(limits.OverLimit, charge(p, "k", 1))
	c.now = later
	if d := c.refused(limits.OverLimit, charge(p, "k", 1)); d.Len() == 1 && d.At(0).RetryAfter != 58*time.Minute {
		c.failf("RetryAfter %v after a refusal further on, want 58m", d.At(0).RetryAfter)
	}
	return c.err
}

func allOrNothing(s limits.Store) error {
	c := newClient(s)
	wide := policy("wide", limits.TokenBucket{Capacity: 100, Refill: limits.PerHour(1)})
	tight := policy("tight", limits.TokenBucket{Capacity: 1, Refill: limits.PerHour(1)})
	c.allowed(charge(tight, "k", 1))
	untouched := c.peek(charge(wide, "k", 0), charge(tight, "k", 0))
	all := []limits.Charge{charge(wide, "k", 1), charge(wide, "l", 1), charge(wide, "m", 1), charge(wide, "n", 1), charge(tight, "k", 1)}
	for range all {
		d := c.refused(limits.OverLimit, all...)
		for i := range d.Len() {
			v := d.At(i)
			if fits := v.Policy == wide; fits != (v.Reason == limits.Allowed) {
				c.failf("verdict %d of a refused decision says %v", i, v.Reason)
			}
		}
		all = append(all[1:], all[0]) // the one that refuses comes last, then before last, ... then first
	}
	if err := differ(c.peek(charge(wide, "k", 0), charge(tight, "k", 0)), untouched); err != nil {
		c.failf("a refused decision took something: %v", err)
	}
	for _, key := range []string{"k", "l", "m", "n"} {
		c.remaining(wide, key, 100)
	}
	c.allowed(charge(wide, "k", 1), charge(tight, "l", 1))
	c.remaining(wide, "k", 99)
	c.remaining(tight, "l", 0)
	if d := c.take(); !d.Allowed || d.Len() != 0 {
		c.failf("no charges at all: %s, want allowed", tell(d))
	}
	return c.err
}

func chargesAddUp(s limits.Store) error {
	c, p := newClient(s), policy("sum", limits.TokenBucket{Capacity: 10, Refill: limits.PerSecond(1)})
	c.allowed(charge(p, "k", 3), charge(p, "other", 1), charge(p, "k", 4))
	c.remaining(p, "k", 3)
	if d := c.refused(limits.OverLimit, charge(p, "k", 2), charge(p, "k", 2)); d.Len() == 2 && d.Binding().RetryAfter != time.Second {
		c.failf("RetryAfter %v for 2+2 with 3 left, want 1s", d.Binding().RetryAfter)
	}
	// Both are above what is left: the answer is when both fit, not when the larger one does.
	d := c.refused(limits.OverLimit, charge(p, "k", 5), charge(p, "k", 4))
	if d.Len() == 2 && d.Binding().RetryAfter != 6*time.Second {
		c.failf("RetryAfter %v for 5+4 with 3 left, want 6s", d.Binding().RetryAfter)
	}
	c.refused(limits.CostTooLarge, charge(p, "k", 6), charge(p, "k", 5))
	c.remaining(p, "k", 3)
	c.wait(6 * time.Second)
	c.allowed(charge(p, "k", 5), charge(p, "k", 4))
	c.remaining(p, "k", 0)
	return c.err
}

func bindingIsLongest(s limits.Store) error {
	c := newClient(s)
	quick := policy("quick", limits.TokenBucket{Capacity: 2, Refill: limits.PerSecond(1)})
	slow := policy("slow", limits.TokenBucket{Capacity: 4, Refill: limits.PerMinute(1)})
	c.allowed(charge(quick, "k", 2), charge(slow, "k", 4))
	for _, d := range []limits.Decision{
		c.refused(limits.OverLimit, charge(quick, "k", 1), charge(slow, "k", 1)),
		c.refused(limits.OverLimit, charge(slow, "k", 1), charge(quick, "k", 1)),
	} {
		if b := d.Binding(); b == nil || b.Policy != slow || b.RetryAfter != time.Minute {
			c.failf("binding is not the slow policy after 1m: %s", tell(d))
		}
	}
	if d := c.refused(limits.CostTooLarge, charge(slow, "k", 1), charge(quick, "k", 3)); d.Len() == 2 && d.Binding().Policy != quick {
		c.failf("binding is not the policy under which the charge never fits: %s", tell(d))
	}
	return c.err
}

func neverFits(s limits.Store) error {
	c := newClient(s)
	p := policy("ten", limits.TokenBucket{Capacity: 10, Refill: limits.PerSecond(1)})
	closed := policy("closed", limits.TokenBucket{Capacity: 0, Refill: limits.PerSecond(1)})
	shut := policy("shut", limits.Delay{Rule: limits.LeakyBucket{Capacity: 0, Leak: limits.PerSecond(1)}})
	hopeless := []limits.Charge{
		charge(p, "k", 11), charge(p, "k", 20), charge(p, "k", 1<<53), charge(p, "k", math.MaxInt64-1), charge(p, "k", math.MaxInt64),
		charge(closed, "k", 1), charge(closed, "k", math.MaxInt64), charge(shut, "k", 1),
	}
	for _, h := range hopeless {
		d := c.refused(limits.CostTooLarge, h)
		if v := d.Binding(); v != nil && (v.RetryAfter != 0 || v.Delay != 0) {
			c.failf("%d of %d can never fit, yet %s", h.Cost, h.Policy.Quota(), tell(d))
		}
		c.refused(limits.CostTooLarge, h, h)
	}
	c.remaining(p, "k", 10)
	c.remaining(closed, "k", 0)
	c.allowed(charge(p, "k", 0), charge(closed, "k", 0)) // looking is always free
	c.allowed(charge(p, "k", 10))
	c.allowed(charge(p, "k", 0))
	c.refused(limits.CostTooLarge, charge(p, "k", math.MaxInt64))
	c.refused(limits.OverLimit, charge(p, "k", 10))
	return c.err
}

func negativeCost(s limits.Store) error {
	c, p := newClient(s), policy("negative", limits.TokenBucket{Capacity: 10, Refill: limits.PerHour(1)})
	c.allowed(charge(p, "k", 10))
	for _, cost := range []int64{-1, -100, math.MinInt64} {
		for _, charges := range [][]limits.Charge{{charge(p, "k", cost)}, {charge(p, "l", 1), charge(p, "k", cost)}} {
			if _, err := s.Take(context.Background(), c.now, charges); err == nil {
				c.failf("no error from Take for %s", describe(charges))
			}
			if _, err := s.Peek(context.Background(), c.now, charges); err == nil {
				c.failf("no error from Peek for %s", describe(charges))
			}
		}
	}
	if _, err := s.Take(context.Background(), c.now, []limits.Charge{{Key: "k", Cost: 1}}); err == nil {
		c.failf("no error for a charge without a policy")
	}
	c.remaining(p, "k", 0)
	c.remaining(p, "l", 10)
	return c.err
}

func doneContext(s limits.Store) error {
	c, p := newClient(s), policy("done", limits.TokenBucket{Capacity: 10, Refill: limits.PerHour(1)})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	d, err := s.Take(ctx, c.now, []limits.Charge{charge(p, "k", 3)})
	if !errors.Is(err, context.Canceled) || d.Allowed {
		c.failf("take with a done context: %v, allowed %v; want context.Canceled", err, d.Allowed)
	}
	c.remaining(p, "k", 10)
	return c.err
}

func peekChangesNothing(s limits.Store) error {
	c, p := newClient(s), policy("peek", limits.TokenBucket{Capacity: 10, Refill: limits.Rate{Amount: 10, Per: 13 * time.Second}})
	q := policy("peek a turn", limits.Delay{Rule: limits.LeakyBucket{Capacity: 2, Leak: limits.PerSecond(3)}})
	for _, cost := range []int64{0, 1, 4, 5, 3, 11} {
		charges := []limits.Charge{charge(p, "k", cost), charge(q, "k", min(cost, 1)), charge(p, "l", 1)}
		foreseen := c.peek(charges...)
		c.peek(charges...)
		if err := differ(c.take(charges...), foreseen); err != nil {
			c.failf("peek foresaw something else than take of %s did: %v", describe(charges), err)
		}
		c.wait(377 * time.Millisecond)
	}
	return c.err
}
