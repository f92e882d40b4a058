package shed

import "time"

// recentLatency follows how long successful work takes, for estimates of waiting time: the median of three means of up to
// 32 samples each, so that one hiccup does not make the line look longer than it is. With few requests a mean ends sooner, by
// time: what was true a minute ago says nothing about the line there is now.
type recentLatency struct {
	sum   time.Duration
	n     int
	first time.Duration    // when the first of the n ended
	means [3]time.Duration // zero means not there yet
	at    int
}

// A mean ends with latencyBlock samples, after latencyTime with latencyFew of them, or after ten times that with what there is.
const (
	latencyBlock = 32
	latencyFew   = 8
	latencyTime  = 100 * time.Millisecond
)

func (r *recentLatency) add(now, d time.Duration) {
	if r.n == 0 {
		r.first = now
	}
	r.sum += d
	r.n++
	if age := now - r.first; r.n == latencyBlock || r.n >= latencyFew && age >= latencyTime || age >= 10*latencyTime {
		r.means[r.at] = r.sum / time.Duration(r.n)
		r.at = (r.at + 1) % len(r.means)
		r.sum, r.n = 0, 0
	}
}

// typical is the median of the last three means; before there are any, the mean of what has been seen, or zero.
func (r *recentLatency) typical() time.Duration {
	a, b, c := r.means[0], r.means[1], r.means[2]
	switch {
	case a == 0 && r.n == 0:
		return 0
	case a == 0:
		return r.sum / time.Duration(r.n)
	case b == 0:
		return a
	case c == 0:
		return min(a, b)
	}
	return max(min(a, b), min(max(a, b), c))
}

// usualLatency is how long successful work usually takes: the mean of the last so many, which a burst or two do not move by much. It is
// for a gate whose routes are not watched; a lane has its own. The zero value has seen nothing.
type usualLatency struct {
	mean float64 // ns
	n    int     // how many are in it, at most pulseMemory
}

func (u *usualLatency) add(d time.Duration) {
	u.n = min(u.n+1, pulseMemory)
	u.mean += (float64(d) - u.mean) / float64(u.n)
}

// time is 0 while too little is known.
func (u *usualLatency) time() time.Duration {
	if u.n < pulseFirst {
		return 0
	}
	return time.Duration(u.mean)
}

// usual is how long work like that of s usually takes; 0 while that is not known.
func (g *gate) usual(s *slot) time.Duration {
	if s.lane == nil {
		return g.unwatched.time()
	}
	return s.lane.usualTime()
}

// service is what a request is given to be served in after its wait: half as much again as one takes on average, which with
// exponential times is enough for three of four.
func (g *gate) service() time.Duration { return g.latency.typical() * 3 / 2 }

// expectedWait is Little's law for somebody with ahead others before it: they and itself each take their share of the
// limit. A dip of the estimate is over before it matters, so the limit it returns to counts.
func (g *gate) expectedWait(ahead int) time.Duration {
	return time.Duration(ahead+1) * g.latency.typical() / time.Duration(max(1, g.settled()))
}

// drain is how long the line and what is running need to clear.
func (g *gate) drain() time.Duration { return g.expectedWait(g.line.Len()) + g.latency.typical() }
