package concurrency

import "time"

// How long a window collects. Fewer than 20 samples say little (the mean of 20 exponential times is off by 22 %), and
// less than 100 ms makes the limit follow single hiccups; after 1 s it closes with whatever there is, so that a service
// with 5 requests a second adapts by time and one whose requests all fail is seen at all.
const (
	windowTime    = 100 * time.Millisecond
	windowSamples = 20
	windowLongest = time.Second
	quickTime     = 20 * time.Millisecond
	quickSamples  = 50
)

// window collects samples between two decisions. The zero value is an empty window that opened at 0.
type window struct {
	opened   time.Duration
	ok       int     // samples with a latency
	dropped  int     // samples that failed because of overload
	sum      float64 // of the latencies, in ns
	atLimit  int     // of ok, those that ended while in flight was at or above the limit
	inFlight int     // the highest seen
	least    int     // the lowest seen
}

func (w *window) add(s Sample, limit int) {
	if w.empty() || s.InFlight < w.least {
		w.least = s.InFlight
	}
	w.inFlight = max(w.inFlight, s.InFlight)
	switch {
	case s.Dropped:
		w.dropped++
	case s.Latency > 0: // work that took no measurable time is no measurement
		w.ok++
		w.sum += float64(s.Latency)
		if s.InFlight >= limit {
			w.atLimit++
		}
	}
}

// quick tells whether the window is to be judged at now while the limit is on its first way up, where each tenth of a second
// turns many away: with more samples, and as much time as one takes, so that those that all started together count once.
func (w *window) quick(now time.Duration) bool {
	open := now - w.opened
	return w.ok >= quickSamples && open >= max(quickTime, time.Duration(w.mean()))
}

func (w *window) empty() bool { return w.ok+w.dropped == 0 }

// mean is the mean latency in ns, 0 without samples. The mean and not the minimum: the smallest of n exponential times is
// 1/n of their mean, and a limit that aims at it collapses (N = 16 ends at 6, with 38 % of the capacity).
func (w *window) mean() float64 {
	if w.ok == 0 {
		return 0
	}
	return w.sum / float64(w.ok)
}

// rate is the number of completions per second up to now.
func (w *window) rate(now time.Duration) float64 {
	if now <= w.opened {
		return 0
	}
	return float64(w.ok) / (now - w.opened).Seconds()
}

// dropShare is the share of all samples that were drops.
func (w *window) dropShare() float64 {
	if w.empty() {
		return 0
	}
	return float64(w.dropped) / float64(w.ok+w.dropped)
}

// saturated tells whether more work was wanted than the limit allowed: at least 30 % of the samples saw it reached.
func (w *window) saturated() bool { return w.ok > 0 && 10*w.atLimit >= 3*w.ok }

// history keeps the last three windows, of which medians are taken: one hiccup does not move them.
type history struct {
	rates, means [3]float64
	samples      [3]int
	n            int
}

func (h *history) add(rate, mean float64, samples int) {
	i := h.n % len(h.rates)
	h.rates[i], h.means[i], h.samples[i] = rate, mean, samples
	h.n++
}

func (h *history) rate() float64 { return middle(h.rates, h.n) }
func (h *history) mean() float64 { return middle(h.means, h.n) }

// size is how many samples the medians rest on.
func (h *history) size() int { return h.samples[0] + h.samples[1] + h.samples[2] }

// middle is the median of the first n of v: the larger of two, so that a young history errs towards caution.
func middle(v [3]float64, n int) float64 {
	switch n {
	case 0:
		return 0
	case 1:
		return v[0]
	case 2:
		return max(v[0], v[1])
	}
	return max(min(v[0], v[1]), min(max(v[0], v[1]), v[2]))
}
