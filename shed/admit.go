package shed

import (
	"cmp"
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
	if err := req.check(); err != nil {
		return Permit{}, err
	}
	if s.closed.Load() {
		return Permit{}, ErrClosed
	}
	route := s.current().route(req.Route)
	if route.Exempt || req.Exempt {
		return Permit{}, s.admitExempt(ctx, route)
	}
	if req.Stage != BeforeIdentity { // features may be off for some clients only
		if err := s.switchedOff(ctx, route, req.Client); err != nil {
			return Permit{}, err
		}
	}
	if req.Await == nil && s.idle(ctx, route) {
		return s.admitAtOnce(ctx, route, &req)
	}
	return s.admitInSteps(ctx, route, &req)
}

// admitInSteps is the way of whoever admitAtOnce is not for: it may wait, and may be refused before anything is charged.
func (s *Shedder) admitInSteps(ctx context.Context, route *route, req *Request) (Permit, error) {
	v := s.visits.Get().(*visit)
	v.begin(ctx, route, req)
	var p Permit
	err := v.look() // first, for a refusal has to be cheap
	if err == nil {
		var decision limits.Decision
		p, err = v.admit(req, &decision)
	}
	v.end()
	return p, err
}

// switchedOff refuses what asks for a feature that is switched off.
func (s *Shedder) switchedOff(ctx context.Context, route *route, client string) error {
	if s.features == nil {
		return nil
	}
	feature := cmp.Or(route.Feature, everything)
	words, after, off := s.features.FeatureOff(feature, client)
	if !off {
		return nil
	}
	return s.refuse(ctx, route, 0, &Rejection{
		Reason: FeatureOff, Route: route.Name, RetryAfter: after, Feature: feature, Words: words,
	})
}

// admit is the way of a request that look has let pass: the rules, a turn where a rule delays, then the gate. It is the steps
// arrive, offer and answered with the waiting between them; a Machine takes the same steps without waiting. The decision is
// empty, or what the rules have said already.
func (v *visit) admit(req *Request, decision *limits.Decision) (Permit, error) {
	settled := false
	defer func() {
		if !settled { // an observer, or a store of somebody's own, has panicked
			v.giveBack(decision)
		}
	}()
	awaits := req.Await != nil && !v.route.shadow
	spaced := awaits && v.route.spaced()
	if spaced {
		err := v.foresee(req, decision)
		if err == nil {
			err = v.await(req)
		}
		if err != nil {
			settled = true
			return Permit{}, err
		}
	}
	turn, err := v.arrive(req, decision)
	if err != nil {
		settled = true
		return Permit{}, err
	}
	if turn != nil {
		err = v.awaitTurn(turn)
	}
	if err == nil && awaits && !spaced {
		err = v.await(req)
	}
	if err == nil {
		var p Permit
		if p, err = v.enter(); err == nil {
			p.charged(decision)
			settled = true
			return p, nil
		}
	}
	settled = true
	v.giveBack(decision)
	return Permit{}, err
}

// look turns away who has left already, and whom the gate would refuse anyway, before anything is charged.
func (v *visit) look() error {
	if err := v.ctx.Err(); err != nil {
		return v.gone(err)
	}
	if v.s.crowded.Load() && !v.route.shadow {
		return v.lookAhead()
	}
	return nil
}

// arrive asks the rules, whose decision it fills in. The verdict it returns is of the rule whose turn has to be awaited; nil
// means that the gate is next.
func (v *visit) arrive(req *Request, decision *limits.Decision) (turn *limits.Verdict, err error) {
	if len(v.route.rules) == 0 {
		return nil, nil
	}
	if err = v.charge(req, decision); err != nil {
		return nil, err
	}
	if turn = longest(decision); turn != nil {
		v.stood = turn.Policy
	}
	return turn, nil
}

// lookAhead turns the request away before any quota is touched if the gate would refuse it anyway.
func (v *visit) lookAhead() error {
	s := v.s
	s.mu.Lock()
	reason := s.gate.Refuses(v.now, &v.ticket)
	if reason == "" {
		s.mu.Unlock()
		return nil
	}
	drain := s.gate.drain()
	s.mu.Unlock()
	return v.shed(reason, drain)
}

// awaitTurn waits where a rule delays: the longest delay decides, and its line is the one to stand in.
func (v *visit) awaitTurn(turn *limits.Verdict) error {
	key, ctx := queue.Key{Policy: turn.Policy.Name(), Client: turn.Key}, v.ctx
	if v.route.Deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, v.s.clock.start.Add(v.hard))
		defer cancel()
	}
	waited, err := v.s.turns.Wait(ctx, key, turn.Delay, step(turn.Policy, turn.Cost))
	v.wait += waited
	v.now = v.s.clock.now()
	switch {
	case err == nil:
		v.turned = true
		return nil
	case errors.Is(err, queue.ErrFull):
		return v.shed(QueueFull, turn.Delay)
	case errors.Is(err, queue.ErrClosed):
		return ErrClosed
	}
	return v.gone(err)
}

