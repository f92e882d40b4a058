package storetest

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/spillway-go/spillway/limits"
)

func refundIsExact(s limits.Store) error {
	c, p := newClient(s), policy("refund", limits.TokenBucket{Capacity: 30, Refill: limits.Rate{Amount: 10, Per: 13 * time.Second}})
	c.allowed(charge(p, "k", 20))
	cancelled := c.allowed(charge(p, "k", 10))
	c.refund(cancelled)
	c.allowed(charge(p, "k", 10))
	c.remaining(p, "k", 0)

	// In any order, at any time, with fractions about.
	var held []limits.Decision
	for range 10 {
		held = append(held, c.allowed(charge(p, "l", 3)))
		c.wait(time.Millisecond)
	}
	before := c.look(p, "l", 30).RetryAfter
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(9) {
		c.refund(held[i])
	}
	after := c.look(p, "l", 30).RetryAfter
	if got, want := before-after, 27*1300*time.Millisecond; got != want {
		c.failf("refunds of 27 tokens bring 30 forward by %v, want %v", got, want)
	}

	// Several charges, one of them twice on the same balance, more than fit inline.
	q := policy("refund five", limits.TokenBucket{Capacity: 30, Refill: limits.PerHour(1)})
	d := c.allowed(charge(q, "a", 1), charge(q, "b", 2), charge(q, "c", 3), charge(q, "d", 4), charge(q, "a", 5))
	c.allowed(charge(q, "a", 1))
	c.refund(d)
	for key, want := range map[string]int64{"a": 29, "b": 30, "c": 30, "d": 30} {
		c.remaining(q, key, want)
	}
	return c.err
}

func refundNeverMints(s limits.Store) error {
	c, p := newClient(s), policy("refund mint", limits.TokenBucket{Capacity: 10, Refill: limits.PerSecond(1)})
	c.allowed(charge(p, "k", 4))
	for _, d := range []limits.Decision{
		{},
		c.peek(charge(p, "k", 3)),
		c.refused(limits.OverLimit, charge(p, "k", 8)),
		c.refused(limits.CostTooLarge, charge(p, "k", 11)),
		c.take(charge(p, "k", 0)),
	} {
		c.refund(d)
		c.remaining(p, "k", 6)
	}

	// Time has already given it back: what is owed now is somebody else's.
	early := c.allowed(charge(p, "k", 6))
	c.wait(10 * time.Second)
	c.allowed(charge(p, "k", 5))
	c.refund(early)
	c.remaining(p, "k", 5)

	// Not full for one moment, so time has given back nothing that counts.
	one := c.allowed(charge(p, "l", 2))
	c.wait(time.Second)
	two := c.allowed(charge(p, "l", 8))
	c.wait(8 * time.Second)
	c.refund(one)
	c.remaining(p, "l", 10)
	c.wait(time.Millisecond)
	c.allowed(charge(p, "l", 10))
	c.refund(two) // full since: nothing is left to give back
	c.remaining(p, "l", 0)

	d := c.allowed(charge(p, "gone", 3))
	c.wait(time.Hour)
	c.refund(d)
	c.remaining(p, "gone", 10)

	ctx, cancel := context.WithCancel(context.Background())
	d = c.allowed(charge(p, "left", 3))
	cancel()
	if err := s.Refund(ctx, c.now, d); err == nil { // a store may fail here, but not say that it worked
		c.remaining(p, "left", 10)
	}
	return c.err
}
