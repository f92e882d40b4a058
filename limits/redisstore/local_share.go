package redisstore

import (
	"time"

	"github.com/spillway-go/spillway/limits"
)

// share returns what one of n instances may use of a rule, so that all together use no more than the rule allows: rates are
// divided exactly, and what an instance holds at once is rounded down, but to no less than 1, for with 0 a small limit would
// refuse everything. So bursts can add up to n where the capacity is below n; rates never do. Unless exact, rates are rounded
// down as well, for rules whose exact part would need too large numbers. It is nil where there is no such part.
func share(rule limits.Rule, n int64, exact bool) limits.Rule {
	switch r := rule.(type) {
	case limits.TokenBucket:
		return limits.TokenBucket{Capacity: part(r.Capacity, n), Refill: slower(r.Refill, n, exact)}
	case limits.LeakyBucket:
		return limits.LeakyBucket{Capacity: part(r.Capacity, n), Leak: slower(r.Leak, n, exact)}
	case limits.Delay:
		inner := share(r.Rule, n, exact)
		if inner == nil {
			return nil
		}
		return limits.Delay{Rule: inner, MaxWait: r.MaxWait}
	case limits.FixedWindow:
		return limits.FixedWindow{Quota: rarer(r.Quota, n)}
	case limits.SlidingLog:
		return limits.SlidingLog{Quota: rarer(r.Quota, n)}
	case limits.SlidingWindow:
		return limits.SlidingWindow{Quota: rarer(r.Quota, n)}
	case limits.InFlight:
		return limits.InFlight{Max: part(r.Max, n)}
	case limits.Burst:
		return burstShare(r, n)
	}
	return nil
}

// part is the n-th part, rounded down, of something there is at least 1 of.
func part(a, n int64) int64 {
	if a == 0 {
		return 0
	}
	return max(a/n, 1)
}

// slower is the n-th part of a rate.
func slower(r limits.Rate, n int64, exact bool) limits.Rate {
	if exact || r.Amount < n {
		return limits.Rate{Amount: r.Amount, Per: longer(r.Per, n), Bytes: r.Bytes}
	}
	return limits.Rate{Amount: r.Amount / n, Per: r.Per, Bytes: r.Bytes}
}

// rarer is the n-th part of a quota per window. What would be less than 1 is 1 in a longer window.
func rarer(r limits.Rate, n int64) limits.Rate {
	if r.Amount == 0 || r.Amount >= n {
		return limits.Rate{Amount: r.Amount / n, Per: r.Per, Bytes: r.Bytes}
	}
	return limits.Rate{Amount: 1, Per: longer(r.Per, ceil(n, r.Amount)), Bytes: r.Bytes}
}

// burstShare divides a burst. Its rates share one period, and its total's is a multiple of that; where the soft rate would be
// less than 1 all periods become longer.
func burstShare(b limits.Burst, n int64) limits.Rule {
	k := int64(1)
	if b.Soft.Amount > 0 && b.Soft.Amount < n {
		k = ceil(n, b.Soft.Amount)
	}
	scaled := func(r limits.Rate) limits.Rate {
		if r.Amount > limits.Exact/k {
			return limits.Rate{Amount: limits.Exact / n, Per: longer(r.Per, k), Bytes: r.Bytes}
		}
		return limits.Rate{Amount: r.Amount * k / n, Per: longer(r.Per, k), Bytes: r.Bytes}
	}
	s := limits.Burst{Soft: scaled(b.Soft), Hard: scaled(b.Hard)}
	if b.Total != (limits.Rate{}) {
		s.Total = scaled(b.Total)
	}
	return s
}

// longer is n times a period; what passes a Duration is refused where the rule is compiled.
func longer(d time.Duration, n int64) time.Duration {
	if int64(d) > int64(1<<63-1)/n {
		return 1<<63 - 1
	}
	return d * time.Duration(n)
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }
