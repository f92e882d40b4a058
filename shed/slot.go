package shed

import "time"

// slot is the gate's side of one permit. Slots are reused; the generation tells the permits of one slot apart, so that a
// late second Done can never end somebody else's work.
type slot struct {
	generation uint32
	started    time.Duration
	lane       *lane   // of its route, if it runs under the limit
	budget     *budget // whose long-lived budget it belongs to; nil: the adaptive limit

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
	if g.inFlight > g.estimate.Trial() {
		g.shortage.begin(now, g.inFlight)
	}
	l.enter(now)
	return g.take(now, l, nil)
}

// grant hands a slot to t; the caller has counted it.
func (g *gate) grant(now time.Duration, t *ticket) {
	t.slot = g.take(now, t.lane, t.budget)
	t.generation = t.slot.generation
}

// take makes a slot ready. What a slot knows from its last permit is written only where it changes: while the garbage collector runs it
// has to be told of every pointer that is.
func (g *gate) take(now time.Duration, l *lane, b *budget) *slot {
	var s *slot
	if n := len(g.free); n == 0 {
		s = new(slot)
	} else {
		s, g.free = g.free[n-1], g.free[:n-1]
	}
	s.started = now
	if s.lane != l {
		s.lane = l
	}
	if s.budget != b {
		s.budget = b
	}
	g.granted++
	return s
}
