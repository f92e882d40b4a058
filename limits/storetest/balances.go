package storetest

import (
	"time"

	"github.com/spillway-go/spillway/limits"
)

// balancesAreApart uses names and keys that meet when they are joined carelessly.
func balancesAreApart(s limits.Store) error {
	c := newClient(s)
	rule := limits.TokenBucket{Capacity: 3, Refill: limits.PerHour(1)}
	names := []string{"a", "ab", "a:b", "a{b}", "{a}", "A", " a"}
	keys := []string{"", "b", "b:c", ":b", "c", "bc", "{b}", "}b{", "a\x00b", "\x00", "b\x00", "\xff\xfe", "a b", "a\r\nb", "é", string(make([]byte, 100_000))}
	for _, name := range names {
		for _, key := range keys {
			c.allowed(charge(policy(name, rule), key, 3))
		}
	}
	for _, name := range names {
		for _, key := range keys {
			c.remaining(policy(name, rule), key, 0)
		}
	}
	slow := policy("one rule", limits.TokenBucket{Capacity: 5, Refill: limits.PerHour(1)})
	fast := policy("another rule", limits.TokenBucket{Capacity: 50, Refill: limits.PerSecond(1)})
	c.allowed(charge(slow, "k", 5), charge(fast, "k", 20))
	c.wait(10 * time.Second)
	c.remaining(slow, "k", 0)
	c.remaining(fast, "k", 40)
	return c.err
}

// rebuiltPolicy is a reload of the configuration: the same name, a new Policy.
func rebuiltPolicy(s limits.Store) error {
	c := newClient(s)
	bucket := func(capacity int64, r limits.Rate) *limits.Policy {
		return policy("reload", limits.TokenBucket{Capacity: capacity, Refill: r})
	}
	thirteen := limits.Rate{Amount: 10, Per: 13 * time.Second}
	c.allowed(charge(bucket(10, thirteen), "k", 7))
	c.wait(time.Second)
	before := c.look(bucket(10, thirteen), "k", 0)
	same := bucket(10, thirteen)
	after := c.look(same, "k", 0)
	if after.Policy = before.Policy; after != before {
		c.failf("the same rule built anew changed %+v to %+v", before, after)
	}
	c.wait(300 * time.Millisecond) // exactly one token has come back
	c.remaining(same, "k", 4)

	c.now = c.now.Add(time.Hour)
	c.allowed(charge(bucket(10, limits.PerSecond(1)), "k", 7))
	c.remaining(bucket(20, limits.PerSecond(1)), "k", 13) // raised: what was used stays used
	c.remaining(bucket(10, limits.PerMinute(1)), "k", 3)
	c.remaining(bucket(5, limits.PerSecond(1)), "k", 0) // lowered: never negative
	c.refused(limits.OverLimit, charge(bucket(5, limits.PerSecond(1)), "k", 1))
	c.remaining(bucket(10, limits.PerSecond(1)), "k", 3) // nothing was written, so nothing was clamped
	c.allowed(charge(bucket(8, limits.PerSecond(1)), "k", 1))
	c.remaining(bucket(8, limits.PerSecond(1)), "k", 0)
	c.refused(limits.OverLimit, charge(bucket(8, limits.PerSecond(1)), "k", 1))
	c.wait(time.Second)
	c.allowed(charge(bucket(8, limits.PerSecond(1)), "k", 1))

	// A refund of the old rule's charge counts in the cost it was charged at.
	d := c.allowed(charge(bucket(10, limits.PerHour(1)), "back", 6))
	c.allowed(charge(bucket(20, limits.PerDay(3)), "back", 1))
	c.remaining(bucket(20, limits.PerDay(3)), "back", 13)
	c.refund(d)
	c.remaining(bucket(20, limits.PerDay(3)), "back", 19)
	return c.err
}
