package storetest

import (
	"math/rand/v2"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// noon is a begin of all everyday windows.
var noon = time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)

// at sets the client's time to so long after noon.
func (c *client) at(after time.Duration) { c.now = noon.Add(after) }

func fixedWindowExample(s limits.Store) error {
	c, p := newClient(s), policy("on the clock", limits.FixedWindow{Quota: limits.PerMinute(100)})
	c.at(59*time.Second + 900*time.Millisecond)
	if n := c.drainedBy(p, "k", 1, 1000); n != 100 {
		c.failf("%d pass at the end of a minute, want 100", n)
	}
	d := c.refused(limits.OverLimit, charge(p, "k", 1))
	if v := d.At(0); v.RetryAfter != 100*time.Millisecond || v.NextAfter != v.RetryAfter || v.ResetAfter != v.RetryAfter {
		c.failf("100ms before the minute is over: %s", tell(d))
	}
	c.wait(100*time.Millisecond - time.Nanosecond)
	c.refused(limits.OverLimit, charge(p, "k", 1))
	c.wait(time.Nanosecond)
	if n := c.drainedBy(p, "k", 1, 1000); n != 100 {
		c.failf("%d pass in the next minute, want 100", n)
	}
	c.wait(59 * time.Second)
	if d := c.refused(limits.OverLimit, charge(p, "k", 1)); d.At(0).RetryAfter != time.Second {
		c.failf("RetryAfter %v in the last second of a minute, want 1s", d.At(0).RetryAfter)
	}
	c.wait(-time.Hour) // nobody is locked out beyond the window that is known, and nothing is minted
	if d := c.refused(limits.OverLimit, charge(p, "k", 1)); d.At(0).RetryAfter != time.Hour+time.Second {
		c.failf("RetryAfter %v an hour back, want 1h0m1s", d.At(0).RetryAfter)
	}
	c.wait(time.Hour + time.Second)
	first := c.allowed(charge(p, "k", 60))
	c.wait(30 * time.Second)
	second := c.allowed(charge(p, "k", 40))
	c.refund(first)
	c.remaining(p, "k", 60)
	c.wait(30 * time.Second)
	c.allowed(charge(p, "k", 5))
	c.refund(second) // the window it was charged in is over
	c.remaining(p, "k", 95)
	return c.err
}

// slidingLogHolds takes at random whatever passes, and looks at every span afterwards.
func slidingLogHolds(s limits.Store) error {
	c, r := newClient(s), rand.New(rand.NewPCG(17, 19))
	const quota, per = 20, 3 * time.Second
	p := policy("log", limits.SlidingLog{Quota: limits.Rate{Amount: quota, Per: per}})
	type pass struct {
		at   time.Time
		cost int64
	}
	var passed []pass
	within := func(end time.Time) (n int64) { // in the span that ends then
		for _, p := range passed {
			if !p.at.After(end) && p.at.After(end.Add(-per)) {
				n += p.cost
			}
		}
		return n
	}
	for range 800 {
		cost := 1 + r.Int64N(4)
		d := c.take(charge(p, "k", cost))
		used := within(c.now)
		if fits := used+cost <= quota; fits != d.Allowed {
			c.failf("%d of %d used in the last %v, and %d more: allowed %v", used, quota, per, cost, d.Allowed)
		}
		if d.Allowed {
			passed = append(passed, pass{c.now, cost})
		}
		if n := within(c.now); n > quota {
			c.failf("%d in the span that ends now, of a quota of %d", n, quota)
		}
		if r.IntN(3) > 0 {
			c.wait(time.Duration(r.Int64N(int64(per/8))) / time.Microsecond * time.Microsecond)
		}
	}

	// Each comes back when its own time is over.
	q := policy("log of three", limits.SlidingLog{Quota: limits.PerMinute(3)})
	c.at(10 * time.Second)
	c.allowed(charge(q, "k", 1))
	c.wait(20 * time.Second)
	middle := c.allowed(charge(q, "k", 2))
	c.wait(25 * time.Second)
	if d := c.refused(limits.OverLimit, charge(q, "k", 2)); d.At(0).RetryAfter != 35*time.Second || d.At(0).NextAfter != 15*time.Second {
		c.failf("1 and 2 come back after 15s and 35s: %s", tell(d))
	}
	c.wait(15 * time.Second)
	c.allowed(charge(q, "k", 1))
	c.refund(middle)
	c.remaining(q, "k", 2)
	c.wait(-time.Hour)
	if v := c.look(q, "k", 3); v.RetryAfter != time.Hour+time.Minute {
		c.failf("RetryAfter %v an hour back, want 1h1m0s", v.RetryAfter)
	}
	return c.err
}

