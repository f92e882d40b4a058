package concurrency

import "time"

// climb doubles the limit while that brings more throughput and no queue. Gradient2 alone grows by 0.8 per window: from
// 20 to 128 it would need 135 windows. The same way leads back up after drops have pulled the limit to the floor.
type climb struct {
	on         bool
	until      time.Duration // no attempt before
	failed     int           // attempts in a row
	from       int           // the limit before
	rate, mean float64       // throughput and latency before
	ok         int           // samples that they rest on
}

// After a failed attempt the next follows after a pause that doubles from the shorter to the longer: a first failure may be
// noise, and a second look soon is cheap, but every one fills the backend's queue for some tenths of a second.
const (
	shortestPause = 500 * time.Millisecond
	longestPause  = 8 * time.Second
)

// kneeSamples is how many samples a window must have to tell a throughput that follows a part of the way only from one that follows.
const kneeSamples = 75

// How far above the baseline latency may be for an attempt. The first attempts are generous, for a baseline from few samples
// is easily too low, and what counts in the end is whether throughput follows. Where the limit rests latency is 1.2 times
// the baseline or more, so that later attempts are only made below that.
const (
	generous = 1.4
	strict   = 1.1
)

// start tries twice the limit if it is used up and the latency shows no queue. It reports whether it did.
func (c *climb) start(e *Estimator, w *window) bool {
	queueless := strict * e.baseline
	if c.failed == 0 {
		queueless = generous * e.baseline
	}
	if e.now < c.until || e.limit >= e.cfg.Max || w.ok < windowSamples || max(e.latency, e.past.mean()) > queueless ||
		e.latency < quicker*e.baseline { // a baseline out of date hides a queue
		return false
	}
	c.on, c.from, c.rate, c.mean, c.ok = true, e.limit, e.rate, e.latency, w.ok
	e.set(2*e.limit, Doubled)
	e.settle(e.latency)
	return true
}

// What throughput and latency are to be of what they were for a doubling to have succeeded clearly.
const (
	clearRate = 1.5
	clearMean = 1.25
)

// follows tells whether throughput follows so clearly that few samples suffice. Were it all queue, throughput would be what it
// was and latency twice that: of 50 samples each by chance would be off by a fifth, and both at once never are by so much.
func (c *climb) follows(e *Estimator, w *window) bool {
	return w.rate(e.now) > clearRate*c.rate && w.mean() < clearMean*c.mean
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
		e.dip.gentle = true
		if min(w.ok, c.ok) >= kneeSamples && e.rate < 1.75*c.rate && e.latency > strict*c.mean {
			// It followed a part of the way, and the rest is a queue: this is the knee.
			c.fail(e)
			return
		}
		// Throughput followed, so there was hardly a queue: the window says more of the baseline than the first samples of all,
		// among which the short ones are too many.
		c.failed = 0 // the next window may double again,
		clear := e.rate > clearRate*c.rate && e.latency < clearMean*c.mean
		e.learn(e.latency, 0.5)
		if clear { // or this one
			c.start(e, w)
		}
	default:
		c.fail(e)
	}
}

// abort gives up an attempt that nothing shows the worth of.
func (c *climb) abort(e *Estimator) {
	if c.on {
		c.on = false
		e.set(c.from, Returned)
	}
}

// fail ends the attempts for now. The throughput seen now is all there is: go to where the algorithm would end, but not outside
// of what was tried.
func (c *climb) fail(e *Estimator) {
	c.until = e.now + min(shortestPause<<min(c.failed, 10), longestPause)
	c.failed++
	e.past = history{} // the latency was another limit's
	e.set(min(max(int(e.alg.rest(e.rate, e.baseline)), c.from), e.limit), Returned)
	e.settle(e.latency)
}
