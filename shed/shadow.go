package shed

import (
	"time"

	"github.com/spillway-go/spillway/limits"
)

// watches reports whether r only watches on this route.
func (r *route) watches(rule *rule) bool { return rule.Shadow || r.shadow }

// would notes why a request would have been refused, if nothing else would have refused it before.
func (t *ticket) would(reason Reason) {
	if t.refusal == "" {
		t.refusal = reason
	}
}

// reasonOf is the word for a verdict that is not Allowed.
func reasonOf(verdict *limits.Verdict, r *rule) Reason {
	switch {
	case verdict.Reason == limits.CostTooLarge:
		return CostTooLarge
	case r.counted:
		return InFlight
	}
	return OverLimit
}

// let is Offer for a shadow: it runs at once, whatever the answer would be. Who would have been refused holds no place, for it would
// not be there.
func (g *gate) let(now time.Duration, t *ticket) answer {
	a := g.Expire(now)
	a.alsoWake(g.settle(now))
	if t.budget != nil {
		if t.budget.inUse >= t.budget.max {
			t.would(Overloaded)
		}
		t.budget.inUse++
		g.grant(now, t)
		return a
	}
	if t.refusal == "" {
		t.refusal = g.queueShadow(now, t)
	}
	if t.refusal == "" {
		g.start(now, t)
		return a
	}
	t.lane, t.budget = nil, &g.beyond
	g.beyond.inUse++
	g.grant(now, t)
	return a
}

// queueShadow lets a shadow join the line that there would be, if it would have to wait, and returns why it would be refused instead, or
// "". It knows nothing of priorities and clients.
func (g *gate) queueShadow(now time.Duration, t *ticket) Reason {
	if g.narrow(now, t.lane) {
		return Overloaded
	}
	line := g.imagine(now)
	if line == 0 && g.line.Len() == 0 && g.inFlight < g.room(t.Priority) {
		return ""
	}
	ahead := int(line) + g.line.Len()
	reason, _ := g.judge(now, t, ahead, ahead < g.line.Cap())
	if reason == "" {
		g.imagined++
	}
	return reason
}

// imagine is how many shadows would wait now: those who would have joined the line, less those whom the limit has let in since.
// While nobody knows how long work takes, it is those that run beyond the limit.
func (g *gate) imagine(now time.Duration) float64 {
	since := now - g.imaginedAt
	g.imaginedAt = now
	if typical := g.latency.typical(); typical > 0 {
		g.imagined = max(0, g.imagined-float64(g.settled())*float64(since)/float64(typical))
	} else {
		g.imagined = float64(max(0, g.inFlight-g.limit()))
	}
	return g.imagined
}

// WouldRefuse returns why the request would have been refused were its route, or the whole Shedder, not a shadow; empty if it would
// not have been. Limits that are shadows by themselves are in Shadows. It must not be read after Done.
func (p Permit) WouldRefuse() Reason {
	if p.slot == nil {
		return ""
	}
	return p.slot.held.refusal
}
