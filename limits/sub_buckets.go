package limits

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// MaxSubBuckets is into how many sub-buckets a policy can be split.
const MaxSubBuckets = 256

// InSubBuckets splits the policy's balances into n parts each, for stores that keep parts on different servers: for a quota that
// more ask about than one server can answer. A store that has no use for that ignores it. The rule is a TokenBucket, a LeakyBucket or a
// FixedWindow, and what it holds at once at least n. No part admits a cost above its own capacity, which is one n-th.
func InSubBuckets(n int) Option { return func(p *Policy) { p.split = n } }

// SubBuckets returns the parts of a policy with InSubBuckets, or nil. Together they are the whole: each has one n-th of the
// capacity or quota, rounded down, and the first have one more until nothing is left; and one n-th of the rate, exactly or, where
// that takes too large numbers, rounded in the same way. They have names of their own, and all else is the policy's.
func (p *Policy) SubBuckets() []*Policy { return p.parts }

// divide makes the parts.
func (p *Policy) divide(options []Option) error {
	n := int64(p.split)
	if n == 0 {
		return nil
	}
	if n < 2 || n > MaxSubBuckets {
		return fmt.Errorf("%d sub-buckets are not between 2 and %d; leave them out for one balance", n, MaxSubBuckets)
	}
	switch p.rule.(type) {
	case TokenBucket, LeakyBucket, FixedWindow:
	default:
		return fmt.Errorf("sub-buckets are for token and leaky buckets that refuse and for fixed windows, not for %v; leave them out", p.rule)
	}
	if p.Quota() < n {
		return fmt.Errorf("%d sub-buckets cannot divide %d; use fewer, or a larger capacity or quota", n, p.Quota())
	}
	for i := range n {
		part, err := p.part(i, n, options)
		if err != nil {
			return err
		}
		p.parts = append(p.parts, part)
	}
	return nil
}

// part returns the i-th of n parts.
func (p *Policy) part(i, n int64, options []Option) (*Policy, error) {
	amount := func(a int64) int64 {
		if i < a%n {
			return a/n + 1
		}
		return a / n
	}
	exact := func(r Rate) Rate {
		if r.Per > math.MaxInt64/time.Duration(n) {
			return Rate{} // which is refused
		}
		r.Per *= time.Duration(n)
		return r
	}
	rounded := func(r Rate) Rate { r.Amount = amount(r.Amount); return r }
	err := errors.New("there is no part")
	for _, rate := range []func(Rate) Rate{exact, rounded} {
		var rule Rule
		switch r := p.rule.(type) {
		case TokenBucket:
			rule = TokenBucket{Capacity: amount(r.Capacity), Refill: rate(r.Refill)}
		case LeakyBucket:
			rule = LeakyBucket{Capacity: amount(r.Capacity), Leak: rate(r.Leak)}
		case FixedWindow:
			rule = FixedWindow{Quota: rounded(r.Quota)}
		}
		var part *Policy
		if part, err = NewPolicy(p.name+"/"+strconv.FormatInt(i, 10), rule, append(options[:len(options):len(options)], InSubBuckets(0))...); err == nil {
			return part, nil
		}
	}
	return nil, fmt.Errorf("one of %d sub-buckets: %w", n, err)
}
