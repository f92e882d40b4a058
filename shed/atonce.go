package shed

import "context"

// admitAtOnce is the short way of what no rule is about while there is room and nobody waits, which is nearly everything
// nearly always. It decides as admit would, and spares what only those need who are charged or may have to wait. It reports false
// when it is not for this request, and then nothing has happened.
func (s *Shedder) admitAtOnce(ctx context.Context, route *route) (Permit, bool) {
	if len(route.rules) > 0 || route.shadow || route.budget != nil || s.crowded.Load() || ctx.Err() != nil {
		return Permit{}, false
	}
	now := s.clock.now()
	s.mu.Lock()
	if s.closed.Load() || s.crowded.Load() || s.gate.narrow(now, route.lane) { // now that nobody else can change it
		s.mu.Unlock()
		return Permit{}, false
	}
	slot := s.gate.run(now, route.lane)
	s.unlock()
	slot.held.begin(route)
	p := Permit{s: s, slot: slot, generation: slot.generation}
	if s.observer != nil {
		p.announce(ctx, Event{Kind: Admitted, Route: route.Name, Priority: route.Priority})
	}
	return p, true
}
