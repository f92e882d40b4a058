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
	rate    float64       // before the dip
	mean    float64       // before the dip
	depth   float64       // share of the slots as they seem now
	longest float64       // latency that may be expected at first
	next    time.Duration // none before, unless latency is suspicious
	ended   time.Duration // end of the last one
	count   int           // how many have been measured
	row     int           // how many in this row
}

type dipPhase uint8

const (
	noDip     dipPhase = iota
	draining           // more are in flight than the dip allows
	measuring          // samples count, after one more latency to settle
)

const (
	dipDepth   = 0.75
	halfDepth  = 0.5 // the first time, and while nearly all of the latency turns out to be queue
	dipSamples = 50
	dipPeriod  = 8 * time.Second // between dips in the long run
	dipRow     = 8               // at most so many in a row
)

func (d *dip) on() bool { return d.phase != noDip }

// start begins a dip. It reports false if the limit is too near to its floor for one.
func (d *dip) start(e *Estimator) bool {
	d.rate, d.mean = e.past.rate(), e.past.mean()
	d.started, d.row, d.depth, d.longest = e.now, 0, dipDepth, d.mean
	if d.count == 0 {
		d.depth = halfDepth
	}
	if !d.lower(e) {
		d.next = e.now + dipPeriod
		return false
	}
	e.change, e.changed = Dipped, e.now
	return true
}

// lower enters the next dip of a row.
func (d *dip) lower(e *Estimator) bool {
	low := max(e.cfg.Min, int(d.depth*d.rate*e.baseline/float64(time.Second)))
	if d.row >= dipRow || float64(low) > 0.9*float64(e.Limit()) {
		return false
	}
	d.row++
	d.phase, d.limit, d.phased = draining, low, e.now
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

// needs says how long the window of a dip collects: the quick ones of a set of requests come back first, so a dip shorter
// than 1.5 latencies would see too many of them.
func (d *dip) needs(w *window) (least, longest time.Duration, samples int) {
	longest = d.patience()
	if d.phase == draining {
		return longest, longest, math.MaxInt
	}
	return max(windowTime/2, time.Duration(1.5*w.mean())), longest, dipSamples
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
	seen := e.latency
	switch {
	case seen < 0.8*e.baseline:
		// The baseline held a queue. The dip was not deep enough either, perhaps: again, from the better one.
		d.depth, d.longest = dipDepth, seen
		if seen < 0.6*e.baseline {
			d.depth = halfDepth
		}
		e.setBaseline(seen)
		if d.lower(e) {
			return
		}
	case seen > 1.4*e.baseline, seen > 1.25*e.baseline && d.mean < 1.25*seen:
		e.setBaseline(seen) // less work at once did not help much: the service itself has become slower
	default:
		e.learn(seen, max(0.2, 1/float64(d.count)))
	}
	took := e.now - d.started
	d.over(e, e.now+e.jitter(max(dipPeriod>>max(0, 4-d.count), 20*took)))
	e.slots = d.rate * e.baseline / float64(time.Second)
	// If the limit is far from where the gradient will end, go there at once instead of a tenth per window.
	if end := rest(d.rate, e.baseline); float64(e.limit) > 1.3*end {
		e.set(int(math.Ceil(end)), Measured)
		e.grad.anchor(e.limit, e.baseline)
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

// jitter spreads d by ±10 %, so that instances behind one backend do not dip in step. The last digits of the measured
// latency are chance enough, and keep the machine a function of its input.
func (e *Estimator) jitter(d time.Duration) time.Duration {
	return d/10*9 + time.Duration(float64(d)/5*float64(uint64(e.latency)%997)/997)
}
