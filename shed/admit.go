package shed

import (
	"context"
	"errors"
	"time"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/queue"
)

// exemptGuard is how many requests to exempt routes pass each second, and at once: wide enough for every honest probe, and
// a bound for who takes an exempt route for an open door.
const exemptGuard = 5000

// reasonClosed ends waits when the shedder is closed; callers see ErrClosed.
const reasonClosed Reason = "closed"

// Admit decides about req and, where it must wait, waits. It returns a Permit, which must be ended with Done, or an error:
// a *Rejection when the request is turned away, ctx's error when the caller has gone away meanwhile (nobody is left to
// answer), ErrClosed after Close. Quota that was taken for a request that is turned away later is given back.
func (s *Shedder) Admit(ctx context.Context, req Request) (Permit, error) {
	route := s.settings.route(req.Route)
	if route.Exempt {
		return s.admitExempt(ctx, route)
	}
	if route.Feature != "" && s.features != nil {
		if words, after, off := s.features.FeatureOff(route.Feature, req.Client); off {
			return Permit{}, s.refuse(route, 0, &Rejection{
				Reason: FeatureOff, Route: route.Name, RetryAfter: after, Feature: route.Feature, Words: words,
			})
		}
	}
	v := s.visits.Get().(*visit)
	v.begin(ctx, route, &req)
	p, err := v.admit(&req)
	v.end()
	return p, err
}

// admit is the way of a request: a look at the gate, the rules, a turn where a rule delays, then the gate.
func (v *visit) admit(req *Request) (Permit, error) {
	s := v.s
	if err := v.ctx.Err(); err != nil {
		return Permit{}, v.gone(err)
	}
	if s.crowded.Load() {
		if err := v.lookAhead(); err != nil {
			return Permit{}, err
		}
	}
	if len(v.route.rules) == 0 {
		return v.enter()
	}
	decision, err := v.charge(req)
	if err != nil {
		return Permit{}, err
	}
	if err = v.awaitTurn(&decision); err == nil {
		var p Permit
		if p, err = v.enter(); err == nil {
			p.slot.held.limited, p.slot.held.decision = decision.Len() > 0, decision
			return p, nil
		}
	}
	v.giveBack(decision)
	return Permit{}, err
}

// lookAhead turns the request away before any quota is touched if the gate would refuse it anyway.
func (v *visit) lookAhead() error {
	s, now := v.s, v.s.clock.now()
	s.mu.Lock()
	reason, drain := s.gate.Refuses(now, &v.ticket), s.gate.drain()
	s.mu.Unlock()
	if reason == "" {
		return nil
	}
	return v.shed(reason, drain)
}

// charge takes the request's cost from every rule of its route, or from none.
func (v *visit) charge(req *Request) (limits.Decision, error) {
	charges, amount := v.charges[:0], v.Cost
	for _, r := range v.route.rules {
		key, ok := r.key(v.route, req)
		if !ok {
			if req.Anonymous {
				continue
			}
			return limits.Decision{}, v.s.refuse(v.route, v.wait, &Rejection{Reason: NoIdentity, Rule: r.Name, Route: v.route.Name})
		}
		charges = append(charges, limits.Charge{Policy: r.policy, Key: key, Cost: amount})
	}
	if v.charges = charges; len(charges) == 0 {
		return limits.Decision{}, nil
	}
	decision, err := v.s.store.Take(v.ctx, time.Now(), charges)
	switch {
	case err == nil:
		v.count(&decision)
		if !decision.Allowed {
			return decision, v.overLimit(&decision)
		}
		return decision, nil
	case v.ctx.Err() != nil:
		return decision, v.gone(v.ctx.Err())
	}
	return decision, v.s.refuse(v.route, v.wait, &Rejection{Reason: StoreUnavailable, Route: v.route.Name, RetryAfter: time.Second})
}

// overLimit is the refusal by the rule that refuses for longest.
func (v *visit) overLimit(decision *limits.Decision) error {
	binding := decision.Binding()
	d := *decision
	r := &Rejection{Reason: OverLimit, Route: v.route.Name, Rule: binding.Policy.Name(), RetryAfter: binding.RetryAfter, Decision: &d}
	if binding.Reason == limits.CostTooLarge {
		r.Reason = CostTooLarge
	}
	return v.s.refuse(v.route, v.wait, r)
}

// awaitTurn waits where a rule delays: the longest delay decides, and its line is the one to stand in.
func (v *visit) awaitTurn(decision *limits.Decision) error {
	var longest *limits.Verdict
	for i := range decision.Len() {
		if d := decision.At(i); d.Delay > 0 && (longest == nil || d.Delay > longest.Delay) {
			longest = d
		}
	}
	if longest == nil {
		return nil
	}
	step := v.route.rule(longest.Policy).step(longest.Cost)
	waited, err := v.s.turns.Wait(v.ctx, queue.Key{Policy: longest.Policy.Name(), Client: longest.Key}, longest.Delay, step)
	v.wait += waited
	switch {
	case err == nil:
		return nil
	case errors.Is(err, queue.ErrFull):
		return v.shed(QueueFull, longest.Delay)
	case errors.Is(err, queue.ErrClosed):
		return ErrClosed
	}
	return v.gone(err)
}

