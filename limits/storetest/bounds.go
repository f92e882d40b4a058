package storetest

import (
	"math/big"
	"math/rand/v2"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// rules are those that checks try one by one: everyday ones, fractions, extremes, and some whose numbers need ticks of 1 ms.
var rules = []limits.Rule{
	limits.TokenBucket{Capacity: 20, Refill: limits.PerSecond(5)},
	limits.TokenBucket{Capacity: 1, Refill: limits.PerSecond(3)},
	limits.TokenBucket{Capacity: 10, Refill: limits.Rate{Amount: 10, Per: 13 * time.Second}},
	limits.TokenBucket{Capacity: 17, Refill: limits.Rate{Amount: 17, Per: 30 * time.Second}},
	limits.TokenBucket{Capacity: 3, Refill: limits.PerDay(1)},
	limits.TokenBucket{Capacity: 5000, Refill: limits.PerSecond(600_000_000)},
	limits.TokenBucket{Capacity: 1_000_000, Refill: limits.PerDay(1_000_000)},
	limits.TokenBucket{Capacity: 999_983, Refill: limits.PerDay(999_983)}, // ms
	limits.TokenBucket{Capacity: 64 << 20, Refill: limits.Rate{Amount: 64 << 10, Per: time.Second, Bytes: true}},
	limits.LeakyBucket{Capacity: 6, Leak: limits.PerSecond(10)},
	limits.LeakyBucket{Capacity: 100, Leak: limits.Rate{Amount: 7, Per: 11 * time.Minute}},
	limits.LeakyBucket{Capacity: 900_001, Leak: limits.Rate{Amount: 900_001, Per: 25 * time.Hour}}, // ms
	limits.Delay{Rule: limits.LeakyBucket{Capacity: 40, Leak: limits.PerSecond(20)}},
	limits.Delay{Rule: limits.LeakyBucket{Capacity: 9, Leak: limits.PerSecond(3)}, MaxWait: 1_500_500 * time.Microsecond},
	limits.Delay{Rule: limits.LeakyBucket{Capacity: 500_009, Leak: limits.PerDay(500_009)}, MaxWait: 12 * time.Hour}, // ms
	limits.Delay{Rule: limits.TokenBucket{Capacity: 4, Refill: limits.PerSecond(7)}, MaxWait: time.Second},
	limits.Delay{Rule: limits.TokenBucket{Capacity: 999_983, Refill: limits.PerDay(999_983)}, MaxWait: time.Minute}, // ms
	limits.FixedWindow{Quota: limits.PerMinute(30)},
	limits.FixedWindow{Quota: limits.Rate{Amount: 7, Per: 11 * time.Second}},
	limits.SlidingLog{Quota: limits.PerMinute(30)},
	limits.SlidingLog{Quota: limits.Rate{Amount: 3, Per: 100 * time.Millisecond}},
	limits.SlidingWindow{Quota: limits.PerMinute(30)},
	limits.SlidingWindow{Quota: limits.Rate{Amount: 17, Per: 13 * time.Second}},
	limits.SlidingWindow{Quota: limits.PerDay(1_000_000)}, // ms
	limits.Burst{Soft: limits.PerSecond(100), Hard: limits.PerSecond(200)},
	limits.Burst{Soft: limits.PerSecond(7), Hard: limits.PerSecond(40)},
	limits.Burst{Soft: limits.PerSecond(10), Hard: limits.PerSecond(20), Total: limits.PerMinute(100)},
}

// boundsHold checks totals alone, with no eye on single decisions.
func boundsHold(s limits.Store) error {
	c, r := newClient(s), rand.New(rand.NewPCG(11, 13))
	for _, rule := range rules {
		switch rule.(type) {
		case limits.TokenBucket, limits.LeakyBucket:
		default:
			continue // delayed charges are accepted before their time; windows have bounds of their own
		}
		c.greedy(policy("greedy "+rule.String(), rule), r)
		c.careless(policy("careless "+rule.String(), rule), r)
	}
	return c.err
}

// greedy takes whatever there is, again and again and never resting long enough to be full. It must get exactly the capacity
// and what the rate brings: no more, and no less.
func (c *client) greedy(p *limits.Policy, r *rand.Rand) {
	rest := p.Window() / time.Duration(p.Quota()) * time.Duration(p.Quota()-1) // not full then, even with a fraction left over
	if rest == 0 {
		return
	}
	f := figuresOf(p.Rule())
	begin, total := c.now.Truncate(time.Duration(f.tick)*time.Microsecond), int64(0)
	for range 200 {
		if n := c.look(p, "k", 0).Remaining; n > 0 {
			c.allowed(charge(p, "k", n))
			total += n
		}
		c.refused(limits.OverLimit, charge(p, "k", 1))
		elapsed := c.now.Truncate(time.Duration(f.tick) * time.Microsecond).Sub(begin).Microseconds()
		if most := floor(f.allowance(elapsed)); total != most {
			c.failf("%v: %d taken in %vµs, want exactly %d", p, total, elapsed, most)
		}
		c.wait(time.Duration(r.Int64N(int64(rest))))
	}
}

// careless takes and gives back at random, for any length of time. Over no span that begins with a full balance may what is
// left in its hands be more than the capacity and what the rate brings.
func (c *client) careless(p *limits.Policy, r *rand.Rand) {
	f := figuresOf(p.Rule())
	type mark struct{ at, net int64 }
	var fulls []mark // when the balance was seen full, and what had been taken by then
	var held []limits.Decision
	net := int64(0)
	for range 150 {
		now := c.now.UnixMicro()
		now -= now % f.tick
		if c.look(p, "k", 0).ResetAfter == 0 {
			fulls = append(fulls, mark{now, net})
		}
		if n := len(held); n > 0 && r.IntN(3) == 0 {
			i := r.IntN(n)
			c.refund(held[i])
			net -= held[i].At(0).Cost
			held[i], held = held[n-1], held[:n-1]
		} else {
			cost := 1 + r.Int64N(p.Quota())
			if d := c.take(charge(p, "k", cost)); d.Allowed {
				net += cost
				held = append(held, d)
			}
		}
		for _, m := range fulls {
			if most := f.allowance(now - m.at); whole(net-m.net).Cmp(most) > 0 {
				c.failf("%v: %d taken and kept in %vµs, want at most %v", p, net-m.net, now-m.at, most.FloatString(3))
			}
		}
		c.wait(time.Duration(r.Int64N(int64(p.Window())/2 + 1000)))
	}
}

// allowance is the capacity and what the rate brings in the time.
func (f *figures) allowance(µs int64) *big.Rat {
	return new(big.Rat).Add(f.capacity, new(big.Rat).Mul(f.rate, whole(µs)))
}
