package shed

import (
	"math"
	"time"

	"github.com/spillway-go/spillway/limits/concurrency"
	"github.com/spillway-go/spillway/queue"
)

// gate decides how many run at once and who is next. It is a pure machine: every method takes now, on a clock that counts
// from an arbitrary start, and returns what to do; it has no lock, no goroutine and no clock of its own, so that a
// simulator can drive the same code in virtual time. The Shedder calls it under its mutex and wakes people afterwards.
//
// Two invariants hold after every call:
//   - nobody waits while there is room;
//   - inFlight equals the number of slots handed out and not yet given back (long-lived work is counted by its budget).
type gate struct {
	estimate *concurrency.Estimator
	cap      concurrency.Cap // bounds the estimate while the process is under pressure
	floor    int             // how low health may push the limit
	line     queue.Line
	places   places // how long the line may be
	maxWait  time.Duration
	reserve  float64 // the share of the limit that only the critical priorities may use

	lanes lanes // the routes

	inFlight int
	peak     int         // the most in flight since the last Tick
	change   limitChange // how the limit in effect last moved
	capped   bool        // whether health held it below the estimate at the last Tick

	imagined   float64       // how long the line would be if shadows stood in it,
	imaginedAt time.Duration // and when it was

	granted int64   // how many slots were handed out, without those that nobody used
	beyond  budget  // counts work that runs although it would have been refused
	streams budget  // counts work that turned out to be long-lived on a route without a budget; it has no bound
	free    []*slot // slots that were used before, to be used again
	latency recentLatency

	unwatched usualLatency // of work without a lane
	shortage  shortage     // whether room is short
}

// ticket is one request at the gate, from Offer until it is granted, refused or has gone away.
type ticket struct {
	queue.Waiter
	lane   *lane
	budget *budget
	// hard is the caller's own deadline, at which the answer must be there; zero when it has none. Hurried says that it,
	// and not the longest wait, set Waiter.Deadline.
	hard    time.Duration
	hurried bool

	// shadow says that it must neither wait nor be refused, and refusal why it would have been.
	shadow  bool
	refusal Reason

	// The answer: a slot, or the reason why there is none.
	slot       *slot
	generation uint32
	reason     Reason

	ready chan struct{} // signalled once if the ticket had to wait
	job   *Job          // in a Machine: whom to wake instead
}

// answer is what Offer, Done and Tick want done.
type answer struct {
	// waiting tells that the offered ticket stands in the line; otherwise it carries its slot or its reason.
	waiting bool
	// drain estimates how long the line needs to clear, for the Retry-After of a refusal.
	drain time.Duration
	// wake lists tickets, linked by Waiter.Next, whose wait has ended; each carries its slot or its reason.
	wake *queue.Waiter
}

// alsoWake adds the tickets linked from w.
func (a *answer) alsoWake(w *queue.Waiter) {
	if a.wake == nil {
		a.wake = w
		return
	}
	last := a.wake
	for last.Next != nil {
		last = last.Next
	}
	last.Next = w
}

// limit is how many may run at once now.
func (g *gate) limit() int { return g.cap.Apply(g.estimate.Limit(), g.floor) }

// Offer asks for a slot for t: it is granted, put into the line, or refused. Waiter.Deadline is set here.
func (g *gate) Offer(now time.Duration, t *ticket) answer {
	if t.shadow {
		return g.let(now, t)
	}
	if t.budget != nil {
		if t.budget.inUse >= t.budget.max {
			t.reason = Overloaded
			return answer{drain: g.drain()}
		}
		t.budget.inUse++
		g.grant(now, t)
		return answer{}
	}
	var a answer
	if g.line.Len() > 0 { // who came before goes first
		a = g.Expire(now)
		a.alsoWake(g.settle(now))
	}
	if g.narrow(now, t.lane) {
		t.reason = Overloaded
		a.drain = g.drain()
		return a
	}
	if g.open(t) {
		g.start(now, t)
		return a
	}
	if t.reason = g.refusal(now, t); t.reason != "" {
		a.drain = g.drain()
		return a
	}
	g.setDeadline(now, t)
	displaced, ok := g.line.Push(now, &t.Waiter)
	if !ok || displaced != nil {
		g.shortage.begin(now, g.inFlight)
	}
	if !ok {
		t.reason = QueueFull
		a.drain = g.drain()
		return a
	}
	if displaced != nil {
		ticketOf(displaced).reason = Displaced
		displaced.Next = nil
		a.alsoWake(displaced)
	}
	a.waiting = true
	return a
}

