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
	now    time.Duration  // read once, and again after whatever takes time
	wait   time.Duration  // spent waiting so far, for a turn and in the line
	turned bool           // the turn that a delaying rule gave has come, or there is none to come
	stood  *limits.Policy // in whose line of turns it stands or has stood

	asked  time.Duration // how long the store took, if that is worth measuring
	source limits.Source // and who decided

	charges []limits.Charge
	running limits.Decision // what this visit has raised of what is in flight, until a permit takes it over
	timer   *time.Timer     // ends a wait; stopped and drained between uses
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
	v.ctx, v.route, v.wait, v.turned, v.stood, v.asked = ctx, route, 0, false, nil, 0
	v.now = v.s.clock.now()
	v.Client, v.Priority, v.Cost = req.Client, int(route.Priority), req.Cost
	if v.Cost == 0 {
		v.Cost = route.Cost
	}
	v.shadow, v.refusal = route.shadow, ""
	v.budget, v.lane, v.hard, v.reason, v.slot = route.budget, route.lane, 0, "", nil
	if deadline, ok := ctx.Deadline(); ok {
		v.hard = max(deadline.Sub(v.s.clock.start), 1) // 0 would mean that there is none
	}
	if route.Deadline > 0 {
		v.hard = sooner(v.hard, v.now+route.Deadline)
	}
}

// at is now for a Memory, which need not read the clock again.
func (v *visit) at() time.Time { return v.s.clock.start.Add(v.now) }

// sooner returns the earlier of two deadlines, where 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// end forgets the request, so that the pool keeps nothing of it alive.
func (v *visit) end() {
	if len(v.route.rules) > 0 {
		clear(v.charges)
	}
	v.ctx, v.route, v.slot, v.budget, v.lane, v.Client = nil, nil, nil, nil, nil, ""
	v.s.visits.Put(v)
}
