package storetest

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// clockSteps gives one balance times that jump, as they do when the wall clock is set and, by less, when callers read the
// clock before they wait for a lock.
func clockSteps(s limits.Store) error {
	c, p := newClient(s), policy("clock", limits.TokenBucket{Capacity: 2, Refill: limits.PerSecond(1000)})
	t0, passed := c.now, 0
	for i := range 10_000 {
		c.now = t0.Add(time.Duration(i%2) * 10 * time.Millisecond)
		if c.take(charge(p, "alternating", 1)).Allowed {
			passed++
		}
	}
	if passed > 12 {
		c.failf("%d of 10000 pass while time alternates within 10ms, want at most 12", passed)
	}

	var raced atomic.Int64
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			w := newClient(s)
			for i := range 250 {
				w.now = t0.Add(time.Duration((i+g)%2) * 10 * time.Millisecond)
				if w.take(charge(p, "raced", 1)).Allowed {
					raced.Add(1)
				}
			}
		})
	}
	all.Wait()
	if n := raced.Load(); n > 12 {
		c.failf("%d of 2000 pass from 8 goroutines whose times alternate within 10ms, want at most 12", n)
	}

	// Back by an hour and forward again.
	q := policy("clock hour", limits.TokenBucket{Capacity: 5, Refill: limits.PerMinute(1)})
	c.now = t0
	c.allowed(charge(q, "k", 5))
	c.wait(-time.Hour)
	d := c.refused(limits.OverLimit, charge(q, "k", 1))
	if d.Len() == 1 && d.At(0).RetryAfter != time.Hour+time.Minute {
		c.failf("RetryAfter %v an hour back, want 1h1m: it is counted from the caller's now", d.At(0).RetryAfter)
	}
	c.wait(time.Hour)
	c.refused(limits.OverLimit, charge(q, "k", 1))
	c.wait(time.Minute)
	c.allowed(charge(q, "k", 1))

	// Forward by an hour and back: full once, not twice.
	c.wait(time.Hour)
	c.allowed(charge(q, "k", 5))
	c.wait(-time.Hour)
	c.refused(limits.OverLimit, charge(q, "k", 1))
	c.wait(time.Hour)
	c.refused(limits.OverLimit, charge(q, "k", 1))
	c.wait(24 * time.Hour)
	if n := c.drainedBy(q, "k", 1, 100); n != 5 {
		c.failf("%d pass after an idle day, want the capacity of 5", n)
	}
	return c.err
}

// waitsAreExact tries every promised time: then it holds, and 1 µs earlier it does not.
func waitsAreExact(s limits.Store) error {
	c, r := newClient(s), rand.New(rand.NewPCG(3, 5))
	for _, rule := range rules {
		p := policy("exact waits "+rule.String(), rule)
		for n := range 40 {
			c.wait(time.Duration(r.Int64N(int64(time.Minute)))) // with ns about
			key := string(rune('a' + n))
			for range r.IntN(4) {
				c.take(charge(p, key, 1+r.Int64N(max(p.Quota(), 1))))
				c.wait(time.Duration(r.Int64N(int64(p.Window())/4 + 2)))
			}
			c.promises(p, key, 1+r.Int64N(max(p.Quota(), 1)))
		}
	}
	return c.err
}

// promises checks the times in one verdict.
func (c *client) promises(p *limits.Policy, key string, cost int64) {
	v, now := c.look(p, key, cost), c.look(p, key, 0)
	asked := c.now
	at := func(after time.Duration, cost int64) limits.Verdict {
		c.now = asked.Add(after)
		return c.look(p, key, cost)
	}
	if w := v.RetryAfter; w > 0 {
		if g := at(w, cost); g.Reason != limits.Allowed {
			c.failf("%v: refused after waiting RetryAfter %v", p, w)
		}
		if g := at(w-time.Microsecond, cost); g.Reason != limits.OverLimit {
			c.failf("%v: accepted 1µs before RetryAfter %v", p, w)
		}
	} else if v.Reason == limits.OverLimit {
		c.failf("%v: no RetryAfter for a refusal that waiting mends", p)
	}
	if w := now.NextAfter; w > 0 {
		if g := at(w, 0); g.Remaining <= now.Remaining {
			c.failf("%v: remaining still %d after NextAfter %v", p, g.Remaining, w)
		}
		if g := at(w-time.Microsecond, 0); g.Remaining > now.Remaining { // a burst may be down meanwhile
			c.failf("%v: remaining grew 1µs before NextAfter %v", p, w)
		}
	}
	if w := now.ResetAfter; w > 0 {
		if g := at(w, 0); g.ResetAfter != 0 {
			c.failf("%v: not full after ResetAfter %v", p, w)
		}
		if g := at(w-time.Microsecond, 0); g.ResetAfter == 0 {
			c.failf("%v: full 1µs before ResetAfter %v", p, w)
		}
	}
	c.now = asked
}

// ratesAreExact follows rates whose period is no whole number of µs for a token, until a float would have drifted.
func ratesAreExact(s limits.Store) error {
	c := newClient(s)
	// 10 per 13 s is one in 1.3 s, not one in 1.3 s and a little.
	p := policy("ten in thirteen", limits.TokenBucket{Capacity: 10, Refill: limits.Rate{Amount: 10, Per: 13 * time.Second}})
	c.allowed(charge(p, "k", 10))
	for range 2000 {
		c.wait(1300*time.Millisecond - time.Microsecond)
		c.refused(limits.OverLimit, charge(p, "k", 1))
		c.wait(time.Microsecond)
		c.allowed(charge(p, "k", 1))
	}
	// A third of a second cannot be written in µs, yet every third token comes on the whole second.
	q := policy("three a second", limits.TokenBucket{Capacity: 3, Refill: limits.PerSecond(3)})
	c.allowed(charge(q, "k", 3))
	begin := c.now
	for k := range int64(2000) {
		c.now = begin.Add(time.Duration(((k+1)*1_000_000+2)/3-1) * time.Microsecond)
		c.refused(limits.OverLimit, charge(q, "k", 1))
		c.wait(time.Microsecond)
		c.allowed(charge(q, "k", 1))
	}
	if got := c.now.Sub(begin); got != 666_666_667*time.Microsecond {
		c.failf("the 2000th token came after %v, want 11m6.666667s", got)
	}
	// Rates of which a float or a period of whole ns makes one.
	for _, v := range []struct {
		rate   int64
		passes int
	}{{600_000_000, 600}, {1_000_000_000, 1000}, {2_000_000_000, 2000}} {
		p := policy("fast "+limits.PerSecond(v.rate).String(), limits.TokenBucket{Capacity: 1_000_000, Refill: limits.PerSecond(v.rate)})
		c.allowed(charge(p, "k", 1_000_000))
		c.wait(time.Microsecond)
		c.remaining(p, "k", int64(v.passes))
	}
	// One a day, for three years.
	day := policy("daily", limits.TokenBucket{Capacity: 1, Refill: limits.PerDay(1)})
	c.allowed(charge(day, "k", 1))
	for range 1000 {
		c.wait(24*time.Hour - time.Microsecond)
		c.refused(limits.OverLimit, charge(day, "k", 1))
		c.wait(time.Microsecond)
		c.allowed(charge(day, "k", 1))
	}
	return c.err
}
