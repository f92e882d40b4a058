package concurrency

import (
	"math"
	"time"
)

// dip lowers the limit for a moment below what keeps the backend busy, so that its queue empties and the latency without
// queueing shows. Without it a saturated service has no baseline: all it ever sees is its own queue. It costs a quarter of
// the throughput for some tenths of a second every 8 s or more, and only while there is too much to do.
//
// The mean of a dip is taken, over at least 50 samples, and not the minimum over time, which noise drives down for ever.
type dip struct {
	phase   dipPhase
	limit   int           // in effect during the dip
	started time.Duration // when the first of a row of dips began
	phased  time.Duration // when the phase began
	rate    float64       // before the row, or more if a dip has shown more
	mean    float64       // before the row
	above   int           // the limit before this dip, which is another dip's in a row
	was     float64       // the latency at that limit
	longest float64       // latency that may be expected at first
	next    time.Duration // none before, unless latency is suspicious
	ended   time.Duration // end of the last one
	count   int           // how many agree on the baseline; 0 before the first
	row     int           // how many in this row
	trusted bool          // whether the baseline is believed to hold no queue
	gentle  bool          // whether the baseline is near enough for a dip of the usual depth
	cut     bool          // whether demand ended during the last one, before it had measured anything
}

type dipPhase uint8

const (
	noDip     dipPhase = iota
	draining           // more are in flight than the dip allows
	measuring          // samples count, after one more latency to settle
)

const (
	dipDepth   = 0.75 // of the slots as they seem
	dipDeep    = 0.5  // while all of the latency turns out to be queue
	dipStep    = 0.4  // of the limit before, at least
	dipSamples = 50
	dipPeriod  = 8 * time.Second // between dips in the long run
	dipRow     = 10              // at most so many in a row
	dipLasting = time.Second     // how long saturation must have lasted before a dip is due
)

func (d *dip) on() bool { return d.phase != noDip }

// due tells whether it is time to measure again. A backlog that drains, after a hiccup, is no time for less: once the
// baseline is trusted the next dip waits for overload that lasts.
func (d *dip) due(e *Estimator) bool {
	lasting := dipLasting
	if d.cut {
		lasting = max(lasting, time.Duration(3*e.latency))
	}
	return e.now >= d.next && (!d.trusted && !d.cut || e.now-e.pressed >= lasting)
}

// start begins a dip. It reports false if the limit is too near to its floor for one.
func (d *dip) start(e *Estimator) bool {
	d.rate, d.mean = e.past.rate(), e.past.mean()
	d.started, d.row, d.longest, d.was = e.now, 0, d.mean, d.mean
	share := dipDepth
	if !d.gentle {
		share = dipDeep
	}
	if !e.alg.measures() || !d.lower(e, d.depth(e, share)) {
		d.next = e.now + dipPeriod
		return false
	}
	e.change, e.changed = Dipped, e.now
	return true
}

// depth is the limit at which a share of the slots is busy, as far as is known.
func (d *dip) depth(e *Estimator, share float64) int {
	return int(share * d.rate * e.baseline / float64(time.Second))
}

// lower enters the next dip of a row, at the given limit but not at less than 0.4 of the one before: what is known may be
// wrong by any factor, and throughput is lost below the number of slots. A few steps find any number.
func (d *dip) lower(e *Estimator, to int) bool {
	d.above = e.Limit()
	to = max(e.cfg.Min, to, int(dipStep*float64(d.above)))
	if d.row >= dipRow || float64(to) > 0.9*float64(d.above) {
		return false
	}
	d.row++
	d.phase, d.limit, d.phased = draining, to, e.now
	e.win = window{opened: e.now}
	return true
}

// drain waits until no more are in flight than the dip allows, and then as long again as a request takes.
func (d *dip) drain(e *Estimator, s Sample) {
	if d.phase == draining && s.InFlight <= d.limit {
		d.phase, d.phased = measuring, e.now
		e.settle(d.longest)
	}
}

// ripe tells whether the window of a dip has been open for long enough: the quick ones of a set of requests come back first, so a
// dip shorter than 1.5 latencies would see too many of them.
func (d *dip) ripe(w *window, open time.Duration) bool {
	if open >= d.patience() {
		return true
	}
	return d.phase == measuring && w.ok+w.dropped >= dipSamples && open >= max(windowTime/2, time.Duration(1.5*w.mean()))
}

