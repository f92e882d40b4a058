package storetest

import (
	"time"

	"github.com/spillway-go/spillway/limits"
)

// shadow makes a shadow of a charge.
func shadow(c limits.Charge) limits.Charge {
	c.Shadow = true
	return c
}

func shadowDecidesNothing(s limits.Store) error {
	c := newClient(s)
	tried := policy("tried", limits.TokenBucket{Capacity: 2, Refill: limits.PerHour(1)})
	real := policy("real", limits.TokenBucket{Capacity: 4, Refill: limits.PerHour(1)})
	for i := range int64(4) {
		d := c.allowed(shadow(charge(tried, "k", 1)), charge(real, "k", 1))
		if d.Len() != 2 {
			return c.err
		}
		want := limits.Allowed
		if i >= 2 {
			want = limits.OverLimit
		}
		v := d.At(0)
		if v.Reason != want || !v.Shadow || (v.Taken == limits.NotTaken) != (want == limits.OverLimit) {
			c.failf("shadow %d: %s, want %v", i, tell(d), want)
		}
		if want == limits.OverLimit && v.RetryAfter == 0 {
			c.failf("a shadow's refusal does not tell until when")
		}
		if b := d.Binding(); b == nil || b.Policy != real {
			c.failf("a shadow is binding")
		}
	}
	c.remaining(tried, "k", 0)
	// A refusal by a rule that acts charges no shadow either.
	c.wait(time.Hour)
	c.allowed(charge(real, "k", 1))
	d := c.refused(limits.OverLimit, shadow(charge(tried, "k", 1)), charge(real, "k", 1))
	c.remaining(tried, "k", 1)
	c.refund(d)
	c.remaining(tried, "k", 1)
	// A refund gives back what the shadow took, and nothing for what it did not take.
	both := c.allowed(shadow(charge(tried, "l", 2)), charge(real, "l", 1))
	none := c.allowed(shadow(charge(tried, "l", 1)), charge(real, "l", 1))
	c.refund(none)
	c.remaining(tried, "l", 0)
	c.remaining(real, "l", 3)
	c.refund(both)
	c.remaining(tried, "l", 2)
	// Nobody but shadows: always allowed. A shadow that does not fit takes no room from the next charge.
	c.allowed(shadow(charge(tried, "m", 3)))
	c.allowed(shadow(charge(tried, "m", 2)), shadow(charge(tried, "m", 1)), charge(real, "m", 4))
	c.remaining(tried, "m", 0)
	c.allowed(shadow(charge(real, "n", 5)), charge(real, "n", 4))
	return c.err
}
