package shed

import (
	"math"
	"slices"
	"time"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/limits/concurrency"
)

// lane is what the gate knows about one route: how much of it runs, and how much of it may. Lanes share the concurrency limit
// freely, first come first served, until something is wrong with one of them: then it is narrowed, so that the others do not
// have to pay for it. Two things narrow a lane, and the smaller bound holds:
//
//   - health has signals about something that only this route needs, and they show pressure: a Cap of its own;
//   - its work takes far longer than usual while the others' does not (see pulse): it keeps the places that it usually needs,
//     and those that the others usually leave. Without that, work that takes twenty times as long would soon hold every place.
//
// What comes while a lane is full is refused at once: the next place in it is far away, and the line is there for those who
// wait for a place under the limit. A lane always keeps one place, so that it can be seen to recover. Lanes that are not
// narrowed cost a few additions for each request.
type lane struct {
	name string

	inFlight int
	peak     int           // the most since the last tick
	area     time.Duration // places × time held since the last tick
	since    time.Duration // up to when area counts
	usual    float64       // places that it holds on average while all is well

	pulse   pulse
	alarmed time.Duration   // when its work last became slow
	scoped  bool            // health has signals about this route
	cap     concurrency.Cap // what they make of it
	shut    int             // the bound in force; 0 means none
}

// Times and shares of lanes.
const (
	laneMemory = 10 * time.Second       // over which the usual number of places is learned
	laneIdle   = 10 * time.Second       // after which a route without requests needs no places
	laneLook   = time.Millisecond       // between two looks at lanes outside a tick
	laneSure   = 250 * time.Millisecond // of slow work, after which its route is held to what it usually needs
	laneShare  = 5. / 7                 // of the limit: what keeps the backend busy; the rest is the estimate's reserve
)

// full reports whether nothing more of this route may run. A ticket without a lane is never held up by it.
func (l *lane) full() bool { return l != nil && l.shut > 0 && l.inFlight >= l.shut }

// exceptional reports whether work of this route says nothing about what all routes together can do.
func (l *lane) exceptional() bool { return l != nil && l.pulse.slow }

// usualTime is how long work of this route usually takes; 0 while that is not known.
func (l *lane) usualTime() time.Duration {
	if l.pulse.n < pulseFirst {
		return 0
	}
	return time.Duration(l.pulse.usual)
}

// enter and leave count what runs.
func (l *lane) enter(now time.Duration) {
	if l == nil {
		return
	}
	l.pass(now)
	l.inFlight++
	l.peak = max(l.peak, l.inFlight)
	l.pulse.started(now)
}

func (l *lane) leave(now, started time.Duration) {
	if l == nil {
		return
	}
	l.pass(now)
	l.inFlight--
	l.pulse.left(started)
}

// done takes the end of s into account.
func (ls *lanes) done(now time.Duration, s *slot, outcome Outcome) {
	if l := s.lane; l != nil {
		l.leave(now, s.started)
		l.pulse.ended(now, now-s.started, outcome != Ignored)
	}
}

// pass accounts for the time since the last change.
func (l *lane) pass(now time.Duration) {
	if now > l.since {
		l.area += time.Duration(l.inFlight) * (now - l.since)
		l.since = now
	}
}

// settleUsual takes the time since the last tick into what the lane usually holds. Nothing is learned while it is narrowed: what
// a slow route takes is not what it usually needs.
func (l *lane) settleUsual(now, since time.Duration) {
	l.pass(now)
	if took := now - since; took > 0 && l.shut == 0 && (l.area > 0 || l.usual > 0) {
		mean := float64(l.area) / float64(took)
		l.usual += (mean - l.usual) * min(1, float64(took)/float64(laneMemory))
	}
	l.area = 0
}

// needs is how many places the lane should find free nearly always: its mean and three deviations of it, were it as random as
// arrivals are that know nothing of each other.
func (l *lane) needs(now time.Duration) float64 {
	if now-l.pulse.heard > laneIdle {
		return 0
	}
	return l.usual + 3*math.Sqrt(l.usual)
}

// lanes are all routes of a gate.
type lanes struct {
	all    []*lane
	ticked time.Duration
	judged time.Duration
	shut   int // how many are narrowed
}

// replace puts other routes in the place of those there were.
func (ls *lanes) replace(all []*lane) {
	ls.all, ls.shut = all, 0
	for _, l := range all {
		if l.shut > 0 {
			ls.shut++
		}
	}
}

// scopedPressure tells what health says about what one route needs.
type scopedPressure func(route string) (float64, health.State)

