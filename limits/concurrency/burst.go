package concurrency

import (
	"math"
	"time"
)

// burst raises the limit for work that comes in bursts. What else raises it looks at windows in which the limit was used up all the
// time; but when a hundred requests of a second each come at once, the limit is full in a moment, the rest are turned away, and when the
// first end there is nobody left who wants more. Throughput says nothing then, for all end together and nothing follows.
//
// So it looks at shortages. One begins when somebody is turned away for want of room, and is over when all that ran then has ended. If
// work took no longer in shortages than such work usually does, there was no queue behind, and twice as much may be tried. From then on,
// what counts is work of times at which more ran than before: if it took longer, more at once was of no use, and the limit goes back.
// All of it has to count, up to the last: of those that find a queue behind, the first to end have not waited.
//
// Overload that lasts is not its business: there usual is what the queue makes of it, and windows and dips know better.
type burst struct {
	ok          int     // samples in shortages that have a latency and a usual one
	took, usual float64 // the sums of both, in ns
	inFlight    int     // the most there were
	dropped     bool    // whether any were drops
	limit       int     // under which all of that was

	tried  int           // the limit before the doubling on trial; 0 without one
	from   int           // the limit before the first doubling
	failed int           // trials in a row
	pause  int           // how many times there has to be room until the next
	lasted time.Duration // when saturation was last lasting; 0 if it never was
}

const (
	burstSamples = 60  // the mean of so many exponential times is off by an eighth
	burstRoom    = 1.2 // of the usual time: twice as much as there are slots for takes 1.5 times as long
	burstQueue   = 1.5 // of the usual time, at a limit that held before: something behind has changed
	burstPauses  = 6   // the longest pause is 2 to the power of this
	burstEbb     = 8   // demand is over when an eighth of the limit is in flight
	burstAlone   = time.Minute
)

// add takes in a sample.
func (b *burst) add(e *Estimator, s Sample) {
	limit := e.limit
	if e.climb.on {
		limit = e.climb.from // what ends now began before
	}
	switch {
	case limit == b.limit:
	case b.tried > 0 && limit > b.tried:
		b.limit = limit // the algorithm has taken a step; it still is more than before
	default:
		if b.tried > 0 {
			b.fail()
		}
		b.forget()
		b.limit, b.from = limit, 0
	}
	if !s.Short {
		return
	}
	b.inFlight = max(b.inFlight, s.InFlight)
	b.dropped = b.dropped || s.Dropped
	if !s.Dropped && s.Latency > 0 && s.Usual > 0 {
		b.ok++
		b.took += float64(s.Latency)
		b.usual += float64(s.Usual)
	}
}

// forget drops what was collected.
func (b *burst) forget() { b.ok, b.took, b.usual, b.inFlight, b.dropped = 0, 0, 0, 0, false }

// ebb notes that demand has ended if hardly anything is in flight any more. What is being tried or measured cannot be judged by what
// follows, and saturation begins anew with the next burst.
func (e *Estimator) ebb(inFlight int) {
	e.rested = inFlight <= 1
	if inFlight > e.Limit()/burstEbb {
		return
	}
	e.pressed = 0
	if e.dip.on() {
		e.dip.abort(e)
		e.dip.cut = true
	}
	e.climb.abort(e)
}

// Trial is how many in flight are no more than what is known to be well, while the limit is higher on trial; otherwise it is out of
// reach. To go above is to begin a shortage, as if somebody had been turned away.
func (e *Estimator) Trial() int {
	if e.burst.tried > 0 {
		return e.burst.tried
	}
	return math.MaxInt
}

// Eased tells that a shortage is over: all that ran when somebody was last turned away, or when more ran than Trial, has ended. So many
// are in flight now.
func (e *Estimator) Eased(now time.Duration, inFlight int) {
	e.now = max(e.now, now)
	b := &e.burst
	switch {
	case e.alg == nil:
		return
	case b.lasted > 0 && e.now-b.lasted < burstAlone:
		b.forget()
		return
	case b.ok < burstSamples, inFlight > e.Limit()/2: // the latter: somebody waits, or others still come
		return
	}
	stretch, used := b.took/b.usual, b.inFlight
	known := !b.dropped && used >= min(b.limit, e.Trial())
	b.forget()
	if !known {
		return
	}
	e.dip.abort(e)
	e.climb.abort(e)
	b.judge(e, stretch, used)
}

// judge decides what it means that work took so many times as long as usual in shortages in which so many were in flight.
func (b *burst) judge(e *Estimator, stretch float64, used int) {
	tried := b.tried
	b.tried = 0
	switch {
	case tried > 0 && stretch > burstRoom:
		e.set(tried, Returned)
		b.fail()
	case tried > 0:
		b.failed = 0
		if used >= e.limit {
			b.try(e)
		}
	case stretch > burstQueue && b.from > 0:
		e.set(max(e.limit/2, min(b.from, e.limit)), Returned)
	case stretch > burstRoom:
	case b.pause > 0:
		b.pause--
	default:
		b.try(e)
	}
	b.limit = e.limit
}

// fail ends a trial. Trials are to be rare where they fail, for what they show becomes a part of what is usual.
func (b *burst) fail() {
	b.tried, b.pause = 0, 1<<min(b.failed, burstPauses)
	b.failed++
}

// try doubles the limit.
func (b *burst) try(e *Estimator) {
	if e.limit >= e.cfg.Max {
		return
	}
	if b.tried = e.limit; b.from == 0 {
		b.from = e.limit
	}
	e.set(2*e.limit, Doubled)
}

// saturated notes saturation that has lasted, for longer than bursts of slow work do. The windows know better then, also of a trial.
func (b *burst) saturated(e *Estimator) {
	if e.now-e.pressed >= max(dipLasting, time.Duration(3*e.latency)) {
		b.lasted, b.tried = e.now, 0
	}
}
