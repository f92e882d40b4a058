package storetest

import (
	"time"

	"github.com/spillway-go/spillway/limits"
)

// changedKind gives balances a rule of another kind: what was used stays used.
func changedKind(s limits.Store) error {
	c := newClient(s)
	minute := limits.PerMinute(10)
	kinds := []limits.Rule{
		limits.TokenBucket{Capacity: 10, Refill: limits.PerHour(1)},
		limits.LeakyBucket{Capacity: 10, Leak: limits.PerHour(1)},
		limits.FixedWindow{Quota: minute},
		limits.SlidingLog{Quota: minute},
		limits.SlidingWindow{Quota: minute},
		limits.Burst{Soft: minute, Hard: minute},
		limits.Burst{Soft: minute, Hard: minute, Total: limits.PerHour(10)},
	}
	c.at(10 * time.Second)
	for _, before := range kinds {
		for _, after := range kinds {
			key := before.String() + " to " + after.String()
			d := c.allowed(charge(policy("kind", before), key, 4))
			c.allowed(charge(policy("kind", before), key, 3))
			c.remaining(policy("kind", after), key, 3)
			c.remaining(policy("kind", before), key, 3) // looking has changed nothing
			c.allowed(charge(policy("kind", after), key, 1))
			c.remaining(policy("kind", after), key, 2)
			c.refund(d)
			c.remaining(policy("kind", after), key, 6)
			c.refused(limits.OverLimit, charge(policy("kind", after), key, 7))
		}
	}
	// A lower quota is used up, and never more than that; a higher one has the difference.
	for _, v := range []struct{ before, lower, higher limits.Rule }{
		{limits.FixedWindow{Quota: minute}, limits.FixedWindow{Quota: limits.PerMinute(5)}, limits.FixedWindow{Quota: limits.PerMinute(20)}},
		{limits.SlidingLog{Quota: minute}, limits.SlidingLog{Quota: limits.PerMinute(5)}, limits.SlidingLog{Quota: limits.PerMinute(20)}},
		{limits.SlidingWindow{Quota: minute}, limits.SlidingWindow{Quota: limits.PerMinute(5)}, limits.SlidingWindow{Quota: limits.PerMinute(20)}},
		{limits.Burst{Soft: minute, Hard: minute}, limits.Burst{Soft: limits.PerMinute(5), Hard: limits.PerMinute(5)}, limits.Burst{Soft: minute, Hard: limits.PerMinute(20)}},
	} {
		key := v.before.String()
		c.allowed(charge(policy("level", v.before), key, 8))
		c.remaining(policy("level", v.lower), key, 0)
		c.refused(limits.OverLimit, charge(policy("level", v.lower), key, 1))
		c.remaining(policy("level", v.higher), key, 12)
	}
	// Debt stays debt as long as the periods are the same.
	older := policy("debt", limits.Burst{Soft: limits.PerSecond(10), Hard: limits.PerSecond(40)})
	newer := policy("debt", limits.Burst{Soft: limits.PerSecond(20), Hard: limits.PerSecond(80)})
	c.at(time.Hour)
	c.allowed(charge(older, "k", 15))
	c.at(time.Hour + time.Second)
	c.allowed(charge(older, "k", 2))
	c.remaining(older, "k", 3)
	c.remaining(newer, "k", 13) // of soft 20 a debt of 5 and the 2 are used
	c.at(time.Hour + 2*time.Second)
	c.remaining(newer, "k", 80)
	return c.err
}
