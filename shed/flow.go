package shed

import (
	"context"
	"slices"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// Flow returns what units of an admitted request have to pass through whose amount was not known when it was admitted: the
// bytes of a body without a length, the messages of a stream. It slows them down to what the limits on that unit allow;
// the refusals of limits that only watch cost nothing. It is nil if no limit counts the unit for this request. For Messages,
// it is the flow of all of them, whatever their size; MessageFlows tells limits on large ones apart.
func (s *Shedder) Flow(unit string, req Request) *limits.Flow {
	return s.flow(unit, req, func(*rule) bool { return true })
}

// MessageFlow is what messages of at least Min bytes have to pass through.
type MessageFlow struct {
	Min  int64
	Flow *limits.Flow
}

// MessageFlows returns what the messages of a stream have to pass through, by the size from which limits count them, the
// smallest first. It is nil if no limit counts messages for this request.
func (s *Shedder) MessageFlows(req Request) (flows []MessageFlow) {
	var sizes []int64
	for _, r := range s.current().route(req.Route).rules {
		if r.Unit == Messages && !slices.Contains(sizes, r.MinSize) {
			sizes = append(sizes, r.MinSize)
		}
	}
	slices.Sort(sizes)
	for _, size := range sizes {
		if f := s.flow(Messages, req, func(r *rule) bool { return r.MinSize == size }); f != nil {
			flows = append(flows, MessageFlow{size, f})
		}
	}
	return flows
}

func (s *Shedder) flow(unit string, req Request, which func(*rule) bool) *limits.Flow {
	route := s.current().route(req.Route)
	charges := s.unitCharges(route, unit, &req, which)
	if len(charges) == 0 {
		return nil
	}
	flow, err := limits.NewFlow(&ledger{s.store, route}, charges...)
	if err != nil { // only rules over time count other units than requests
		return nil
	}
	return flow
}

// unitCharges lists what n of a unit would be charged to, for n = 1.
func (s *Shedder) unitCharges(route *route, unit string, req *Request, which func(*rule) bool) (charges []limits.Charge) {
	for _, r := range route.rules {
		if r.Unit != unit || r.countsRequests() || !req.Stage.includes(r) || !r.appliesTo(req) || !which(r) {
			continue
		}
		if key, ok := r.key(route, req); ok {
			charges = append(charges, limits.Charge{Policy: r.in(req.Plan), Key: key, Cost: 1, Shadow: route.watches(r)})
		}
	}
	return charges
}

// Charge charges n of a unit that the program counts itself to all limits on it, or to none: then the error is a *Rejection, and
// nothing has been taken. It never waits; Flow does. Where no limit counts the unit for this request it does nothing.
func (s *Shedder) Charge(ctx context.Context, req Request, unit string, n int64) error {
	route := s.current().route(req.Route)
	charges := s.unitCharges(route, unit, &req, func(*rule) bool { return true })
	if len(charges) == 0 || n == 0 {
		return nil
	}
	for i := range charges {
		charges[i].Cost = n
	}
	d, err := (&ledger{s.store, route}).Take(ctx, s.clock.wall(), charges)
	if err != nil {
		if n < 0 || ctx.Err() != nil {
			return err
		}
		return unavailable(err, route.Name)
	}
	if d.Allowed {
		return nil
	}
	binding := d.Binding()
	r := &Rejection{Reason: OverLimit, Route: route.Name, Rule: binding.Policy.Name(), RetryAfter: binding.RetryAfter, Verdicts: appendActing(nil, &d)}
	if binding.Reason == limits.CostTooLarge {
		r.Reason = CostTooLarge
	}
	return r
}

// ledger is the store as flows see it: what passes is part of a limit's numbers in Status.
type ledger struct {
	limits.Store
	route *route
}

// Take implements limits.Store.
func (l *ledger) Take(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	d, err := l.Store.Take(ctx, now, charges)
	for i := range d.Len() {
		verdict := d.At(i)
		r := l.route.rule(verdict.Policy)
		switch {
		case verdict.Reason == limits.Allowed && d.Allowed:
			r.count(verdict.Cost)
			if verdict.Delay > 0 {
				r.paced.Add(1)
			}
		case verdict.Shadow:
			r.shadowed.Add(1)
		case verdict.Reason != limits.Allowed:
			r.paced.Add(1)
		}
	}
	return d, err
}

// Refund implements limits.Store.
func (l *ledger) Refund(ctx context.Context, now time.Time, d limits.Decision) error {
	for i := range d.Len() {
		if v := d.At(i); v.Taken != limits.NotTaken {
			l.route.rule(v.Policy).settled.Add(v.Cost)
		}
	}
	return l.Store.Refund(ctx, now, d)
}
