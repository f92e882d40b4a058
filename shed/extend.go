package shed

import (
	"context"

	"github.com/spillway-go/spillway/limits"
)

// Stage is a part of the way in. A service that authenticates its clients wants some limits in front of that, for it costs, and
// some behind it, where it is known who asks.
type Stage uint8

// The stages.
const (
	WholeStage     Stage = iota // all limits are charged at once
	BeforeIdentity              // only those that do not ask who the client is; Permit.Extend charges the others
	AfterIdentity               // those others
)

// includes reports whether a rule is charged at that stage.
func (s Stage) includes(r *rule) bool { return s == WholeStage || r.asksWho() == (s == AfterIdentity) }

// asksWho reports whether it matters to the rule who the client is.
func (r *rule) asksWho() bool {
	return r.Per == PerClient || r.Per == PerClientRoute || len(r.For) > 0
}

// Extend charges an admitted request what Admit has left out because of its Stage, now that it is known who asks: all of that or
// none, and then the error is a *Rejection as Admit's are. The permit goes on as it was either way; who is turned away has to end
// it. Limits whose stage was over are not charged again. A limit that delays lets the request wait in the place it has. Extend
// must be called before Settle and Done, and not by two callers at once.
func (p Permit) Extend(ctx context.Context, req Request) error {
	if err := req.check(); err != nil || p.slot == nil {
		return err
	}
	s := p.s
	req.Stage = AfterIdentity
	v := s.visits.Get().(*visit)
	v.begin(ctx, p.slot.held.route, &req)
	err := v.extend(p, &req)
	v.end()
	return err
}

func (v *visit) extend(p Permit, req *Request) error {
	if err := v.s.switchedOff(v.ctx, v.route, req.Client); err != nil {
		return err
	}
	if len(v.route.rules) == 0 {
		return nil
	}
	var decision limits.Decision
	if err := v.charge(req, &decision); err != nil {
		return err
	}
	kept := false
	defer func() {
		if !kept {
			v.giveBack(&decision)
		}
	}()
	if turn := longest(&decision); turn != nil {
		v.stood = turn.Policy
		if err := v.awaitTurn(turn); err != nil {
			return err
		}
	}
	kept = p.extended(&decision, v)
	return nil
}

// extended adds what was charged to what the permit has been charged, and reports false if the permit has ended meanwhile.
func (p Permit) extended(decision *limits.Decision, v *visit) bool {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	h := &p.slot.held
	if p.slot.generation != p.generation || h.settled {
		return false
	}
	for i := range v.running.Len() {
		h.running.Allowed = true
		h.running.Append(*v.running.At(i))
	}
	v.running = limits.Decision{}
	if h.refusal == "" && v.refusal != "" {
		h.refusal = v.refusal
		p.s.counts.wouldRefuse(v.refusal)
	}
	shadows := append([]limits.Verdict(nil), h.charged[h.acting:]...)
	h.charged = appendActing(h.charged[:h.acting], decision)
	h.acting = len(h.charged)
	h.charged = append(h.charged, shadows...)
	for i := range decision.Len() {
		if s := decision.At(i); s.Shadow {
			h.charged = append(h.charged, *s)
		}
	}
	return true
}