// Refuses tells the reason for which Offer would refuse t at once, or "". It is asked before quota is taken, so that a shed
// request costs no call to the store, and changes nothing but what the line knows of refusals and the bound of a route that is slow.
func (g *gate) Refuses(now time.Duration, t *ticket) Reason {
	switch {
	case t.budget != nil && t.budget.inUse >= t.budget.max:
		return Overloaded
	case g.narrow(now, t.lane):
		return Overloaded
	case t.budget != nil, g.open(t):
		return ""
	}
	return g.refusal(now, t)
}

// narrow reports whether the route of l holds all the places that it may.
func (g *gate) narrow(now time.Duration, l *lane) bool {
	if g.lanes.overdue(now, l) {
		g.lanes.judge(now, l, g.settled())
	}
	return l.full()
}

// settled is the limit without regard to a dip.
func (g *gate) settled() int { return g.cap.Apply(g.estimate.Settled(), g.floor) }

// refusal is the reason to turn away somebody who would have to wait, or "". Who could not be answered in time is turned
// away at once rather than served late: the line is worth only what its places can keep. The wait may take up to 0.6 × the
// time that is left to be answered in, so that an estimate that errs leaves room for the work; that time is the caller's, or
// 1.25 × the longest wait when the caller names none.
func (g *gate) refusal(now time.Duration, t *ticket) Reason {
	ahead, ok := g.line.Ahead(now, &t.Waiter)
	reason, lack := g.judge(now, t, ahead, ok)
	if lack {
		g.line.Refused(now, &t.Waiter)
		g.shortage.begin(now, g.inFlight)
	}
	return reason
}

// judge is refusal for somebody with so many ahead; ok says whether the line would take it. Lack tells a lack of room from a
// deadline that no room would keep.
func (g *gate) judge(now time.Duration, t *ticket, ahead int, ok bool) (reason Reason, lack bool) {
	wait, left := g.expectedWait(ahead), g.maxWait+g.maxWait/4
	if t.hard > 0 {
		left = t.hard - now
	}
	switch {
	case g.line.Cap() == 0:
		return Overloaded, true
	case t.hard > 0 && g.service() > left:
		return Deadline, false // there would not be time without any wait
	case !ok && ahead >= g.line.Cap(), !ok && g.line.Len() >= g.line.Cap():
		return QueueFull, true
	case !ok: // there is room, but not for this one
		return Overloaded, true
	case t.hard > 0 && wait+g.service() > left:
		return Deadline, true
	case wait > min(left/10*6, g.maxWait):
		return Overloaded, true
	}
	return "", false
}

// surging is what a line can do that knows whether refusals last.
type surging interface {
	NewestFirst(now time.Duration, priority int) bool
	Pressed(now time.Duration, w *queue.Waiter) bool
}

// setDeadline says until when t may wait: as long as anybody, or until too little time is left to serve it. While refusals
// last, who joins waits no longer than the estimate of who may join does, three quarters of the longest wait: if its turn
// has not come by then the newer ones have it, and what is served late is served for nobody. When they have lasted for long,
// clients that were just refused wait for a quarter only. After a storm its retries can keep the service just full for many
// seconds, with a line that never ends: as much is served with a short one, and sooner.
func (g *gate) setDeadline(now time.Duration, t *ticket) {
	wait := g.maxWait
	if line, ok := g.line.(surging); ok && line.NewestFirst(now, t.Priority) {
		wait = g.maxWait / 4 * 3
		if line.Pressed(now, &t.Waiter) {
			wait = g.maxWait / 4
		}
	}
	t.Arrived, t.Deadline, t.hurried = now, now+wait, false
	if latest := t.hard - g.service(); t.hard > 0 && latest < t.Deadline {
		t.Deadline, t.hurried = latest, true
	}
}

// Done gives a slot back. It reports false, and does nothing, when that generation of the slot has already ended.
func (g *gate) Done(now time.Duration, s *slot, generation uint32, outcome Outcome) (answer, bool) {
	if s.generation != generation {
		return answer{}, false
	}
	s.generation++ // from here on every other Done of this permit is a no-op
	if s.budget != nil {
		s.budget.inUse--
	} else {
		usual := g.usual(s)
		g.lanes.done(now, s, outcome)
		if outcome != Ignored && (!s.lane.exceptional() || outcome == Dropped) {
			sample := concurrency.Sample{
				Latency: now - s.started, InFlight: g.inFlight, Dropped: outcome == Dropped,
				Usual: usual, Short: g.shortage.lasts(),
			}
			g.estimate.Observe(now, sample)
			if outcome == Success {
				g.latency.add(now, sample.Latency)
				if s.lane == nil {
					g.unwatched.add(sample.Latency)
				}
			}
		}
		g.inFlight--
		g.ease(now, s)
	}
	g.free = append(g.free, s)
	return answer{wake: g.settle(now)}, true
}

