package concurrency

import (
	"math"
	"time"

	"github.com/platinummonkey/go-concurrency-limits/limit"
)

// never is a probe multiplier with which the library does not probe in years. Its probes take the latency of the moment, a
// queue included, for the one without: saturated at N = 16 the limit is 50 after an hour and 172 after ten. What it offers
// to switch them off, −1, becomes 30.
const never = math.MaxInt32

// vegas is Vegas of go-concurrency-limits (after TCP Vegas, Brakmo and Peterson 1995), used for its arithmetic only. It
// estimates how many of those in flight wait inside the backend and keeps that small:
//
//	q = ⌈L·(1 − baseline/latency)⌉, l = 1 below a limit of 100, 2 below 1000
//	q < l: L + 6·l    q < 3·l: L + l    q > 6·l: L − l
//
// The baseline is ours: the library's is the lowest latency it ever saw, which with service times that vary is much too low.
type vegas struct {
	low, high int
	lib       *limit.VegasLimit
	base      told
	last      int // the last sane value
}

func newVegas(cfg Config) *vegas {
	v := &vegas{low: cfg.Min, high: cfg.Max}
	v.anchor(cfg.Initial, 0)
	return v
}

// told is a measurement of the library that is told its value and learns nothing from samples.
type told float64

func (t *told) Add(float64) (float64, bool)    { return float64(*t), false }
func (t *told) Get() float64                   { return float64(*t) }
func (t *told) Reset()                         {}
func (t *told) Update(func(v float64) float64) {}

// anchor starts again at limit with the given baseline.
func (v *vegas) anchor(limitNow int, baseline float64) {
	v.base = told(baseline)
	limitNow = min(max(limitNow, v.low), v.high)
	if v.lib != nil && limitNow == v.last {
		return // the library reads the baseline from v.base
	}
	v.last = limitNow
	v.lib = limit.NewVegasLimitWithRegistry("", v.last, &v.base, v.high, 1, nil, nil, nil, nil, nil, never, nil, nil)
}

func (v *vegas) step(now time.Duration, r reading) int {
	return v.feed(now, r.latency, r.inFlight, false)
}

// drop takes one step down for a window of drops.
func (v *vegas) drop(now time.Duration, limitNow int) int {
	return min(limitNow, v.feed(now, float64(v.base), limitNow, true))
}

// feed hands one window to the library. Latency below the baseline is raised to it: the library takes it for a new baseline
// and returns, before it has looked at the drop.
func (v *vegas) feed(now time.Duration, latency float64, inFlight int, dropped bool) int {
	latency = max(latency, math.Ceil(float64(v.base)))
	if !(v.base >= 1) || !(latency <= math.MaxInt64/2) {
		return v.last
	}
	v.lib.OnSample(int64(now), int64(latency), inFlight, dropped)
	got := v.lib.EstimatedLimit()
	if got < v.low || got > v.high { // the library knows no lower bound but 1
		v.lib = nil
		v.anchor(got, float64(v.base))
		return v.last
	}
	v.last = got
	return got
}

// rest is N and the middle of what may wait.
func (v *vegas) rest(rate, baseline float64) float64 {
	busy := rate * baseline / float64(time.Second)
	return busy + 4.5*max(1, math.Floor(math.Log10(max(busy, 1))))
}

func (v *vegas) measures() bool { return true }
