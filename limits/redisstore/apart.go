package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// group is the charges of one client within a decision: what one server of a cluster can decide.
type group struct {
	charges []limits.Charge
	places  []int // where they are in the decision
	q       *question
	d       limits.Decision
	taken   bool
}

// split puts charges into groups, in the order in which their clients come, except that what is everybody's (the empty key)
// comes last: it is asked most, and should only be for those who may pass.
func split(charges []limits.Charge) []*group {
	var groups []*group
	var everybody *group
	of := make(map[string]*group)
	for i, c := range charges {
		g := of[c.Key]
		if g == nil {
			g = new(group)
			of[c.Key] = g
			if c.Key == "" {
				everybody = g
			} else {
				groups = append(groups, g)
			}
		}
		g.charges, g.places = append(g.charges, c), append(g.places, i)
	}
	if everybody != nil {
		groups = append(groups, everybody)
	}
	return groups
}

// decideApart decides about several clients' balances on a cluster, where each lives on a server of its own: one call after
// the other, and what was taken is given back when a later one refuses. So at the end all is taken or nothing, but not at one
// instant: for a moment others may see what is given back again. If that fails, it stays taken.
func (s *Store) decideApart(ctx context.Context, now time.Time, charges []limits.Charge, effect limits.Effect) (limits.Decision, error) {
	groups := split(charges)
	allowed := true
	for _, g := range groups {
		doing := effect
		if !allowed {
			doing = limits.Look
		}
		if err := s.decideGroup(ctx, now, g, doing); err != nil {
			return limits.Decision{}, s.undo(ctx, now, groups, err)
		}
		allowed = allowed && g.d.Allowed
	}
	if !allowed {
		if err := s.undo(ctx, now, groups, nil); err != nil {
			return limits.Decision{}, err
		}
	}
	return merge(groups, len(charges), allowed), nil
}

func (s *Store) decideGroup(ctx context.Context, now time.Time, g *group, effect limits.Effect) (err error) {
	if g.q, err = s.ask(now, g.charges); err != nil {
		return err
	}
	g.q.refused = new(limits.Decision)
	if err := s.batcher.ask(ctx, g.q, effect == limits.Take); err != nil {
		return err
	}
	g.d, g.taken = g.q.d, effect == limits.Take && g.q.d.Allowed
	return nil
}

// undo gives back what the groups have taken.
func (s *Store) undo(ctx context.Context, now time.Time, groups []*group, why error) error {
	for _, g := range groups {
		if !g.taken {
			continue
		}
		if err := s.Refund(ctx, now, g.d); err != nil {
			if why == nil {
				return fmt.Errorf("what another rule refuses could not be given back: %w", err)
			}
			why = fmt.Errorf("%w; and what was taken before could not be given back: %w", why, err)
		}
	}
	return why
}

// merge puts the groups' verdicts in the order of the charges. Of a refused decision they describe what was found.
func merge(groups []*group, n int, allowed bool) limits.Decision {
	d := limits.Decision{Allowed: allowed, Source: limits.FromRedis}
	verdicts := make([]limits.Verdict, n)
	for _, g := range groups {
		if !allowed {
			g.d = *g.q.refused
		}
		for i, at := range g.places {
			verdicts[at] = *g.d.At(i)
		}
	}
	for _, v := range verdicts {
		d.Append(v)
	}
	return d
}
