package concurrency

import (
	"math"
	"time"
)

// Constants of the knee.
const (
	headroom  = 1.3  // in flight per slot: 1.2 to 1.6 serve as much, and less is a shorter queue
	spare     = 2    // beside it: 1.3 of one slot would leave it idle between two requests
	kneeShare = 0.3  // of the way to the target, per window
	farOff    = 0.25 // from here on the whole way at once
	kneeCut   = 0.7  // but no further down than this per window
	kneeRaise = 1.5  // nor further up
)

// knee aims at the knee of the curve of throughput over concurrency: the least work at once that still keeps every slot
// busy, and a reserve. By Little's law that is throughput times the latency without queueing, so with the median rate X of
// three windows and the baseline S of the dips
//
//	T = 1.3·X·S + 2
//	L ← L + 0.3·(T − L), or L ← T if T is more than 25 % off; within [0.7·L, 1.5·L]
//
// It differs from a gradient in that the present latency is not in the formula. A queue makes latency noisy, and a gradient
// multiplies that noise; throughput at a full backend is steady. X·S cannot pass N·S/S = N however long the queue, so there
// is nothing to run away: an hour or a day of overload leave the limit at 1.3·N + 2.
//
// What happens where:
//
//   - Below the knee every slot more is throughput more: X·S = L, so T = 1.3·L + 2 and the limit grows by 30 % per window
//     without being told to. That is also the way back from a collapse.
//   - Above it X stands still, and so does T: the limit goes there at once.
//   - Not saturated: hold. X says what is wanted then, not what is possible.
//   - Slower than the limit explains: hold until a dip, half a second later, has told why. X·S with an S that is
//     out of date is too low, the lower limit lowers X, and so on to the floor: only a dip tells a slower service (S must
//     follow) from fewer slots (X·S is right).
//   - Fewer than three windows since the last jump, or no dip yet: no way down. One window with 20 samples is off by a fifth,
//     and a baseline from the first of them by more.
//   - Hardly anything in flight for a moment: no way down either. X is what was wanted then.
//
// Sources: Little's law; the product of the highest rate and the lowest latency as the place to be is Kleinrock's (Power and
// deterministic rules of thumb, 1979), and BBR's (Cardwell et al., 2016). BBR probes with more to find the rate and less to
// find the latency; here the headroom does the first and the dip the second. Taking the highest rate and the lowest latency
// of a period, as BBR does, errs upwards by one and downwards by the other when service times vary; hence medians and means.
type knee struct {
	exact float64 // the limit with its fraction: 0.3 of the way would else never end
}

func (k *knee) step(_ time.Duration, r reading) int {
	if !r.saturated || r.slow {
		return k.whole()
	}
	target := k.rest(r.rate, r.baseline)
	if target < k.exact && (r.known < 3 || r.ebbed) {
		return k.whole()
	}
	next := k.exact + kneeShare*(target-k.exact)
	if math.Abs(target-k.exact) > farOff*k.exact {
		next = target
	}
	k.exact = min(max(next, kneeCut*k.exact), kneeRaise*k.exact)
	return k.whole()
}

func (k *knee) whole() int { return int(math.Round(k.exact)) }

func (k *knee) drop(_ time.Duration, limit int) int { return limit }

func (k *knee) anchor(limit int, _ float64) {
	if limit != k.whole() {
		k.exact = float64(limit)
	}
}

func (k *knee) rest(rate, baseline float64) float64 {
	return headroom*rate*baseline/float64(time.Second) + spare
}

func (k *knee) measures() bool { return true }
