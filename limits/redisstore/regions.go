package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// Regions shares quotas between regions that have a Redis each, and one more for all of them, their home. Of a token bucket or a
// leaky bucket that refuses, half is divided by the weights: it is each region's own, in its Redis. The other half is at home, and
// lent to who has used up its own, in blocks that are spent without asking (see Leases). Windows, logs and delays are divided by
// the weights and not lent. What is strict home decides, for each request.
//
// Nothing is in two parts. So over any span
//
//	admitted ≤ capacity + rate × span + blocks
//
// where the last is what lay in blocks as the span began, and 0 for a bucket that was full and had none. A region that is cut off
// from home spends its blocks until they are over (LeaseConfig.Lasts), and then has its own part only; of a region that is dead
// its own part lies idle, and the rest has all that is lent. A block whose holder is killed is lost until the home's half has refilled.
//
// If home does not answer there is nothing to borrow: who has used up the region's own is refused, and told when that brings more.
// If the region's Redis does not answer, its part is decided by the policy's OnFailure. A cost above what home lends (half of the
// capacity) is too large. Verdicts are those of the part that was taken from, or would admit sooner.
type Regions struct {
	region, home limits.Store
	cfg          RegionsConfig
	parts        sync.Map // *limits.Policy → regional
	known        atomic.Int64
	borrowed     atomic.Int64
}

var (
	_ limits.Store    = (*Regions)(nil)
	_ limits.Reporter = (*Regions)(nil)
	_ io.Closer       = (*Regions)(nil)
)

// NewRegions puts the store of this region, and the one of all regions, together; the latter is a *Leases around a *Guard. The
// Regions closes both.
func NewRegions(region, home limits.Store, cfg RegionsConfig) (*Regions, error) {
	if region == nil || home == nil {
		return nil, errors.New("redisstore: NewRegions needs the region's store and the home's; make them with NewGuard, and home's with NewLeases around it")
	}
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("redisstore: NewRegions: %w", err)
	}
	return &Regions{region: region, home: home, cfg: cfg}, nil
}

// lent ends the keys of verdicts about what was taken at home. No client's name has it.
const lent = "\x00home"

// of returns the parts of a policy.
func (r *Regions) of(p *limits.Policy) (regional, error) {
	if found, ok := r.parts.Load(p); ok {
		return found.(regional), nil
	}
	parts, err := r.cfg.divide(p)
	if err == nil {
		if r.known.Add(1) > 4096 { // policies come anew with each reload
			r.parts.Clear()
			r.known.Store(1)
		}
		r.parts.Store(p, parts)
	}
	return parts, err
}

// Take implements limits.Store.
func (r *Regions) Take(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	return r.decide(ctx, now, charges, true)
}

// Peek implements limits.Store.
func (r *Regions) Peek(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	return r.decide(ctx, now, charges, false)
}

// claim is one charge, and where it is asked for.
type claim struct {
	parts regional
	key   string
	away  bool           // at home
	at    int            // where it is among those that are asked for there
	own   limits.Verdict // what the region said before it was asked for at home
}

func (r *Regions) decide(ctx context.Context, now time.Time, charges []limits.Charge, take bool) (limits.Decision, error) {
	claims := make([]claim, len(charges))
	for i := range charges {
		if err := charges[i].Check(); err != nil {
			return limits.Decision{}, &Error{Kind: Malformed, Op: "take", Err: err}
		}
		c := &claims[i]
		var err error
		if c.parts, err = r.of(charges[i].Policy); err != nil {
			return limits.Decision{}, &Error{Kind: Malformed, Op: "take", Err: err}
		}
		c.key = strings.TrimSuffix(charges[i].Key, lent)
		c.away = c.parts.own == nil
	}
	here, err := r.ask(ctx, now, r.region, charges, claims, false, take)
	if err != nil {
		return here, rename(err, charges)
	}
	if !here.Allowed && r.borrow(charges, claims, &here) {
		if here, err = r.ask(ctx, now, r.region, charges, claims, false, take); err != nil {
			return here, rename(err, charges)
		}
	}
	away := limits.Decision{Allowed: true}
	if here.Allowed {
		if away, err = r.ask(ctx, now, r.home, charges, claims, true, take); err != nil || !away.Allowed {
			if take {
				_ = r.region.Refund(ctx, now, here)
			}
			if err != nil && r.needs(claims) {
				return limits.Decision{Source: limits.FromClosed}, rename(err, charges)
			}
		}
	}
	d := limits.Decision{Allowed: here.Allowed && err == nil && away.Allowed, Source: here.Source}
	if here.Len() == 0 {
		d.Source = away.Source
	}
	for i := range claims {
		d.Append(claims[i].verdict(&charges[i], &here, &away, err == nil, d.Allowed))
	}
	if d.Allowed && take && away.Len() > 0 {
		r.borrowed.Add(1)
	}
	return d, nil
}

