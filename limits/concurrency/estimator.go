package concurrency

import (
	"math"
	"time"
)

// Sample is one piece of work that ended.
type Sample struct {
	// Latency is how long the permit was held; time spent waiting for it does not belong here. A sample of 0 or less is no
	// measurement and is left out. For dropped work it does not matter.
	Latency time.Duration
	// InFlight is how many were in flight when the work ended, itself included.
	InFlight int
	// Dropped says that the work failed because something behind us is overloaded: a timeout, a refusal.
	Dropped bool
	// Usual is how long such work usually takes; 0 if that is not known.
	Usual time.Duration
	// Short says that room was short when the work ended: since somebody was turned away for want of it, or since more were in
	// flight than Trial, not all that ran then has ended. Eased tells when it has.
	Short bool
}

// Estimator turns samples into a limit. It is a pure machine: no clock, no lock, no goroutine; its owner passes now, which
// counts from any start and does not run backwards, and calls it under a lock of its own. New makes one.
type Estimator struct {
	cfg   Config
	alg   algorithm // nil for a fixed limit
	now   time.Duration
	heard time.Duration // when the last sample came

	limit    int // the estimate
	win      window
	past     history
	first    window        // pools samples until there are enough for a first baseline
	baseline float64       // mean latency without queueing, in ns; 0 while unknown
	slots    float64       // how much work at once keeps the backend busy, as of the last dip; 0 while unknown
	slow     int           // windows in a row that were slower than the limit explains
	slowed   time.Duration // when the first of them opened
	pressed  time.Duration // since when all windows were saturated; 0 if the last was not
	settled  time.Duration
	rested   bool // nothing was in flight after the last sample
	climb    climb
	dip      dip
	burst    burst

	rate, latency float64 // of the last window
	change        Change
	changed       time.Duration
}

// Change is the one word for why the limit last moved.
type Change string

// The changes.
const (
	Started   Change = "start"       // it stands where it started
	Grew      Change = "grow"        // one step of the algorithm up
	Shrank    Change = "shrink"      // one step down
	Doubled   Change = "double"      // the limit was reached without queueing: try twice as much
	Returned  Change = "return"      // doubling brought no more throughput
	Fell      Change = "drops"       // too much work was dropped
	Dipped    Change = "dip"         // lowered for a moment, to see the latency without a queue
	Recovered Change = "dip_end"     // back after a dip
	Measured  Change = "measurement" // a dip has shown that the limit was far too high
)

// Status is a snapshot for a debug view.
type Status struct {
	Algorithm string        `json:"algorithm"`
	Limit     int           `json:"limit"`      // in effect now, also during a dip
	Estimate  int           `json:"estimate"`   // where the limit returns to after a dip
	Min       int           `json:"min"`        // never below
	Max       int           `json:"max"`        // never above
	Baseline  time.Duration `json:"baseline"`   // mean latency without queueing; 0 while unknown
	Latency   time.Duration `json:"latency"`    // mean of the last window
	Rate      float64       `json:"rate"`       // successes per second in the last window
	Dipping   bool          `json:"dipping"`    // whether the limit is lowered for a measurement
	Change    Change        `json:"change"`     // why it last moved
	ChangedAt time.Duration `json:"changed_at"` // when, on the owner's clock
}

// New returns an Estimator. The error says what is wrong with cfg and how to mend it.
func New(cfg Config) (*Estimator, error) {
	cfg, err := cfg.resolve()
	if err != nil {
		return nil, err
	}
	return &Estimator{cfg: cfg, alg: newAlgorithm(cfg), limit: cfg.Initial, change: Started}, nil
}

// Limit returns how many may be in flight now.
func (e *Estimator) Limit() int {
	if e.dip.on() {
		return e.dip.limit
	}
	return e.limit
}

// Settled returns the limit without regard to a dip: what Limit returns to in a moment. It is the one to estimate waiting
// times with.
func (e *Estimator) Settled() int { return e.limit }

// Bounds returns the lowest and the highest limit there can be.
func (e *Estimator) Bounds() (low, high int) { return e.cfg.Min, e.cfg.Max }

// Status returns a snapshot.
func (e *Estimator) Status() Status {
	return Status{
		Algorithm: e.cfg.Algorithm, Limit: e.Limit(), Estimate: e.limit, Min: e.cfg.Min, Max: e.cfg.Max,
		Baseline: time.Duration(e.baseline), Latency: time.Duration(e.latency), Rate: e.rate, Dipping: e.dip.on(),
		Change: e.change, ChangedAt: e.changed,
	}
}

// longSilence is how long after a sample the next is a fresh start; the limit and the baseline stay.
const longSilence = 10 * time.Second

