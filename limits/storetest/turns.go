package storetest

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/spillway-go/spillway/limits"
)

func turnsAreExact(s limits.Store) error {
	c := newClient(s)
	queueTurns(c)
	bucketTurns(c)
	spacedTurns(c)
	concurrentTurns(c)
	return c.err
}

// turn takes and says so if the turn is not after delay.
func (c *client) turn(delay time.Duration, charges ...limits.Charge) limits.Decision {
	d := c.allowed(charges...)
	if got := d.Delay(); got != delay {
		c.failf("turn of %s after %v, want %v", describe(charges), got, delay)
	}
	return d
}

func queueTurns(c *client) {
	p := policy("queue", limits.Delay{Rule: limits.LeakyBucket{Capacity: 40, Leak: limits.PerSecond(20)}})
	c.remaining(p, "k", 40)
	for k := range 41 { // one starts, 40 wait
		c.turn(time.Duration(k)*50*time.Millisecond, charge(p, "k", 1))
	}
	c.remaining(p, "k", 0)
	full := c.refused(limits.OverLimit, charge(p, "k", 1))
	if full.Len() == 1 && full.At(0).RetryAfter != 50*time.Millisecond {
		c.failf("RetryAfter %v of a full queue, want 50ms", full.At(0).RetryAfter)
	}
	c.wait(50*time.Millisecond - time.Microsecond)
	c.refused(limits.OverLimit, charge(p, "k", 1))
	c.wait(time.Microsecond)
	last := c.turn(2*time.Second, charge(p, "k", 1))
	c.refused(limits.OverLimit, charge(p, "k", 1))
	c.refund(last) // gives its place to the next who comes
	c.turn(2*time.Second, charge(p, "k", 1))

	c.wait(time.Minute)
	c.turn(0, charge(p, "k", 5)) // a heavy one holds up who is behind it
	c.turn(250*time.Millisecond, charge(p, "k", 1))
	c.turn(300*time.Millisecond, charge(p, "k", 40))
	c.refused(limits.OverLimit, charge(p, "k", 1)) // 46 ahead
	c.refused(limits.CostTooLarge, charge(p, "k", 41))

	// The wait may bind before the count does.
	short := policy("short", limits.Delay{Rule: limits.LeakyBucket{Capacity: 40, Leak: limits.PerSecond(20)}, MaxWait: 100 * time.Millisecond})
	for k := range 3 {
		c.turn(time.Duration(k)*50*time.Millisecond, charge(short, "k", 1))
	}
	c.refused(limits.OverLimit, charge(short, "k", 1))

	// A turn that another policy denies is no turn.
	closed := policy("closed door", limits.TokenBucket{Capacity: 1, Refill: limits.PerHour(1)})
	c.turn(0, charge(p, "m", 1), charge(closed, "m", 1))
	if d := c.refused(limits.OverLimit, charge(p, "m", 1), charge(closed, "m", 1)); d.Delay() != 0 {
		c.failf("a refused decision gives a turn after %v", d.Delay())
	}
	c.turn(50*time.Millisecond, charge(p, "m", 1))
}

func bucketTurns(c *client) {
	p := policy("patient", limits.Delay{Rule: limits.TokenBucket{Capacity: 3, Refill: limits.PerSecond(1)}, MaxWait: 2 * time.Second})
	for _, delay := range []time.Duration{0, 0, 0, time.Second, 2 * time.Second} {
		c.turn(delay, charge(p, "k", 1))
	}
	if d := c.refused(limits.OverLimit, charge(p, "k", 1)); d.Len() == 1 && d.At(0).RetryAfter != time.Second {
		c.failf("RetryAfter %v, want 1s: then the wait is 2s", d.At(0).RetryAfter)
	}
	c.wait(time.Second)
	c.turn(2*time.Second, charge(p, "k", 1))
	c.wait(time.Hour)
	c.turn(0, charge(p, "k", 2))
	c.turn(2*time.Second, charge(p, "k", 3)) // two more than the tokens cover

	// Waiters who give up leave nothing behind.
	q := policy("given up", limits.Delay{Rule: limits.TokenBucket{Capacity: 1, Refill: limits.PerSecond(1)}, MaxWait: time.Minute})
	c.turn(0, charge(q, "k", 1))
	var waiting []limits.Decision
	for i := range 5 {
		waiting = append(waiting, c.turn(time.Duration(i+1)*time.Second, charge(q, "k", 1)))
	}
	c.wait(time.Millisecond)
	for _, d := range waiting {
		c.refund(d)
	}
	c.turn(999*time.Millisecond, charge(q, "k", 1))
}

// spacedTurns lets charges arrive at random: they start in order, never before they came and never closer than the rate.
func spacedTurns(c *client) {
	leak := limits.Rate{Amount: 7, Per: time.Second}
	p := policy("spaced", limits.Delay{Rule: limits.LeakyBucket{Capacity: 12, Leak: leak}, MaxWait: time.Hour})
	r := rand.New(rand.NewPCG(7, 7))
	clear := c.now // when the queue is clear of all who came before
	for range 500 {
		cost := 1 + r.Int64N(3)
		d := c.take(charge(p, "k", cost))
		if d.Allowed {
			begin := c.now.Add(d.Delay())
			if begin.Before(clear.Add(-time.Microsecond)) || d.Delay() > 0 && begin.After(clear.Add(2*time.Microsecond)) {
				c.failf("starts at %v, want %v", begin.Sub(start), clear.Sub(start))
			}
			if c.now.After(clear) {
				clear = c.now
			}
			clear = clear.Add(time.Duration(cost) * time.Second / 7)
		}
		c.wait(time.Duration(r.Int64N(int64(600 * time.Millisecond))).Truncate(time.Microsecond))
		if c.now.Sub(clear) > 0 {
			clear = c.now // idle: the rounding of the loop above must not add up
		}
	}
}

// concurrentTurns lets all arrive at once from many goroutines: each turn is given exactly once.
func concurrentTurns(c *client) {
	p := policy("concurrent", limits.Delay{Rule: limits.LeakyBucket{Capacity: 100, Leak: limits.PerSecond(100)}})
	var mu sync.Mutex
	var delays []time.Duration
	gather(100, func(int) {
		w := *c
		d := w.allowed(charge(p, "k", 1))
		mu.Lock()
		defer mu.Unlock()
		delays = append(delays, d.Delay())
		if w.err != nil {
			c.failf("%v", w.err)
		}
	})
	slices.Sort(delays)
	for i, d := range delays {
		if want := time.Duration(i) * 10 * time.Millisecond; d != want {
			c.failf("turn %d of simultaneous charges is after %v, want %v", i, d, want)
			return
		}
	}
}
