package redisstore

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// MaxWeight is the largest sum that weights of regions can have.
const MaxWeight = 1000

// RegionsConfig says which region this process is in, and what each has.
type RegionsConfig struct {
	Region  string           // one of Weights
	Weights map[string]int64 // what each region counts; at least 1 each, and at most MaxWeight together
}

// check returns what is wrong with it.
func (c RegionsConfig) check() error {
	sum := int64(0)
	for name, w := range c.Weights {
		if w < 1 || w > MaxWeight {
			return fmt.Errorf("the weight %d of %s is not between 1 and %d", w, name, MaxWeight)
		}
		sum += w
	}
	switch {
	case len(c.Weights) < 2:
		return errors.New("weights name fewer than two regions; name all that share the quotas")
	case sum > MaxWeight:
		return fmt.Errorf("weights add up to %d, more than %d; use smaller ones", sum, MaxWeight)
	case c.Weights[c.Region] == 0:
		return fmt.Errorf("weights do not name the region %q; add it", c.Region)
	}
	return nil
}

// Check returns why a policy cannot be divided between the regions, or nil.
func (c RegionsConfig) Check(p *limits.Policy) error {
	if err := c.check(); err != nil {
		return err
	}
	_, err := c.divide(p)
	return err
}

// regional is a policy's parts: the region's own, and what is lent from home; nil where there is none.
type regional struct{ own, pool *limits.Policy }

// divide makes the parts of a policy. All regions' parts and what is lent are the whole.
func (c RegionsConfig) divide(p *limits.Policy) (regional, error) {
	if p.Strict() {
		return regional{pool: p}, nil // home decides
	}
	names := make([]string, 0, len(c.Weights))
	sum := int64(0)
	for name, w := range c.Weights {
		names, sum = append(names, name), sum+w
	}
	slices.Sort(names)
	before, lent := int64(0), int64(0) // weights of those before this one, and what of a capacity is nobody's own
	for _, name := range names {
		if name == c.Region {
			break
		}
		before += c.Weights[name]
	}
	w := c.Weights[c.Region]
	amount := func(a int64) int64 { return fraction(a, before+w, sum) - fraction(a, before, sum) }
	capacity := func(a int64) int64 {
		lent = a
		for _, name := range names {
			lent -= fraction(a, c.Weights[name], 2*sum)
		}
		return fraction(a, w, 2*sum)
	}
	whole := func(r limits.Rate) limits.Rate { r.Amount = amount(r.Amount); return r }
	var own, pool limits.Rule
	switch r := p.Rule().(type) {
	case limits.TokenBucket:
		own = limits.TokenBucket{Capacity: capacity(r.Capacity), Refill: times(r.Refill, w, 2*sum)}
		pool = limits.TokenBucket{Capacity: lent, Refill: times(r.Refill, 1, 2)}
	case limits.LeakyBucket:
		own = limits.LeakyBucket{Capacity: capacity(r.Capacity), Leak: times(r.Leak, w, 2*sum)}
		pool = limits.LeakyBucket{Capacity: lent, Leak: times(r.Leak, 1, 2)}
	case limits.Delay:
		switch inner := r.Rule.(type) {
		case limits.TokenBucket:
			own = limits.Delay{Rule: limits.TokenBucket{Capacity: amount(inner.Capacity), Refill: times(inner.Refill, w, sum)}, MaxWait: r.MaxWait}
		case limits.LeakyBucket:
			own = limits.Delay{Rule: limits.LeakyBucket{Capacity: amount(inner.Capacity), Leak: times(inner.Leak, w, sum)}, MaxWait: r.MaxWait}
		}
	case limits.Burst: // rounded down, so that soft stays below hard
		less := func(r limits.Rate) limits.Rate { r.Amount = fraction(r.Amount, w, sum); return r }
		own = limits.Burst{Soft: less(r.Soft), Hard: less(r.Hard), Total: less(r.Total)}
	case limits.FixedWindow:
		own = limits.FixedWindow{Quota: whole(r.Quota)}
	case limits.SlidingWindow:
		own = limits.SlidingWindow{Quota: whole(r.Quota)}
	case limits.SlidingLog:
		own = limits.SlidingLog{Quota: whole(r.Quota)}
	}
	if own == nil {
		return regional{}, fmt.Errorf("redisstore: regions: %v cannot be divided; use guarantee: strict, with which the home decides", p)
	}
	parts, err := regional{}, error(nil)
	options := []limits.Option{limits.WhenStoreFails(p.OnFailure()), limits.Shared(p.Sharing())}
	if parts.own, err = limits.NewPolicy(p.Name(), own, options...); err == nil && pool != nil {
		parts.pool, err = limits.NewPolicy(p.Name(), pool, limits.WhenStoreFails(limits.Closed), limits.Shared(limits.SharedByLease))
	}
	if err != nil {
		return regional{}, fmt.Errorf("redisstore: regions: the part of %s: %w", c.Region, err)
	}
	if parts.pool == nil && parts.own.Quota() == 0 && p.Quota() > 0 {
		return regional{}, fmt.Errorf("redisstore: regions: %v is too small to be divided: %s would have nothing; raise it, or use guarantee: strict", p, c.Region)
	}
	return parts, nil
}

// fraction is a·n/d rounded down, for n not above d and d not above 2·MaxWeight.
func fraction(a, n, d int64) int64 { return a/d*n + a%d*n/d }

// times is n/d of a rate, exactly; what cannot be is no rate.
func times(r limits.Rate, n, d int64) limits.Rate {
	if r.Amount > math.MaxInt64/n || r.Per > math.MaxInt64/time.Duration(d) {
		return limits.Rate{}
	}
	return limits.Rate{Amount: r.Amount * n, Per: r.Per * time.Duration(d), Bytes: r.Bytes}
}
