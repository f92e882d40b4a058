package shed

import (
	"context"
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
	route   *route
	wait    time.Duration
	refusal Reason           // why it would have been refused, were it no shadow
	charged []limits.Verdict // what was charged; those that act come first
	acting  int              // how many of them do
	settled bool             // what was charged is what it came to
	running limits.Decision  // lowered when the permit ends
	ctx     context.Context  // the caller's, only for a ContextObserver
}

// begin forgets the last permit of the slot; see gate.take.
func (h *held) begin(route *route) {
	if h.route != route {
		h.route = route
	}
	if h.refusal != "" {
		h.refusal = ""
	}
	h.wait = 0
	h.charged, h.acting, h.settled = h.charged[:0], 0, false
}

// Done ends the permit and says how the work went. Only the first call counts; later ones, from any copy and any
// goroutine, change nothing. It never blocks on anything but the gate's short lock. Call it in a deferred closure, so
// that it also runs when the work panics.
func (p Permit) Done(outcome Outcome) {
	if p.slot == nil {
		return
	}
	if outcome > Dropped {
		outcome = Ignored // no outcome of ours
	}
	s, now := p.s, p.s.clock.now()
	s.mu.Lock()
	if p.slot.generation != p.generation {
		s.mu.Unlock()
		return
	}
	started, route, wait := p.slot.started, p.slot.held.route, p.slot.held.wait
	if len(route.counted) > 0 {
		defer s.lower(p.slot.held.running) // the value as it is now; it runs after unlocking
	}
	streamed := p.slot.budget != nil
	ctx := p.slot.held.ctx
	if ctx != nil {
		p.slot.held.ctx = nil
	}
	a, _ := s.gate.Done(now, p.slot, p.generation, outcome)
	s.finished[outcome]++
	if outcome == Success && !streamed {
		s.answers.add(wait + now - started)
	}
	s.unlock()
	s.wake(a.wake)
	if s.observer != nil {
		s.tell(ctx, Event{
			Kind: Finished, Route: route.Name, Priority: route.Priority,
			Wait: wait, Service: now - started, Outcome: outcome,
		})
	}
}

// Detach says that the work has turned out to be a stream or an upgraded connection: its place under the concurrency limit
// is free from now on, while rules that count what is in flight still count it until Done. It is for routes that are not
// known to be long-lived; better give those a budget with Route.LongLived. A second call, or one after Done, does nothing.
func (p Permit) Detach() {
	if p.slot == nil {
		return
	}
	now := p.s.clock.now()
	p.s.mu.Lock()
	a, _ := p.s.gate.Detach(now, p.slot, p.generation)
	p.s.unlock()
	p.s.wake(a.wake)
}

// charged notes what the rules said, for Verdicts. The slot's memory for it is used again and again.
func (p Permit) charged(decision *limits.Decision) {
	if decision.Len() == 0 {
		return
	}
	h := &p.slot.held
	h.charged = appendActing(h.charged, decision)
	h.acting = len(h.charged)
	if h.acting == decision.Len() {
		return
	}
	for i := range decision.Len() {
		if v := decision.At(i); v.Shadow {
			h.charged = append(h.charged, *v)
		}
	}
}

// Verdicts returns what the rules said when the permit was given; nil when no rule applies to the request. The slice belongs
// to the permit: it must not be read after Done.
func (p Permit) Verdicts() []limits.Verdict {
	if p.slot == nil {
		return nil
	}
	h := &p.slot.held
	return h.charged[:h.acting]
}

// Shadows returns what the rules said that only watch, as Verdicts does for those that act.
func (p Permit) Shadows() []limits.Verdict {
	if p.slot == nil {
		return nil
	}
	h := &p.slot.held
	return h.charged[h.acting:]
}