// enter asks the gate for a slot and waits for it in the line if need be.
func (v *visit) enter() (Permit, error) {
	waiting, err := v.offer(v.now)
	switch {
	case err != nil:
		return Permit{}, err
	case waiting:
		return v.stand(v.now)
	}
	return v.permit(), nil
}

// offer asks the gate for a slot: it is there, or is waited for, or there is an error.
func (v *visit) offer(now time.Duration) (waiting bool, err error) {
	s := v.s
	v.turned = true
	if v.hard > 0 && now >= v.hard && !v.shadow {
		return false, v.gone(context.DeadlineExceeded)
	}
	s.mu.Lock()
	if s.closed.Load() {
		s.mu.Unlock()
		return false, ErrClosed
	}
	a := s.gate.Offer(now, &v.ticket)
	s.unlock()
	s.wake(a.wake)
	if !a.waiting && v.slot == nil {
		return false, v.shed(v.reason, a.drain)
	}
	return a.waiting, nil
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
	if left != nil {
		v.wait += v.s.clock.now() - since
		if v.slot != nil { // granted in the instant of leaving: the turn passes on
			Permit{s: v.s, slot: v.slot, generation: v.generation}.pass()
		}
		return Permit{}, v.gone(left)
	}
	return v.answered(since)
}

// answered is the end of a wait in the line: the gate has put a slot or a reason into the ticket.
func (v *visit) answered(since time.Duration) (Permit, error) {
	v.wait += v.s.clock.now() - since
	switch {
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
	if v.stepOut() {
		v.timeIsUp()
	} else {
		<-v.ready
	}
}

// stepOut takes the ticket out of the line and tells whether it stood there.
func (v *visit) stepOut() bool {
	now := v.s.clock.now()
	v.s.mu.Lock()
	waiting := v.s.gate.Leave(now, &v.ticket)
	v.s.unlock()
	return waiting
}

// pass gives back a slot that nobody used.
func (p Permit) pass() {
	now := p.s.clock.now()
	p.s.mu.Lock()
	a, ok := p.s.gate.Done(now, p.slot, p.generation, Ignored)
	if ok {
		p.s.gate.granted--
	}
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
	h.begin(v.route)
	h.wait, h.refusal = v.wait, v.refusal
	v.handOver(h)
	if v.refusal != "" {
		s.counts.wouldRefuse(v.refusal)
	}
	if v.wait > atOnce {
		s.counts.delayed.Add(1)
	}
	p := Permit{s: s, slot: v.slot, generation: v.generation}
	if s.observer != nil {
		p.announce(v.ctx, Event{Kind: Admitted, Route: v.route.Name, Priority: v.route.Priority, Wait: v.wait, Store: v.asked, Source: v.source,
			WouldRefuse: v.refusal})
	}
	return p
}

// announce tells the observer about an admission. An observer that panics must not take the permit with it: nobody has it
// yet, so nobody else would give it back.
func (p Permit) announce(ctx context.Context, e Event) {
	h := &p.slot.held
	if p.s.contextual != nil {
		h.ctx = ctx
	}
	told := false
	defer func() {
		if !told {
			if len(h.route.counted) > 0 {
				p.s.lower(h.running)
				h.running = limits.Decision{}
			}
			p.pass()
		}
	}()
	p.s.tell(ctx, e)
	told = true
}

// shed refuses for lack of room.
func (v *visit) shed(reason Reason, drain time.Duration) error {
	return v.refuse(v.route.refusals.get(v.route.Name, reason, drain, v.s.jitter))
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
func (s *Shedder) refuse(ctx context.Context, route *route, wait time.Duration, r *Rejection) error {
	s.counts.refuse(r.Reason)
	if s.observer != nil {
		s.tell(ctx, Event{Kind: Refused, Route: route.Name, Priority: route.Priority, Reason: r.Reason, Rule: r.Rule, Wait: wait})
	}
	return r
}

// refuse is Shedder.refuse, and tells what the store took.
func (v *visit) refuse(r *Rejection) error {
	s := v.s
	s.counts.refuse(r.Reason)
	if s.observer != nil {
		s.tell(v.ctx, Event{
			Kind: Refused, Route: v.route.Name, Priority: v.route.Priority, Reason: r.Reason, Rule: r.Rule, Wait: v.wait,
			Store: v.asked, Source: v.source,
		})
	}
	return r
}

// admitExempt lets through what is never charged, queued or shed by load, bounded only by a wide guard. Requests that are
// exempt one by one have a guard of their own: anybody can send a preflight, and probes must not suffer for it.
func (s *Shedder) admitExempt(ctx context.Context, route *route) error {
	guard := s.guard[:1]
	if !route.Exempt {
		guard = s.guard[1:]
	}
	d, err := s.guards.Take(context.WithoutCancel(ctx), s.clock.wall(), guard)
	if err == nil && !d.Allowed {
		return s.refuse(ctx, route, 0, route.refusals.get(route.Name, Overloaded, d.Binding().RetryAfter, s.jitter))
	}
	s.counts.exempt.Add(1)
	return nil
}