// Observe takes in one piece of work that ended at now. The limit may be another one afterwards.
func (e *Estimator) Observe(now time.Duration, s Sample) {
	e.Tick(now)
	if e.now-e.heard >= longSilence { // what was before is no company for what comes now
		e.past, e.slow, e.pressed, e.first = history{}, 0, 0, window{}
	}
	e.heard = e.now
	e.burst.add(e, s)
	e.dip.drain(e, s)
	if e.now >= e.settled || s.Dropped {
		if e.rested && e.win.empty() {
			e.win.opened = max(e.win.opened, e.now-s.Latency) // nothing ran before; throughput is that of the time since
		}
		e.win.add(s, e.Limit())
		if e.settled == 0 && e.win.ok == windowSamples && e.now < windowTime && e.starting() {
			e.settle(e.win.mean()) // the short ones are the first to end
		}
	}
	e.ebb(s.InFlight)
	e.judgeIfRipe()
}

// Tick lets time pass without a sample. The owner calls it now and then, at least once a second: a window closes by time,
// too, and a dip that nobody ends must not last.
//
// A backend that has stalled gives no samples at all. The limit then stays where it is: all permits are out, so nothing more
// gets in anyway, and there is nothing to learn from.
func (e *Estimator) Tick(now time.Duration) {
	e.now = max(e.now, now)
	e.dip.expire(e)
	e.judgeIfRipe()
}

func (e *Estimator) judgeIfRipe() {
	if !e.ripe() {
		return
	}
	w := e.win
	e.win = window{opened: e.now}
	if w.empty() {
		return
	}
	if e.settled == 0 && e.starting() && w.saturated() && w.mean() > float64(windowTime) {
		e.settle(w.mean()) // the short ones are the first to end
		return
	}
	e.rate, e.latency = w.rate(e.now), w.mean()
	if e.alg == nil {
		return
	}
	e.judge(&w)
}

// ripe tells whether the window is to be judged now. It is asked twice for every sample, so what is usual comes first.
func (e *Estimator) ripe() bool {
	open := e.now - e.win.opened
	switch {
	case open < quickTime:
		return false // no window is shorter
	case e.dip.on():
		return e.dip.ripe(&e.win, open)
	case open >= windowTime && e.win.ok+e.win.dropped >= windowSamples:
		return true
	case open >= windowLongest && open >= e.longest():
		return true
	}
	return e.early()
}

// longest is when a window closes with what there is. While work takes long that is as long as it takes: all that run at once then
// come to an end in a window, and they are enough to learn from, at any limit of 20 or more. Drops are not waited for. On the first
// way up the time it takes is not known yet.
func (e *Estimator) longest() time.Duration {
	switch {
	case e.win.dropShare() > dropShare:
		return windowLongest
	case e.starting() && e.win.saturated():
		return longSilence / 2
	}
	return max(windowLongest, min(time.Duration(1.5*max(e.latency, e.win.mean())), longSilence/2))
}

// early tells whether the window has shown enough before its time.
func (e *Estimator) early() bool {
	return e.starting() && e.win.saturated() && e.win.quick(e.now) && (!e.climb.on || e.climb.follows(e, &e.win))
}

// starting tells whether the limit is still on its first way up.
func (e *Estimator) starting() bool {
	return e.dip.count == 0 && !e.dip.on() && e.climb.failed == 0
}

// dropShare is how much of the work may be dropped before the limit gives way. Below it drops are noise: one in 200 would
// else pull a limit to the floor within seconds.
const dropShare = 0.1

// quicker is the share of the baseline below which latency tells that the baseline is out of date.
const quicker = 0.75

// judge decides what a closed window means.
func (e *Estimator) judge(w *window) {
	if share := w.dropShare(); share > dropShare {
		e.fall(share)
		return
	}
	if w.ok == 0 {
		return
	}
	if e.dip.on() {
		e.dip.end(e, w)
		return
	}
	if e.climb.on {
		e.climb.end(e, w)
		return
	}
	e.past.add(e.rate, e.latency, w.ok)
	if !e.learnFirst(w) {
		return
	}
	if e.faster() {
		e.setBaseline(e.past.mean())
		e.dip.next = e.now + suspicionTime // that may still hold a queue
	}
	if !w.saturated() {
		e.idle(w)
		return
	}
	suspicious := e.suspicious(w)
	if e.pressed == 0 {
		e.pressed = e.now
	}
	e.burst.saturated(e)
	switch {
	case e.dip.count == 0 && e.climb.failed == 0 && e.climb.start(e, w): // up first: a dip below too low a limit says nothing
		return
	case suspicious || e.dip.due(e):
		if e.dip.start(e) {
			return
		}
	case e.climb.start(e, w):
		return
	}
	e.follow(w)
}