// enter asks the gate for a slot and waits for it in the line if need be.
func (v *visit) enter() (Permit, error) {
	s, t, now := v.s, &v.ticket, v.s.clock.now()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return Permit{}, ErrClosed
	}
	a := s.gate.Offer(now, t)
	s.unlock()
	s.wake(a.wake)
	if a.waiting {
		return v.stand(now)
	}
	if v.slot == nil {
		return Permit{}, v.shed(v.reason, a.drain)
	}
	return v.permit(), nil
}

// stand waits in the gate's line until granted, refused, expired, or left by the caller.
func (v *visit) stand(since time.Duration) (Permit, error) {
	v.timer.Reset(v.Deadline - since)
	var left error
	select {
	case <-v.ready:
	case <-v.ctx.Done():
		left = v.ctx.Err()
		v.leave()
	case <-v.timer.C:
		v.leave()
	}
	v.timer.Stop()
	v.wait += v.s.clock.now() - since
	switch {
	case left != nil:
		if v.slot != nil { // granted in the instant of leaving: the turn passes on
			Permit{s: v.s, slot: v.slot, generation: v.generation}.pass()
		}
		return Permit{}, v.gone(left)
	case v.slot != nil:
		return v.permit(), nil
	case v.reason == reasonClosed:
		return Permit{}, ErrClosed
	}
	return Permit{}, v.shed(v.reason, v.s.drain())
}

// leave takes the ticket out of the line. If it is not there any more its answer is already on the way, and is awaited:
// whoever took it out signals it right after unlocking.
func (v *visit) leave() {
	v.s.mu.Lock()
	waiting := v.s.gate.Leave(&v.ticket)
	v.s.unlock()
	if waiting {
		v.timeIsUp()
	} else {
		<-v.ready
	}
}

// pass gives back a slot that nobody used.
func (p Permit) pass() {
	now := p.s.clock.now()
	p.s.mu.Lock()
	a, _ := p.s.gate.Done(now, p.slot, p.generation, Ignored)
	p.s.unlock()
	p.s.wake(a.wake)
}

func (s *Shedder) drain() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gate.drain()
}

// permit makes the permit of a granted ticket and tells the observer.
func (v *visit) permit() Permit {
	s := v.s
	h := &v.slot.held
	h.route, h.wait, h.limited = v.route, v.wait, false
	s.counts.admitted.Add(1)
	if s.observer != nil {
		s.observer.Observe(Event{Kind: Admitted, Route: v.route.Name, Priority: v.route.Priority, Wait: v.wait})
	}
	return Permit{s: s, slot: v.slot, generation: v.generation}
}

// giveBack returns the quota that was taken for a request that does not run after all. The caller may have gone away, so
// its context does not bound the refund.
func (v *visit) giveBack(decision limits.Decision) {
	if err := v.s.store.Refund(context.WithoutCancel(v.ctx), time.Now(), decision); err != nil {
		v.s.counts.refundErrors.Add(1)
	}
}

// shed refuses for lack of room.
func (v *visit) shed(reason Reason, drain time.Duration) error {
	return v.s.refuse(v.route, v.wait, v.route.refusals.get(v.route.Name, reason, drain))
}

// gone ends the visit of a caller whose context is done: a missed deadline is a refusal, anything else means that nobody is
// left to answer.
func (v *visit) gone(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return v.shed(Deadline, v.s.drain())
	}
	v.s.counts.gone.Add(1)
	return err
}

// refuse counts and reports a refusal and returns it as an error.
func (s *Shedder) refuse(route *route, wait time.Duration, r *Rejection) error {
	s.counts.refuse(r.Reason)
	if s.observer != nil {
		s.observer.Observe(Event{Kind: Refused, Route: route.Name, Priority: route.Priority, Reason: r.Reason, Rule: r.Rule, Wait: wait})
	}
	return r
}

// admitExempt lets through what is never charged, queued or shed by load, bounded only by the wide guard.
func (s *Shedder) admitExempt(ctx context.Context, route *route) (Permit, error) {
	d, err := s.guards.Take(context.WithoutCancel(ctx), time.Now(), s.guard)
	if err == nil && !d.Allowed {
		return Permit{}, s.refuse(route, 0, route.refusals.get(route.Name, Overloaded, d.Binding().RetryAfter))
	}
	s.counts.exempt.Add(1)
	return Permit{}, nil
}
