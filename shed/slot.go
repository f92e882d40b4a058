package shed

import "time"

// slot is the gate's side of one permit. Slots are reused; the generation tells the permits of one slot apart, so that a
// late second Done can never end somebody else's work.
type slot struct {
	generation uint32
	started    time.Duration
	lane       *lane   // of its route, while it runs under the limit
	budget     *budget // whose long-lived budget it belongs to; nil: the adaptive limit
	next       *slot   // in the free list

	// held belongs to the permit's holder from the grant to Done; the gate never looks at it.
	held held
}

// budget bounds long-lived work of one route; it never waits and is never a latency sample.
type budget struct {
	max, inUse int
}

// start runs t under the limit.
func (g *gate) start(now time.Duration, t *ticket) {
	t.slot = g.run(now, t.lane)
	t.generation = t.slot.generation
}

// run makes a slot ready for work under the limit.
func (g *gate) run(now time.Duration, l *lane) *slot {
	g.inFlight++
	g.peak = max(g.peak, g.inFlight)
	l.enter(now)
	return g.take(now, l, nil)
}

// grant hands a slot to t; the caller has counted it.
func (g *gate) grant(now time.Duration, t *ticket) {
	t.slot = g.take(now, t.lane, t.budget)
	t.generation = t.slot.generation
}

// take makes a slot ready.
func (g *gate) take(now time.Duration, l *lane, b *budget) *slot {
	s := g.free
	if s == nil {
		s = new(slot)
	} else {
		g.free, s.next = s.next, nil
	}
	s.started, s.budget, s.lane = now, b, l
	g.granted++
	return s
}