// tick narrows and widens lanes. limit is what all may hold together, and settled what that is but for a dip.
func (ls *lanes) tick(now time.Duration, limit, settled int, pressure scopedPressure) {
	took := now - ls.ticked
	for _, l := range ls.all {
		l.settleUsual(now, ls.ticked)
		l.pulse.age(took)
	}
	ls.ticked = now
	for _, l := range ls.all {
		l.narrowByHealth(now, limit, pressure)
		ls.judge(now, l, settled)
		l.peak = l.inFlight
	}
	slow := slices.ContainsFunc(ls.all, func(l *lane) bool { return l.pulse.slow })
	for _, l := range ls.all {
		l.pulse.held = slow
	}
}

// narrowByHealth lets the pressure on what the route needs move its cap. What is fresh moves it, what is stale holds it, and
// without an opinion there is no cap.
func (l *lane) narrowByHealth(now time.Duration, limit int, pressure scopedPressure) {
	if !l.scoped || pressure == nil {
		return
	}
	p, state := pressure(l.name)
	if !state.Known() {
		l.cap = concurrency.Cap{}
		return
	}
	l.cap.Update(now, concurrency.Reading{Pressure: p, Known: state == health.OK, Limit: limit, InFlight: l.peak, Floor: 1})
}

// overdue reports whether l has to be judged before the next tick, because somebody asks for a place in it: until then a slow route
// could take many.
func (ls *lanes) overdue(now time.Duration, l *lane) bool {
	if l == nil || l.pulse.slow || now-ls.judged < laneLook || !l.pulse.suspect(now) {
		return false
	}
	ls.judged = now
	return true
}

// judge asks whether the work of l has become slow, and sets the bound of l.
func (ls *lanes) judge(now time.Duration, l *lane, settled int) {
	was := l.shut > 0
	p := &l.pulse
	if p.slow || p.suspect(now) {
		common, witnessed := ls.common(now, l)
		p.common = common
		alike := common > 2 && p.slower() < 2*common // it is not this route, it is what all of them need
		slow := witnessed && !alike && (p.slow || p.suspect(now))
		if slow && !p.slow {
			l.alarmed = now
		}
		p.slow = slow
	} else if p.common = 1; p.n >= pulseFirst && p.slower() > 2 {
		p.common, _ = ls.common(now, l) // not to be surprised when all are slow
	}
	l.shut = 0
	if p.slow {
		l.shut = ls.share(now, l, settled)
	}
	if value, on := l.cap.On(); on && (l.shut == 0 || value < l.shut) {
		l.shut = max(value, 1)
	}
	switch is := l.shut > 0; {
	case is && !was:
		ls.shut++
	case was && !is:
		ls.shut--
	}
}

// common is by how much all other routes are slower than usual, the least of them, and whether there is any: one whose work has
// come to an end since what runs on l has started, on average, or lately if l is slow already.
func (ls *lanes) common(now time.Duration, l *lane) (factor float64, witnessed bool) {
	since := now - laneIdle
	if !l.pulse.slow && l.pulse.running > 0 {
		since = now - time.Duration(l.pulse.ages(now)/float64(l.pulse.running))
	}
	factor = math.Inf(1)
	for _, other := range ls.all {
		if other != l && other.pulse.n >= pulseFirst && other.pulse.heard >= since {
			factor = min(factor, other.pulse.slower())
		}
	}
	if math.IsInf(factor, 1) {
		return 1, false
	}
	return max(factor, 1), true
}

// share is how many places a slow route keeps: those that it usually needs, and those that the others leave. At first it may be more,
// as much as it holds in its lively moments: what looks slow may have been a moment only.
func (ls *lanes) share(now time.Duration, l *lane, settled int) int {
	spare := laneShare * float64(settled)
	for _, other := range ls.all {
		if other != l {
			spare -= other.needs(now)
		}
	}
	own := l.usual + math.Sqrt(l.usual)
	if now-l.alarmed < laneSure {
		own += (2*math.Sqrt(l.usual) + 1) / l.pulse.regular()
	}
	return max(1, int(math.Ceil(own)), int(spare))
}

func (l *lane) status() RouteStatus {
	st := RouteStatus{
		Route: l.name, InFlight: l.inFlight, Usual: math.Round(100*l.usual) / 100, UsualLatency: Duration(l.pulse.usual),
		Bound: l.shut, Slow: l.pulse.slow,
	}
	if value, on := l.cap.On(); on {
		st.HealthCap = max(value, 1)
	}
	return st
}
