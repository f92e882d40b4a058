package redisstore

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// maxInstances bounds what a quota is divided by.
const maxInstances = 100_000

// maxShares bounds how many policies' shares are remembered: policies come anew with each reload.
const maxShares = 1024

// choice is what becomes of a charge while the store cannot decide.
func (g *Guard) choice(p *limits.Policy) limits.OnFailure {
	if f := p.OnFailure(); f != limits.AsTheStore {
		return f
	}
	return g.cfg.OnFailure
}

// without decides without the store, which could not because of err.
func (g *Guard) without(charges []limits.Charge, take bool, err *Error) (limits.Decision, error) {
	d, closed := g.alone(charges, take)
	if closed != nil {
		d = limits.Decision{Source: limits.FromClosed}
		g.decided[limits.FromClosed].Add(1)
		return d, &limits.UnavailableError{Policy: closed, Err: err}
	}
	g.decided[d.Source].Add(1)
	return d, nil
}

// alone decides by what the policies want. It returns the first that wants nothing to pass.
func (g *Guard) alone(charges []limits.Charge, take bool) (d limits.Decision, closed *limits.Policy) {
	var few [4]limits.Charge
	local, fits := few[:0], true
	for i := range charges {
		c := &charges[i]
		switch g.choice(c.Policy) {
		case limits.Local:
			share := g.shares.of(c.Policy)
			if share == nil && !c.Shadow && c.Cost > 0 {
				return d, c.Policy
			}
			if share != nil {
				local = append(local, limits.Charge{Policy: share, Key: c.Key, Cost: c.Cost, Shadow: c.Shadow})
			}
		case limits.Closed:
			if !c.Shadow && c.Cost > 0 {
				return d, c.Policy
			}
		default:
			fits = fits && (c.Shadow || c.Cost <= c.Policy.Quota())
		}
	}
	found, err := limits.Decision{Allowed: true}, error(nil)
	if len(local) > 0 {
		if take && fits {
			found, err = g.local.Take(context.Background(), time.Time{}, local)
		} else {
			found, err = g.local.Peek(context.Background(), time.Time{}, local)
		}
		if err != nil { // two rules under one name
			return d, charges[0].Policy
		}
	}
	d.Allowed, d.Source = found.Allowed && fits, limits.FromOpen
	at := 0
	for i := range charges {
		c := &charges[i]
		if g.choice(c.Policy) != limits.Local || at == found.Len() || found.At(at).Policy.Name() != c.Policy.Name() {
			d.Append(unasked(c))
			continue
		}
		d.Source = limits.FromLocal
		v := *found.At(at)
		at++
		if v.Reason == limits.CostTooLarge && v.Cost <= c.Policy.Quota() && !v.Shadow {
			return d, c.Policy // it fits into the quota, but not into this share of it: who waits will be served
		}
		v.Policy = c.Policy
		d.Append(v)
	}
	return d, nil
}

// unasked is the verdict of a policy that lets everything pass now, but for what could never pass.
func unasked(c *limits.Charge) limits.Verdict {
	v := limits.Verdict{Policy: c.Policy, Key: c.Key, Cost: c.Cost, Taken: limits.NotTaken, Shadow: c.Shadow,
		Remaining: max(c.Policy.Quota()-c.Cost, 0)}
	if c.Cost > c.Policy.Quota() {
		v.Reason = limits.CostTooLarge
	}
	return v
}

// warm charges what the store has admitted to the local balances, as far as it fits there.
func (g *Guard) warm(charges []limits.Charge, d *limits.Decision) {
	if !d.Allowed {
		return
	}
	for i := range charges {
		c := &charges[i]
		if c.Cost == 0 || d.At(i).Reason != limits.Allowed || g.choice(c.Policy) != limits.Local {
			continue
		}
		share := g.shares.of(c.Policy)
		if share == nil {
			continue
		}
		one := [1]limits.Charge{{Policy: share, Key: c.Key, Cost: min(c.Cost, share.Quota())}}
		if was, err := g.local.Take(context.Background(), time.Time{}, one[:]); err == nil && !was.Allowed {
			if one[0].Cost = min(was.At(0).Remaining, one[0].Cost); one[0].Cost > 0 {
				_, _ = g.local.Take(context.Background(), time.Time{}, one[:]) // somebody else was quicker: just as well
			}
		}
	}
}

// cool gives the local balances back what the store has given back, for the rules where it does not matter which charge that
// was: those balances are an estimate of this process's own, in its own time.
func (g *Guard) cool(d *limits.Decision) {
	back := limits.Decision{Allowed: true}
	for i := range d.Len() {
		v := *d.At(i)
		if _, meter := v.Policy.Meter(); !meter || v.Taken == limits.NotTaken || g.choice(v.Policy) != limits.Local {
			continue
		}
		if v.Policy = g.shares.of(v.Policy); v.Policy == nil {
			continue
		}
		v.Taken, v.Cost = time.Now().UnixMicro(), min(v.Cost, v.Policy.Quota())
		back.Append(v)
	}
	_ = g.local.Refund(context.Background(), time.Time{}, back)
}

// refundLocal gives back what was charged here.
func (g *Guard) refundLocal(d limits.Decision) error {
	back := limits.Decision{Allowed: true}
	for i := range d.Len() {
		v := *d.At(i)
		if v.Taken == limits.NotTaken || v.Cost == 0 {
			continue
		}
		if v.Policy = g.shares.of(v.Policy); v.Policy == nil {
			return &Error{Kind: Malformed, Op: "refund", Err: errors.New("the decision is not one of this store")}
		}
		back.Append(v)
	}
	return g.local.Refund(context.Background(), time.Time{}, back)
}

// shares remembers what one instance may use of each policy.
type shares struct {
	table atomic.Pointer[shareTable]
	mu    sync.Mutex // held while the table is replaced
}

// shareTable is never written to: it is replaced.
type shareTable struct {
	instances int
	of        map[*limits.Policy]*limits.Policy // nil where there is none
}

// divide sets the number of instances.
func (s *shares) divide(by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.table.Load(); t == nil || t.instances != by {
		s.table.Store(&shareTable{instances: by})
	}
}

func (s *shares) instances() int { return s.table.Load().instances }

// of returns the share of a policy under the same name, or nil where a part of it cannot be computed exactly.
func (s *shares) of(p *limits.Policy) *limits.Policy {
	if share, ok := s.table.Load().of[p]; ok {
		return share
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.table.Load()
	if share, ok := t.of[p]; ok {
		return share
	}
	next := &shareTable{instances: t.instances}
	if len(t.of) < maxShares {
		next.of = maps.Clone(t.of)
	}
	if next.of == nil {
		next.of = make(map[*limits.Policy]*limits.Policy)
	}
	share := divided(p, int64(t.instances))
	next.of[p] = share
	s.table.Store(next)
	return share
}

// divided returns the n-th part of a policy.
func divided(p *limits.Policy, n int64) *limits.Policy {
	if n == 1 {
		return p
	}
	for _, exact := range []bool{true, false} {
		if rule := share(p.Rule(), n, exact); rule != nil {
			if part, err := limits.NewPolicy(p.Name(), rule); err == nil {
				return part
			}
		}
	}
	return nil
}
