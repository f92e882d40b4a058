package shed

import (
	"time"

	"github.com/spillway-go/spillway/limits"
)

// Permit is the right to run, from Admit until Done. It is a small value that can be copied; all copies are one permit.
// The zero Permit is nobody's: its Done does nothing.
type Permit struct {
	s          *Shedder
	slot       *slot
	generation uint32
}

// held is what the Shedder keeps with a slot while its permit is out.
type held struct {
	route    *route
	wait     time.Duration
	limited  bool // decision is filled
	decision limits.Decision
}

// Done ends the permit and says how the work went. Only the first call counts; later ones, from any copy and any
// goroutine, change nothing. It never blocks on anything but the gate's short lock. Call it in a deferred closure, so
// that it also runs when the work panics.
func (p Permit) Done(outcome Outcome) {
	if p.slot == nil {
		return
	}
	s, now := p.s, p.s.clock.now()
	s.mu.Lock()
	if p.slot.generation != p.generation {
		s.mu.Unlock()
		return
	}
	started, h := p.slot.started, p.slot.held.summary()
	a, _ := s.gate.Done(now, p.slot, p.generation, outcome)
	s.unlock()
	s.wake(a.wake)
	s.counts.finished[outcome].Add(1)
	if s.observer != nil {
		s.observer.Observe(Event{
			Kind: Finished, Route: h.route.Name, Priority: h.route.Priority,
			Wait: h.wait, Service: now - started, Outcome: outcome,
		})
	}
}

// charged notes what the rules said, for Decision.
func (p Permit) charged(decision *limits.Decision) {
	if decision.Len() > 0 {
		p.slot.held.limited, p.slot.held.decision = true, *decision
	}
}

// summary copies the little that Done reports, so that the decision is not copied with it.
func (h *held) summary() (s struct {
	route *route
	wait  time.Duration
}) {
	s.route, s.wait = h.route, h.wait
	return s
}

// Decision returns what the rules said when the permit was given, or nil when no rule applies to the request. It belongs
// to the permit: it must not be read after Done.
func (p Permit) Decision() *limits.Decision {
	if p.slot == nil || !p.slot.held.limited {
		return nil
	}
	return &p.slot.held.decision
}

// Route returns the name of the route the permit is for; empty for the default route. It must not be read after Done.
func (p Permit) Route() string {
	if p.slot == nil {
		return ""
	}
	return p.slot.held.route.Name
}
