package shed

import (
	"context"
	"errors"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// charge takes what the request weighs from every rule of its route, or from none. What is in flight is counted first, for
// that needs no store.
func (v *visit) charge(req *Request, decision *limits.Decision) error {
	if len(v.route.counted) > 0 {
		if err := v.raise(req); err != nil {
			return err
		}
	}
	err := v.take(req, decision)
	if err != nil {
		v.giveBack(nil)
	}
	return err
}

// list fills in what req is charged by some rules of its route. A rule that acts and knows nobody to charge refuses.
func (v *visit) list(rules []*rule, counted bool, req *Request) error {
	clear(v.charges) // of the rules that were asked before
	var nobody *rule
	v.charges, nobody = v.route.charges(v.charges[:0], rules, counted, req, v.Cost)
	switch {
	case nobody == nil:
	case v.route.shadow:
		v.would(NoIdentity)
	default:
		return v.refuse(&Rejection{Reason: NoIdentity, Rule: nobody.Name, Route: v.route.Name})
	}
	return nil
}

// charges adds to list what req, which weighs cost, is charged by some rules of the route. Nobody is the first rule that acts and knows
// nobody to charge; nil if there is none.
func (r *route) charges(list []limits.Charge, rules []*rule, counted bool, req *Request, cost int64) (all []limits.Charge, nobody *rule) {
	for _, rule := range rules {
		if rule.counted != counted || !req.Stage.includes(rule) || !rule.appliesTo(req) {
			continue
		}
		n, known := rule.amount(req, cost)
		if !known {
			continue
		}
		key, ok := rule.key(r, req)
		if !ok {
			if nobody == nil && !req.Anonymous && !rule.Shadow {
				nobody = rule
			}
			continue
		}
		if counted {
			n = 1
		}
		list = append(list, limits.Charge{Policy: rule.in(req.Plan), Key: key, Cost: n, Shadow: r.watches(rule)})
	}
	return list, nobody
}

// take charges the rates, unless they have decided already.
func (v *visit) take(req *Request, decision *limits.Decision) (err error) {
	if decision.Len() == 0 {
		if err := v.list(v.route.rules, false, req); err != nil || len(v.charges) == 0 {
			return err
		}
		err = v.ask(decision)
	}
	switch {
	case err == nil:
		v.count(decision)
		if !decision.Allowed {
			return v.overLimit(decision)
		}
		return nil
	case v.ctx.Err() != nil:
		return v.gone(v.ctx.Err())
	case v.route.shadow:
		v.would(StoreUnavailable)
		*decision = limits.Decision{}
		return nil
	}
	return v.refuse(unavailable(err, v.route.Name))
}

// ask lets the store decide about what is listed.
func (v *visit) ask(decision *limits.Decision) (err error) {
	if v.s.memory != nil {
		return v.s.memory.TakeInto(v.ctx, v.at(), v.charges, decision)
	}
	*decision, err = v.s.store.Take(v.ctx, v.s.clock.wall(), v.charges)
	asked := v.now
	v.now = v.s.clock.now() // it may have taken its time
	v.asked, v.source = max(v.now-asked, 1), decision.Source
	return err
}

// unavailable is the refusal when the store could not decide. A store that is down is asked again within a second.
func unavailable(err error, route string) *Rejection {
	r := &Rejection{Reason: StoreUnavailable, Route: route, RetryAfter: time.Second}
	if u := (*limits.UnavailableError)(nil); errors.As(err, &u) {
		r.Rule = u.Policy.Name()
	}
	return r
}

// raise counts the request among those in flight.
func (v *visit) raise(req *Request) error {
	if err := v.list(v.route.counted, true, req); err != nil || len(v.charges) == 0 {
		return err
	}
	d, err := v.s.running.Take(context.Background(), v.at(), v.charges)
	if err != nil { // a cost that is no cost, which Config and Request do not let through
		return err
	}
	v.count(&d)
	if !d.Allowed {
		return v.tooMany(&d)
	}
	v.running = d
	return nil
}

// lower ends the count of what raise has raised.
func (s *Shedder) lower(d limits.Decision) {
	if d.Len() == 0 {
		return
	}
	if err := s.running.Refund(context.Background(), s.clock.wall(), d); err != nil {
		s.counts.refundErrors.Add(1)
	}
}

// handOver makes the permit's end the one that lowers what this visit has raised.
func (v *visit) handOver(h *held) {
	if len(v.route.counted) > 0 {
		h.running, v.running = v.running, limits.Decision{}
	}
}

// giveBack returns what was taken for a request that does not run after all. The caller may have gone away, so its context
// does not bound the refund.
func (v *visit) giveBack(decision *limits.Decision) {
	if v.running.Len() > 0 {
		v.s.lower(v.running)
		v.running = limits.Decision{}
	}
	if decision == nil || decision.Len() == 0 {
		return
	}
	v.keepTurns(decision)
	v.s.refund(v.ctx, decision)
}

// refund returns what the store took.
func (s *Shedder) refund(ctx context.Context, decision *limits.Decision) {
	if err := s.store.Refund(context.WithoutCancel(ctx), s.clock.wall(), *decision); err != nil {
		s.counts.refundErrors.Add(1)
	}
}

// keepTurns takes out of decision what rules that delay have charged. A turn that has come is used up, whoever uses it: those
// behind hold turns that count on it, and a refund would give the same turn to a newcomer. One that has not come is given on
// where the request stood in line, for there all others move up; where a second rule delayed it less, nobody moves.
func (v *visit) keepTurns(decision *limits.Decision) {
	for i := range decision.Len() {
		verdict := decision.At(i)
		if v.route.rule(verdict.Policy).Excess == Delay && (v.turned || verdict.Policy != v.stood) {
			verdict.Taken = limits.NotTaken
		}
	}
}

// overLimit is the refusal by the rule that refuses for longest.
func (v *visit) overLimit(decision *limits.Decision) error {
	binding := decision.Binding()
	if binding == nil || binding.Reason == limits.Allowed { // no store of ours
		return v.refuse(&Rejection{Reason: StoreUnavailable, Route: v.route.Name, RetryAfter: time.Second})
	}
	with := new(struct { // one allocation for a refusal by a single rule
		Rejection
		verdicts [1]limits.Verdict
	})
	r := &with.Rejection
	*r = Rejection{
		Reason: OverLimit, Route: v.route.Name, Rule: binding.Policy.Name(), RetryAfter: binding.RetryAfter,
		Verdicts: appendActing(with.verdicts[:0], decision),
	}
	if binding.Reason == limits.CostTooLarge {
		r.Reason = CostTooLarge
	} else if decision.Len() > 1 && decision.Source == limits.FromMemory && hasBurst(decision) { // other clocks cannot be told to be ahead
		r.RetryAfter = v.together(r.RetryAfter)
	}
	return v.refuse(r)
}

// hasBurst reports whether a rule may refuse later what it allows now: a burst does, for its debt falls due in the next
// period.
func hasBurst(decision *limits.Decision) bool {
	for i := range decision.Len() {
		if _, ok := decision.At(i).Policy.Rule().(limits.Burst); ok {
			return true
		}
	}
	return false
}

// together returns after how long all charges fit at once. Where a burst is among them, the longest of the single waits is
// not enough: by then the burst may have to be waited for. So it looks again at that time, and again, until all agree.
func (v *visit) together(after time.Duration) time.Duration {
	for range 16 {
		d, err := v.s.store.Peek(v.ctx, v.s.clock.at(after), v.charges)
		if err != nil || d.Allowed {
			return after
		}
		more := d.Binding().RetryAfter
		if more <= 0 {
			return after
		}
		after += more
	}
	return after
}

// tooMany is the refusal by a rule that counts what is in flight. When something ends nobody knows: the estimate is what
// work takes typically, and up to as much again at random, so that who was refused together does not come back together.
func (v *visit) tooMany(decision *limits.Decision) error {
	binding := decision.Binding()
	r := &Rejection{Reason: InFlight, Route: v.route.Name, Rule: binding.Policy.Name(), Verdicts: appendActing(nil, decision)}
	if binding.Reason == limits.CostTooLarge { // a maximum of 0
		r.Reason = CostTooLarge
	} else {
		v.s.mu.Lock()
		typical := v.s.gate.latency.typical()
		v.s.mu.Unlock()
		seconds := (min(max(typical, 1), longestRetry) + time.Second - 1) / time.Second
		r.RetryAfter = (seconds + time.Duration(v.s.jitter(int64(seconds)+1))) * time.Second
	}
	return v.refuse(r)
}

// appendActing adds the verdicts that are not shadows: those are nobody's business but the operator's.
func appendActing(to []limits.Verdict, decision *limits.Decision) []limits.Verdict {
	all := decision.Verdicts()
	if to == nil {
		to = make([]limits.Verdict, 0, len(all))
	}
	for i := range all {
		if !all[i].Shadow {
			to = append(to, all[i])
		}
	}
	return to
}

// longest is the verdict with the longest delay, or nil when nothing is delayed.
func longest(decision *limits.Decision) (turn *limits.Verdict) {
	for i := range decision.Len() {
		if d := decision.At(i); d.Delay > 0 && !d.Shadow && (turn == nil || d.Delay > turn.Delay) {
			turn = d
		}
	}
	return turn
}

// count notes what each rule said.
func (v *visit) count(d *limits.Decision) {
	if reason := v.route.count(d); reason != "" {
		v.would(reason)
	}
}

// count notes what each rule said, and returns why the first of those that only watch would have refused; "" if none would.
func (r *route) count(d *limits.Decision) (would Reason) {
	for i := range d.Len() {
		verdict := d.At(i)
		rule := r.rule(verdict.Policy)
		switch {
		case verdict.Reason != limits.Allowed && verdict.Shadow:
			rule.shadowed.Add(1)
			if !rule.Shadow && would == "" {
				would = reasonOf(verdict, rule)
			}
		case verdict.Reason != limits.Allowed:
			rule.refused.Add(1)
		case !d.Allowed: // refused by another rule: this one was not charged
		default:
			rule.admitted.Add(1)
			rule.count(verdict.Cost)
			if verdict.Delay > 0 {
				rule.delayed.Add(1)
			}
			if verdict.OverSoft {
				rule.overSoft.Add(1)
			}
		}
	}
	return would
}

// rule returns the rule of this route that charges policy.
func (r *route) rule(policy *limits.Policy) *rule {
	for _, rule := range r.rules {
		if rule.policy == policy {
			return rule
		}
	}
	for _, rule := range r.rules {
		if rule.Name == policy.Name() { // of a plan
			return rule
		}
	}
	return nil
}

// split notes which rules of the route count what is in flight, and whether all decide at once: none delays, and none has to be
// lowered again.
func (r *route) split() {
	r.prompt = len(r.rules) <= fewRules
	for _, rule := range r.rules {
		if rule.counted {
			r.counted = append(r.counted, rule)
		}
		if rule.counted || rule.Excess == Delay {
			r.prompt = false
		}
	}
}