// ask asks a store for its part of the charges.
func (r *Regions) ask(ctx context.Context, now time.Time, s limits.Store, charges []limits.Charge, claims []claim, away, take bool) (limits.Decision, error) {
	var parts []limits.Charge
	for i := range claims {
		c := &claims[i]
		if c.away != away {
			continue
		}
		part := limits.Charge{Policy: c.parts.own, Key: c.key, Cost: charges[i].Cost, Shadow: charges[i].Shadow}
		if away {
			part.Policy = c.parts.pool
		}
		c.at, parts = len(parts), append(parts, part)
	}
	switch {
	case len(parts) == 0:
		return limits.Decision{Allowed: true}, nil
	case take:
		return s.Take(ctx, now, parts)
	}
	return s.Peek(ctx, now, parts)
}

// borrow makes what the region refuses be asked for at home, and reports whether that can help.
func (r *Regions) borrow(charges []limits.Charge, claims []claim, here *limits.Decision) bool {
	for i := range claims {
		if c := &claims[i]; !c.away && !charges[i].Shadow && here.At(c.at).Reason != limits.Allowed && c.parts.pool == nil {
			return false
		}
	}
	for i := range claims {
		if c := &claims[i]; !c.away && !charges[i].Shadow && here.At(c.at).Reason != limits.Allowed {
			c.own, c.away = *here.At(c.at), true
		}
	}
	return true
}

// needs reports whether only home can decide about one of the claims.
func (r *Regions) needs(claims []claim) bool {
	for i := range claims {
		if claims[i].parts.own == nil {
			return true
		}
	}
	return false
}

// verdict is what is said about a claim.
func (c *claim) verdict(charge *limits.Charge, here, away *limits.Decision, answered, allowed bool) limits.Verdict {
	v := c.own
	switch {
	case !c.away:
		v = *here.At(c.at)
	case !here.Allowed || !answered: // home was not asked, or did not answer
		if v.Policy == nil {
			v = unasked(charge)
		}
	default:
		h := *away.At(c.at)
		sooner := h.Reason == limits.Allowed || h.Reason == limits.OverLimit && h.RetryAfter < v.RetryAfter
		if v.Policy == nil || sooner || v.Reason == limits.CostTooLarge {
			v = h
		}
	}
	v.Policy, v.Key, v.Cost, v.Shadow = charge.Policy, c.key, charge.Cost, charge.Shadow
	if !allowed {
		v.Taken = limits.NotTaken
	} else if c.away {
		v.Key += lent
	}
	return v
}

// rename makes an error about a part name its policy.
func rename(err error, charges []limits.Charge) error {
	var u *limits.UnavailableError
	if errors.As(err, &u) {
		for i := range charges {
			if p := charges[i].Policy; p.Name() == u.Policy.Name() {
				return &limits.UnavailableError{Policy: p, Err: u.Err}
			}
		}
	}
	return err
}

// Refund implements limits.Store.
func (r *Regions) Refund(ctx context.Context, now time.Time, d limits.Decision) error {
	here, away := limits.Decision{Allowed: d.Allowed, Source: d.Source}, limits.Decision{Allowed: d.Allowed, Source: limits.FromRedis}
	for i := range d.Len() {
		v := *d.At(i)
		if v.Policy == nil || v.Taken == limits.NotTaken {
			continue
		}
		parts, err := r.of(v.Policy)
		if err != nil {
			return &Error{Kind: Malformed, Op: "refund", Err: err}
		}
		if key, borrowed := strings.CutSuffix(v.Key, lent); borrowed {
			v.Policy, v.Key = parts.pool, key
			away.Append(v)
		} else {
			v.Policy = parts.own
			here.Append(v)
		}
	}
	return errors.Join(r.region.Refund(ctx, now, here), r.home.Refund(ctx, now, away))
}

// Report implements limits.Reporter: that of the region's store, and how home is.
func (r *Regions) Report() limits.Report {
	report := limits.Report{State: string(Up)}
	if i, ok := r.region.(limits.Reporter); ok {
		report = i.Report()
	}
	report.Home = &limits.Home{Region: r.cfg.Region, State: string(Up), Borrowed: r.borrowed.Load()}
	if i, ok := r.home.(limits.Reporter); ok {
		h := i.Report()
		report.Home.State, report.Home.Error = h.State, h.Error
	}
	return report
}

// Close closes both stores.
func (r *Regions) Close() error { return errors.Join(closeStore(r.region), closeStore(r.home)) }