// learnFirst takes the first 20 samples for the baseline; fewer, a lone health check, set nothing. It reports whether there
// is a baseline.
func (e *Estimator) learnFirst(w *window) bool {
	if e.baseline > 0 {
		return true
	}
	e.first.ok += w.ok
	e.first.sum += w.sum
	if e.first.ok < windowSamples {
		return false
	}
	e.setBaseline(e.first.mean())
	e.dip.trusted = !w.saturated()
	e.dip.gentle = e.dip.trusted
	return true
}

// idle judges a window in which less was wanted than allowed. The limit does not grow then, whatever the latency: nothing
// shows that more would be good. The baseline follows slowly while clearly fewer are in flight than keep the backend busy.
func (e *Estimator) idle(w *window) {
	e.slow, e.pressed = 0, 0
	enough := e.slots
	if enough == 0 {
		enough = float64(e.limit)
	}
	if float64(w.inFlight) < enough/2 {
		e.learn(e.latency, 0.1*min(1, float64(w.ok)/windowSamples))
	}
	if e.latency > tolerance*e.baseline {
		e.follow(w)
	}
}

// faster tells whether latency is so far below the baseline that it must have become shorter, allowing for the noise of few
// samples, and for twice as much while a single window may decide: a day of overload has some ten thousand dips, and of the windows
// of 20 that follow them one is that quick by chance. A queue only makes latency longer, so this holds whatever the limit is.
func (e *Estimator) faster() bool {
	noise := 1 / math.Sqrt(float64(e.past.size()))
	if e.past.n < len(e.past.means) {
		noise *= 2
	}
	return e.past.mean() < e.baseline*(quicker-noise)
}

// follow lets the algorithm take one step, down only if the limit was not used up.
func (e *Estimator) follow(w *window) {
	r := reading{
		rate: e.past.rate(), known: e.past.n, latency: e.latency, baseline: e.baseline, inFlight: w.inFlight,
		saturated: w.saturated(), slow: e.slow > 0, ebbed: w.least <= e.limit/burstEbb,
	}
	if e.dip.count == 0 {
		r.known = 0
	}
	if r.saturated && !r.slow { // more is kept busy than the last dip could see
		e.slots = max(e.slots, r.rate*e.baseline/float64(time.Second))
	}
	before := e.limit
	after := e.alg.step(e.now, r)
	switch {
	case after > before && !r.saturated:
		e.alg.anchor(before, e.baseline) // it has gone on from there
	case after > before:
		e.set(after, Grew)
	case after < before:
		e.set(after, Shrank)
	}
}

// suspicionTime is how long latency must be unexplained before a dip is worth its cost. A burst on an idle process makes all
// latencies longer for some tenths of a second, until the runtime has spread the new connections; that passes by itself.
const suspicionTime = 500 * time.Millisecond

// suspicious tells whether three windows in a row were slower than the limit explains: at a limit above the number of slots
// the latency is baseline·limit/slots. The allowance grows with the noise of few samples.
func (e *Estimator) suspicious(w *window) bool {
	if e.slots == 0 || w.ok < windowSamples {
		return false
	}
	expected := e.baseline * max(1, float64(e.limit)/e.slots)
	if e.latency > expected*(1.3+1.5/math.Sqrt(float64(w.ok))) {
		if e.slow++; e.slow == 1 {
			e.slowed = w.opened
		}
	} else {
		e.slow = 0
	}
	return e.slow >= 3 && e.now-e.slowed >= suspicionTime && e.now >= e.dip.ended+time.Second
}

// fall gives way to drops, by half of their share, or more if the algorithm says so. If everything fails the limit halves with
// every window, and is at the floor after a few.
func (e *Estimator) fall(share float64) {
	e.dip.abort(e)
	e.climb = climb{until: e.now + time.Second}
	e.past = history{}
	e.set(min(int(float64(e.limit)*(1-share/2)), e.alg.drop(e.now, e.limit)), Fell)
}

// learn moves the baseline by a share of the way to latency.
func (e *Estimator) learn(latency, share float64) {
	e.setBaseline(e.baseline + share*(latency-e.baseline))
}

func (e *Estimator) setBaseline(latency float64) {
	e.baseline = latency
	e.alg.anchor(e.limit, latency)
}

// set moves the limit, within its bounds.
func (e *Estimator) set(limit int, why Change) {
	limit = min(max(limit, e.cfg.Min), e.cfg.Max)
	if limit != e.limit {
		e.limit, e.change, e.changed = limit, why, e.now
	}
	e.alg.anchor(e.limit, e.baseline)
}

// settle leaves out what ends within the given latency: it began under another limit.
func (e *Estimator) settle(latency float64) {
	e.settled = e.now + time.Duration(min(latency, float64(longSilence)))
	e.win = window{opened: e.settled}
}
