package concurrency

import (
	"math"
	"time"

	"github.com/platinummonkey/go-concurrency-limits/limit"
)

// Constants of Gradient2, as its authors chose them.
const (
	queueSize = 4   // growth per step while there is no queueing, before smoothing; less for small limits
	smoothing = 0.2 // share of the new value in the next
)

// tolerance is how much slower than the baseline work may get before the limit shrinks. 1 would make the noise of the
// samples itself shrink it, since the gradient is cut off at 1 and so errs downward only; Netflix's Java uses 1.5. With a
// baseline that is right, 1.2 and a queue size of 4 come to rest at 1.2·N + 4 for N slots.
const tolerance = 1.2

// frozen is so long a window for the library's average that it does not move any more after its first ten samples. Its own
// baseline follows overload: saturated at N = 16 it lets the limit reach 73 after an hour, and in the end the maximum.
const frozen = math.MaxInt32

// gradient is Gradient2 of go-concurrency-limits, used for its arithmetic only:
//
//	g  = clamp(tolerance·baseline/latency, 0.5, 1)
//	L' = 0.8·L + 0.2·(g·L + queue)
//
// The baseline is ours: the library is primed with it and built anew when it changes. The library must never see a time
// of 0 or less (0/0 makes its estimate NaN for ever), ignores drops, and does not clamp where it starts.
type gradient struct {
	low, high int
	lib       *limit.Gradient2Limit
	baseline  float64 // in ns, what lib is primed with
	last      int     // the last sane value
}

// anchor starts again at limit with the given baseline. A baseline that moved by 2 % or less is not worth a new library.
func (g *gradient) anchor(limitNow int, baseline float64) {
	limitNow = min(max(limitNow, g.low), g.high)
	if g.lib != nil && limitNow == g.last && math.Abs(baseline-g.baseline) <= 0.02*baseline {
		return
	}
	g.last = limitNow
	g.baseline = baseline
	g.lib = nil
	if !(baseline >= 1) || math.IsInf(baseline, 1) {
		return
	}
	lib, err := limit.NewGradient2Limit("", g.last, g.high, g.low, queue, smoothing, frozen, nil, nil)
	if err != nil { // only for low > high, which Config refuses
		return
	}
	for range 10 { // none in flight: these set the average and leave the estimate alone
		lib.OnSample(0, int64(tolerance*baseline), 0, false)
	}
	g.lib = lib
}

// step feeds one window and returns the new limit.
func (g *gradient) step(now time.Duration, r reading) int {
	if g.lib == nil || !(r.latency >= 1) || r.latency > math.MaxInt64/2 {
		return g.last
	}
	g.lib.OnSample(int64(now), int64(r.latency), r.inFlight, false)
	got := g.lib.EstimatedLimit()
	if got < g.low || got > g.high { // NaN shows as a number far outside: a fault, so start again from the last good one
		g.lib = nil
		g.anchor(g.last, g.baseline)
		return g.last
	}
	g.last = got
	return got
}

// queue is the growth for a limit: 4, but not more than a third of the limit, and at least 1. A queue of 4 in front of one or
// two slots would be most of a request's latency.
func queue(limit int) int { return min(max(limit/3, 1), queueSize) }

// drop: the library ignores drops.
func (g *gradient) drop(_ time.Duration, limitNow int) int { return limitNow }

// rest is where the steps end at a given throughput: with L = rate·latency (Little), L' = L solves to
// tolerance·rate·baseline + queue(L).
func (g *gradient) rest(rate, baseline float64) float64 {
	busy := tolerance * rate * baseline / float64(time.Second)
	return busy + min(max(busy/2, 1), queueSize)
}

func (g *gradient) measures() bool { return true }
