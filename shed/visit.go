package shed

import (
	"context"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// visit is one request on its way through Admit. Visits are pooled, so that a request that is admitted or shed at once
// allocates nothing.
type visit struct {
	ticket // what the gate sees of it
	s      *Shedder
	ctx    context.Context
	route  *route
	wait   time.Duration // spent waiting so far, for a turn and in the line

	charges []limits.Charge
	timer   *time.Timer // ends a wait; stopped and drained between uses
}

func (s *Shedder) newVisit() *visit {
	v := &visit{s: s, charges: make([]limits.Charge, 0, 4)}
	v.Owner = &v.ticket
	v.ready = make(chan struct{}, 1)
	v.timer = time.NewTimer(time.Hour)
	v.timer.Stop()
	return v
}

// begin fills in the ticket.
func (v *visit) begin(ctx context.Context, route *route, req *Request) {
	v.ctx, v.route, v.wait = ctx, route, 0
	v.Client, v.Priority, v.Cost = req.Client, int(route.Priority), req.Cost
	if v.Cost == 0 {
		v.Cost = route.Cost
	}
	v.budget, v.hard, v.reason, v.slot = route.budget, 0, "", nil
	if deadline, ok := ctx.Deadline(); ok {
		v.hard = max(deadline.Sub(v.s.clock.start), 1) // 0 would mean that there is none
	}
}

// end forgets the request, so that the pool keeps nothing of it alive.
func (v *visit) end() {
	clear(v.charges)
	v.ctx, v.route, v.slot, v.budget, v.Client = nil, nil, nil, nil, ""
	v.s.visits.Put(v)
}

// count notes what each rule said.
func (v *visit) count(d *limits.Decision) {
	for i := range d.Len() {
		verdict := d.At(i)
		r := v.route.rule(verdict.Policy)
		switch {
		case verdict.Reason != limits.Allowed:
			r.refused.Add(1)
		case !d.Allowed: // refused by another rule: this one was not charged
		case verdict.Delay > 0:
			r.delayed.Add(1)
			r.admitted.Add(1)
		default:
			r.admitted.Add(1)
		}
	}
}

// rule returns the rule of this route that charges policy.
func (r *route) rule(policy *limits.Policy) *rule {
	for _, rule := range r.rules {
		if rule.policy == policy {
			return rule
		}
	}
	return nil
}
