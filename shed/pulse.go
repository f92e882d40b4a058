package shed

import (
	"math"
	"time"
)

// pulse watches how long the work of one route takes, and says when that is far longer than usual.
//
// It is Page's cumulative sum test (1954) for a mean that has become slowFactor times the usual one, as if times were exponentially
// distributed. Work of time x, in units of the usual time, is worth
//
//	(1 − 1/slowFactor)·x − ln slowFactor
//
// in evidence, and work that still runs, or whose caller has left, the first term of it: so work that never ends shows as well, and
// after some 16 × the usual time, all work together, not after the first has ended. Evidence above the least so far by slowAt is
// the alarm: with exponential times and no change, one in e^12 requests gives a false one. Real times have longer tails, so one
// request is worth at most slowMost; and they may be all the same, so that of many that start together none ends for a while: what
// runs counts only when its age is twice the usual time on average. Where times vary little, less is enough of both.
//
// The alarm ends when the evidence is gone: after some 40 requests of the usual time.
//
// The usual time is the mean of the last 256 requests, without those during an alarm, its own or another route's: were all of them
// slow, the others would take that for usual, and the first that was noticed would look slow beside them. It doubles in five minutes
// of its own alarm: what is slow for that long is what there is.
type pulse struct {
	usual  float64 // ns; 0 while unknown
	square float64 // the mean of the squares
	n      int     // requests in it, at most pulseMemory
	recent float64 // a quick mean
	last   float64 // the latest
	heard  time.Duration

	running int
	sum     time.Duration // of the starting times of what runs

	common   float64 // how much slower everything is, this route not counted
	evidence float64 // without what runs, above the least total so far; may be negative by what runs
	slow     bool
	held     bool // a route is slow, and is compared with what was usual here
}

const (
	slowFactor  = 4
	slowAt      = 8
	slowMost    = 4.4
	pulseMemory = 256
	pulseFirst  = 32 // requests before there is a usual time
	pulseForget = 5 * time.Minute
)

var lnSlow = math.Log(slowFactor)

// started and left count what runs.
func (p *pulse) started(now time.Duration) {
	p.running++
	p.sum += now // may wrap round; only differences count
}

func (p *pulse) left(started time.Duration) {
	p.running--
	p.sum -= started
}

// ages is how long all that runs has run, together.
func (p *pulse) ages(now time.Duration) float64 {
	return float64(time.Duration(p.running)*now - p.sum)
}

// pending is the evidence of what runs.
func (p *pulse) pending(now time.Duration) float64 {
	return min((1-1./slowFactor)*p.ages(now)/p.unit(), slowMost*float64(p.running))
}

// unit is the time that work would take if this route were as all others are.
func (p *pulse) unit() float64 { return p.usual * max(p.common, 1) }

// ended takes in work that took so long. With ok it has come to its end, otherwise its caller has left.
func (p *pulse) ended(now, took time.Duration, ok bool) {
	x := float64(took)
	if p.n >= pulseFirst {
		p.evidence += min((1-1./slowFactor)*x/p.unit(), slowMost)
		if ok {
			p.evidence -= lnSlow
		}
		p.evidence = min(p.evidence, 2*slowAt)
		if pending := p.pending(now); p.evidence+pending <= 0 {
			p.evidence, p.slow = -pending, false
		}
	}
	if !ok {
		return
	}
	p.heard, p.last = now, x
	if p.recent += (x - p.recent) / 16; p.n == 0 {
		p.recent = x
	}
	if p.slow || p.held {
		return
	}
	if p.n >= pulseFirst {
		x = min(x, 6*p.unit()) // one that hangs says little about the others
	}
	p.n = min(p.n+1, pulseMemory)
	p.usual += (x - p.usual) / float64(p.n)
	p.square += (x*x - p.square) / float64(p.n)
}

// regular is 1 if times vary as much as exponential ones or more, and more if they vary less, up to 3.
func (p *pulse) regular() float64 {
	mean := p.usual * p.usual
	return min(max(0.7*mean/max(p.square-mean, 1), 1), 3)
}

// suspect reports whether there is enough evidence for an alarm.
func (p *pulse) suspect(now time.Duration) bool {
	if p.n < pulseFirst {
		return false
	}
	k := p.regular()
	at, pending := slowAt/k, p.pending(now)
	return p.evidence+pending > at && (p.evidence > at || p.ages(now) > (1+1/k)*float64(p.running)*p.unit())
}

// slower is by how much recent work took longer than usual.
func (p *pulse) slower() float64 { return max(p.recent, p.last) / p.usual }

// age lets an alarm that lasts become what is usual.
func (p *pulse) age(took time.Duration) {
	if p.slow {
		grown := math.Exp2(float64(took) / float64(pulseForget))
		p.usual, p.square = p.usual*grown, p.square*grown*grown
	}
}