// patience is how long a phase of the dip may take: some latencies, and not less than 1 s.
func (d *dip) patience() time.Duration {
	return time.Duration(min(max(6*d.mean, float64(time.Second)), float64(10*time.Second)))
}

// expire gives up a dip that does not get on: the backend has stalled, or nothing is asked of it any more.
func (d *dip) expire(e *Estimator) {
	if d.on() && e.now-d.phased > 2*d.patience() {
		d.abort(e)
	}
}

func (d *dip) abort(e *Estimator) {
	if d.on() {
		d.over(e, e.now+dipPeriod/4)
	}
}

// end judges the latency seen in a dip.
func (d *dip) end(e *Estimator, w *window) {
	if d.phase == draining || w.ok < windowSamples {
		d.abort(e)
		return
	}
	d.count++
	seen, quickened := e.latency, e.rate > 1.3*d.rate
	d.rate = max(d.rate, e.rate)
	switch {
	case quickened:
		// Less work at once got more done. No queue does that: what was slow before has passed, and so have its figures.
		d.count = 1
		e.setBaseline(min(seen, e.baseline))
	case seen < 0.8*e.baseline, !d.trusted && d.allQueue(seen):
		// The baseline held a queue. Perhaps this dip was not deep enough either: again, from the better one.
		d.count = 1
		e.setBaseline(min(seen, e.baseline))
		if d.again(e, seen) {
			return
		}
	case seen > 1.25*e.baseline && d.followed(seen):
		if d.again(e, seen) { // still all queue: slots are gone
			return
		}
	case seen > 1.4*e.baseline:
		d.count = 1
		e.setBaseline(seen) // less work at once did not help: the service itself has become slower
	case seen > 1.25*e.baseline:
		e.learn(seen, 0.5) // perhaps
	default:
		e.learn(seen, max(0.2, 1/float64(d.count)))
	}
	d.conclude(e, quickened)
}

// again dips once more in the same row.
func (d *dip) again(e *Estimator, seen float64) bool {
	share := dipDepth
	if d.allQueue(seen) {
		share = dipDeep
	}
	d.was, d.longest = seen, seen
	return d.lower(e, d.depth(e, share))
}

// allQueue tells whether latency is in proportion to the limit, so that even now the backend has more than it can do.
func (d *dip) allQueue(seen float64) bool {
	return seen < 1.15*d.was*float64(d.limit)/float64(d.above)
}

// followed tells whether latency fell as the limit did, which makes it a queue's, rather than not at all; the geometric mean
// of both is between. Where the limit is 1.4 times the slots and the service has become slower, 0.7 of the latency remain
// however deep the dip, and that is above the mean for the usual one.
func (d *dip) followed(seen float64) bool {
	return seen < d.was*math.Sqrt(float64(d.limit)/float64(d.above))
}

// conclude ends the dip with what it has shown.
func (d *dip) conclude(e *Estimator, quickened bool) {
	d.trusted, d.gentle, d.cut = true, true, false
	pause := max(dipPeriod, 20*(e.now-d.started))
	if d.count < 4 { // a single dip is off by a seventh when service times vary; soon there are more
		pause = max(dipPeriod>>(4-d.count), 10*(e.now-d.started))
	}
	if quickened { // it was not the same backend before and in the dip: once more, soon
		pause = dipPeriod / 16
	}
	d.over(e, e.now+e.jitter(pause))
	e.slots = d.rate * e.baseline / float64(time.Second)
	// If the limit is far from where the steps will end, go there at once.
	if end := e.alg.rest(d.rate, e.baseline); float64(e.limit) > 1.3*end && !quickened {
		e.set(int(math.Ceil(end)), Measured)
	}
}

// over ends the dip and puts the next one at next.
func (d *dip) over(e *Estimator, next time.Duration) {
	d.phase, d.ended, d.next = noDip, e.now, next
	e.change, e.changed = Recovered, e.now
	e.slow = 0
	e.past = history{}
	e.settle(e.latency)
}

// jitter spreads d by ±10 %, so that no two instances stay in step by chance. The last digits of the measured latency are chance
// enough, and keep the machine a function of its input.
func (e *Estimator) jitter(d time.Duration) time.Duration {
	return d/10*9 + time.Duration(float64(d)/5*float64(uint64(e.latency)%997)/997)
}
