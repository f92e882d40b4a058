package shed

import (
	"cmp"
	"context"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// fewRules is up to how many rules a route may have to be decided about at once.
const fewRules = 4

// idle reports whether a request may be admitted at once: there is room, nobody waits, and what the rules of its route count is in this
// process's memory.
func (s *Shedder) idle(ctx context.Context, route *route) bool {
	return !s.crowded.Load() && !route.shadow && route.budget == nil && route.prompt &&
		(s.memory != nil || len(route.rules) == 0) && ctx.Err() == nil
}

// admitAtOnce is the short way of nearly everything nearly always. It decides as admitInSteps would, and spares what only those need who
// are refused or may have to wait. Whoever it turns out not to be for takes the other steps, from where it has come to.
func (s *Shedder) admitAtOnce(ctx context.Context, route *route, req *Request) (Permit, error) {
	var few [fewRules]limits.Charge
	charges, nobody := route.charges(few[:0], route.rules, false, req, cmp.Or(req.Cost, route.Cost))
	if nobody != nil {
		return s.admitInSteps(ctx, route, req)
	}
	var decision limits.Decision
	now := s.clock.now()
	if len(charges) > 0 {
		if err := s.memory.TakeInto(ctx, s.clock.start.Add(now), charges, &decision); err != nil {
			return s.admitInSteps(ctx, route, req) // nothing was taken
		}
	}
	if decision.Allowed || len(charges) == 0 {
		if p, ok := s.runAtOnce(ctx, route, now, &decision); ok {
			return p, nil
		}
	}
	v := s.visits.Get().(*visit)
	v.begin(ctx, route, req)
	v.charges = append(v.charges[:0], charges...)
	p, err := v.admit(req, &decision)
	v.end()
	return p, err
}

// runAtOnce gives out a place if there still is room, to whom the rules have let pass by that decision, which is empty if there are none.
func (s *Shedder) runAtOnce(ctx context.Context, route *route, now time.Duration, decision *limits.Decision) (Permit, bool) {
	s.mu.Lock()
	if s.closed.Load() || s.crowded.Load() || s.gate.narrow(now, route.lane) { // now that nobody else can change it
		s.mu.Unlock()
		return Permit{}, false
	}
	slot := s.gate.run(now, route.lane)
	s.unlock()
	slot.held.begin(route)
	route.count(decision)
	p := Permit{s: s, slot: slot, generation: slot.generation}
	p.charged(decision)
	if s.observer != nil {
		told := false
		defer func() {
			if !told { // the observer has panicked
				s.refund(ctx, decision)
			}
		}()
		p.announce(ctx, Event{Kind: Admitted, Route: route.Name, Priority: route.Priority})
		told = true
	}
	return p, true
}
