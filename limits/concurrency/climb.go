package concurrency

import "time"

// climb doubles the limit while that brings more throughput and no queue. The gradient alone grows by 0.8 per window: from
// 20 to 128 it would need 135 windows. The same way leads back up after drops have pulled the limit to the floor.
type climb struct {
	on         bool
	until      time.Duration // no attempt before
	from       int           // the limit before
	rate, mean float64       // throughput and latency before
}

// pauseAfterFailure is how long after a failed attempt the next may follow.
const pauseAfterFailure = 4 * time.Second

// start tries twice the limit if it is used up and the latency shows no queue. It reports whether it did.
func (c *climb) start(e *Estimator, w *window) bool {
	if e.now < c.until || e.limit >= e.cfg.Max || w.ok < windowSamples || max(e.latency, e.past.mean()) > 1.1*e.baseline ||
		e.latency < quicker*e.baseline { // a baseline out of date hides a queue
		return false
	}
	*c = climb{on: true, from: e.limit, rate: e.rate, mean: e.latency}
	e.set(2*e.limit, Doubled)
	e.settle(e.latency)
	return true
}

// end judges the attempt by the first window that saw only the doubled limit.
func (c *climb) end(e *Estimator, w *window) {
	c.on = false
	e.past = history{}
	e.past.add(e.rate, e.latency, w.ok)
	switch {
	case !w.saturated(): // so much was not wanted: keep what was used
		e.set(max(c.from, w.inFlight), Returned)
	case e.rate > 1.3*c.rate && e.latency < 1.5*c.mean:
		// More came of it; the next window may double again.
	default:
		// The throughput seen now is all there is: go to where the gradient would end, but not outside of what was tried.
		c.until = e.now + pauseAfterFailure
		e.set(min(max(int(rest(e.rate, e.baseline)), c.from), e.limit), Returned)
		e.settle(e.latency)
	}
	e.grad.anchor(e.limit, e.baseline)
}
