package concurrency

import (
	"time"

	"github.com/platinummonkey/go-concurrency-limits/limit"
)

// Constants of AIMD, as the library chose them.
const (
	aimdStep  = 1
	aimdRatio = 0.9
)

// aimd is additive increase, multiplicative decrease of go-concurrency-limits (Chiu and Jain 1989), used for its arithmetic
// only:
//
//	too many dropped: L ← min(L − 1, 0.9·L)    else, used up: L ← L + 1
//
// It does not look at latency, so only failure stops it: a backend that answers late but answers sees the limit grow to its
// maximum, one per window. The library has no bounds of its own, so that it must start anew at ours.
type aimd struct {
	low, high int
	lib       *limit.AIMDLimit
	last      int
}

func newAIMD(cfg Config) *aimd {
	a := &aimd{low: cfg.Min, high: cfg.Max}
	a.anchor(cfg.Initial, 0)
	return a
}

func (a *aimd) anchor(limitNow int, _ float64) {
	limitNow = min(max(limitNow, a.low), a.high)
	if a.lib != nil && limitNow == a.last {
		return
	}
	a.last = limitNow
	a.lib = limit.NewAIMDLimit("", a.last, aimdRatio, aimdStep, nil)
}

func (a *aimd) step(now time.Duration, r reading) int {
	if !r.saturated {
		return a.last
	}
	return a.feed(now, r.latency, max(r.inFlight, a.last), false)
}

func (a *aimd) drop(now time.Duration, limitNow int) int {
	return min(limitNow, a.feed(now, 1, limitNow, true))
}

func (a *aimd) feed(now time.Duration, latency float64, inFlight int, dropped bool) int {
	a.lib.OnSample(int64(now), int64(latency), inFlight, dropped)
	got := a.lib.EstimatedLimit()
	if got < a.low || got > a.high {
		a.lib = nil
		a.anchor(got, 0)
		return a.last
	}
	a.last = got
	return got
}

// rest is nowhere: no throughput tells AIMD where to stop.
func (a *aimd) rest(float64, float64) float64 { return 0 }

func (a *aimd) measures() bool { return false }