// ease counts work that runs no longer against a shortage.
func (g *gate) ease(now time.Duration, s *slot) {
	if g.shortage.ended(s.started) {
		g.estimate.Eased(now, g.inFlight)
	}
}

// Detach takes running work out from under the limit, because it has turned out to be a stream: it may last for hours, and
// would hold its place all that time. Until Done it is counted apart. It reports false when there is nothing to do: the
// permit has ended, or is not under the limit.
func (g *gate) Detach(now time.Duration, s *slot, generation uint32) (answer, bool) {
	if s.generation != generation || s.budget != nil {
		return answer{}, false
	}
	s.lane.leave(now, s.started)
	s.lane, s.budget = nil, &g.streams
	g.streams.inUse++
	g.inFlight--
	g.ease(now, s)
	return answer{wake: g.settle(now)}, true
}

// Leave takes a waiting ticket out of the line because its caller gave up. It reports false when the ticket no longer
// waits: then it was granted or refused in the same instant, its wake-up is on the way, and a slot it was given must be
// given back with Done.
func (g *gate) Leave(now time.Duration, t *ticket) bool {
	if !g.line.Remove(&t.Waiter) {
		return false
	}
	if now >= t.Deadline {
		g.line.Refused(now, &t.Waiter) // its time was up: it has not left of its own will
		g.shortage.begin(now, g.inFlight)
	}
	return true
}

// Expire ends the wait of everybody whose time is up.
func (g *gate) Expire(now time.Duration) answer {
	expired := g.line.Expire(now)
	if expired != nil {
		g.shortage.begin(now, g.inFlight)
	}
	for w := expired; w != nil; w = w.Next {
		ticketOf(w).timeIsUp()
	}
	return answer{wake: expired}
}

// timeIsUp sets the reason of a ticket that has waited until its Deadline: the caller's own, or the line's.
func (t *ticket) timeIsUp() {
	t.reason = WaitExpired
	if t.hurried {
		t.reason = Deadline
	}
}

// Tick lets time pass for the estimate and takes in the pressure on the process; known is false when health has no
// opinion; scoped tells the pressure on single routes. It must be called a few times each second.
func (g *gate) Tick(now time.Duration, pressure float64, known bool, scoped scopedPressure) answer {
	g.estimate.Tick(now)
	g.cap.Update(now, concurrency.Reading{
		Pressure: pressure, Known: known, Limit: g.estimate.Limit(), InFlight: g.peak, Floor: g.floor,
	})
	g.peak = g.inFlight
	g.noteLimit(now)
	g.fit()
	g.lanes.tick(now, g.limit(), g.settled(), scoped)
	a := g.Expire(now)
	a.alsoWake(g.settle(now))
	return a
}

// Empty ends the wait of everybody, for Close.
func (g *gate) Empty(reason Reason) answer {
	all := g.line.Expire(math.MaxInt64)
	for w := all; w != nil; w = w.Next {
		ticketOf(w).reason = reason
	}
	return answer{wake: all}
}

// settle grants slots while there is room, in the line's order, and returns those whose wait that ends, first come first.
// The work may take longer than when they were let in: who cannot be answered in time any more is turned away at its turn.
func (g *gate) settle(now time.Duration) *queue.Waiter {
	if g.line.Len() == 0 {
		return nil
	}
	var first, last *queue.Waiter
	for g.inFlight < g.limit() {
		w := g.pop(now)
		if w == nil {
			break
		}
		switch t := ticketOf(w); {
		case t.lane.full():
			t.reason = Overloaded // it came when its route was not as narrow
		case t.hard > 0 && now+g.service() > t.hard:
			t.reason = Deadline
			g.line.Refused(now, w)
		default:
			g.start(now, t)
		}
		w.Next = nil
		if last == nil {
			first = w
		} else {
			last.Next = w
		}
		last = w
	}
	return first
}

func ticketOf(w *queue.Waiter) *ticket { return w.Owner.(*ticket) }
