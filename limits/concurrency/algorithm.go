package concurrency

import "time"

// algorithm turns one window after another into a limit. What all of them need is not theirs but Estimator's: the windows,
// the rule for drops, the doubling, the dips that measure the baseline, the bounds. An algorithm is never told a latency that
// is not a positive, finite number.
type algorithm interface {
	// step judges a window in which the limit was used up, or which was slow, and returns the limit that follows. It may be
	// out of bounds; then anchor follows.
	step(now time.Duration, r reading) int
	// drop returns what one window with too many drops makes of the limit, beside the rule that holds for all; an algorithm
	// without an opinion returns the limit.
	drop(now time.Duration, limit int) int
	// anchor tells that the limit or the baseline was found otherwise: by a dip, by doubling, after drops.
	anchor(limit int, baseline float64)
	// rest is where the steps end at a given throughput, so that the limit need not crawl there.
	rest(rate, baseline float64) float64
	// measures tells whether the algorithm uses the baseline, so that dips are worth what they cost.
	measures() bool
}

// reading is what an algorithm is told of a window. Times are in ns.
type reading struct {
	rate      float64 // completions per second, median of the last three windows
	known     int     // how many windows there were since the limit jumped; 0 until a dip has confirmed the baseline
	latency   float64 // mean of this window
	baseline  float64 // mean without queueing
	inFlight  int     // the most there were
	saturated bool    // more was wanted than the limit allowed
	ebbed     bool    // demand was over for a moment, so that throughput is less than what is possible
	slow      bool    // slower than the limit explains: nobody knows yet whether slots are gone or the service is slower
}

// newAlgorithm returns what cfg names, or nil for a fixed limit. cfg is resolved.
func newAlgorithm(cfg Config) algorithm {
	switch cfg.Algorithm {
	case Knee:
		return &knee{exact: float64(cfg.Initial)}
	case Gradient2:
		return &gradient{low: cfg.Min, high: cfg.Max, last: cfg.Initial}
	case Vegas:
		return newVegas(cfg)
	case AIMD:
		return newAIMD(cfg)
	}
	return nil
}