func slidingWindowExample(s limits.Store) error {
	c, p := newClient(s), policy("estimate", limits.SlidingWindow{Quota: limits.PerMinute(100)})
	c.at(50 * time.Second)
	early := c.allowed(charge(p, "k", 80))
	c.at(75 * time.Second) // 80 × 45/60 are left of it
	c.remaining(p, "k", 40)
	late := c.allowed(charge(p, "k", 20))
	c.remaining(p, "k", 20) // 80 × 45/60 + 20 = 80
	if d := c.refused(limits.OverLimit, charge(p, "k", 30)); d.At(0).RetryAfter != 7500*time.Millisecond {
		c.failf("RetryAfter %v, want the 7.5s in which 80/60s slide out 10", d.At(0).RetryAfter)
	}
	if v := c.look(p, "k", 95); v.RetryAfter != 90*time.Second {
		c.failf("RetryAfter %v for 95, want 90s: then three quarters of 20 have slid out", v.RetryAfter)
	}
	c.refund(early)
	c.remaining(p, "k", 80)
	c.refund(late)
	c.remaining(p, "k", 100)
	c.at(2 * time.Minute)
	c.allowed(charge(p, "k", 1))
	c.refund(late)
	c.remaining(p, "k", 99)
	return c.err
}

// slidingWindowErrs compares the estimate with the truth, by the bound that the rule states.
func slidingWindowErrs(s limits.Store) error {
	c, r := newClient(s), rand.New(rand.NewPCG(23, 29))
	const quota, per = 50, time.Minute
	p := policy("bounded", limits.SlidingWindow{Quota: limits.Rate{Amount: quota, Per: per}})
	c.at(0)
	var passed []time.Time
	count := func(from, to time.Time) (n int64) { // in (from, to]
		for _, at := range passed {
			if at.After(from) && !at.After(to) {
				n++
			}
		}
		return n
	}
	worst := int64(0)
	for range 500 {
		for c.take(charge(p, "k", 1)).Allowed {
			passed = append(passed, c.now)
			if r.IntN(4) == 0 {
				break
			}
		}
		begin := c.now.Truncate(per)
		elapsed := c.now.Sub(begin)
		previous := count(begin.Add(-per-1), begin.Add(-1))
		if current := count(begin.Add(-1), c.now); current > quota {
			c.failf("%d in a window of the clock, of a quota of %d", current, quota)
		}
		truth, estimate := count(c.now.Add(-per), c.now), quota-c.look(p, "k", 0).Remaining // rounded up
		worst = max(worst, truth)
		if over := float64(estimate - truth); over > float64(previous)*float64(per-elapsed)/float64(per)+1 {
			c.failf("%d counted as %d, with %d in the window before and %v elapsed", truth, estimate, previous, elapsed)
		}
		if under := float64(truth - estimate); under > float64(previous)*float64(elapsed)/float64(per) {
			c.failf("%d counted as %d, with %d in the window before and %v elapsed", truth, estimate, previous, elapsed)
		}
		if r.IntN(20) == 0 {
			c.now = begin.Add(per - time.Microsecond) // the end of a window is where the error is made
		} else {
			c.wait(time.Duration(r.Int64N(int64(per / 4))).Truncate(time.Microsecond))
		}
		if n := len(passed) - 4*quota; n > 0 {
			passed = passed[n:]
		}
	}
	if worst >= 2*quota {
		c.failf("%d in a span of %v, want less than twice %d", worst, per, quota)
	}

	// The worst case is real: all of one window in its last µs, and then what comes as that slides out.
	c.at(time.Hour - time.Microsecond)
	total := c.drainedBy(p, "worst", 1, 1000)
	for c.now.Before(noon.Add(time.Hour + per - time.Microsecond)) {
		c.wait(c.look(p, "worst", 1).RetryAfter)
		if c.now.Before(noon.Add(time.Hour + per - time.Microsecond)) {
			total += c.drainedBy(p, "worst", 1, 1000)
		}
	}
	if total != 2*quota-1 {
		c.failf("%d in the worst span, want twice the quota less one", total)
	}
	return c.err
}
