package main

import (
	"slices"
	"time"
)

// result is what one phase of a cell came to.
type result struct {
	asked    int
	counts   map[outcome]int
	goodput  float64 // good answers as a share of what could have been answered
	admitted quantiles
	rejected quantiles
	lag      quantiles
	limit    int // the gate's at the end
	// recovery is when three quarters of a second began in which 99 % of the answers were good, counted from the
	// beginning of the phase; negative if there were none.
	recovery time.Duration
}

// quantiles are those of so many times, zero when there are none.
type quantiles struct {
	n        int
	p50, p99 time.Duration
}

func newQuantiles(micros []uint32) quantiles {
	if len(micros) == 0 {
		return quantiles{}
	}
	slices.Sort(micros)
	at := func(q float64) time.Duration {
		return time.Duration(micros[min(len(micros)-1, int(q*float64(len(micros))))]) * time.Microsecond
	}
	return quantiles{len(micros), at(0.5), at(0.99)}
}

// valid says whether the generator kept to the schedule: everything was sent, and 99 % within a tenth of the budget.
func (r result) valid() bool { return r.counts[unsent] == 0 && r.lag.p99 <= budget/10 }

// results sums up the answers of a cell, by phase.
func (c cell) results(answers []answer, limits []int) []result {
	results := make([]result, len(c.phases))
	begin := time.Duration(0)
	for k, p := range c.phases {
		results[k] = c.result(k, begin, answers)
		results[k].limit = limits[k]
		begin += p.span
	}
	return results
}

func (c cell) result(k int, begin time.Duration, answers []answer) result {
	r := result{counts: map[outcome]int{}}
	var admitted, turned, lags []uint32
	windows := make([]window, int(c.phases[k].span/windowSize))
	for _, a := range answers {
		if int(a.phase) != k {
			continue
		}
		r.asked++
		r.counts[a.outcome]++
		lags = append(lags, a.lag)
		switch a.outcome {
		case good, late:
			admitted = append(admitted, a.took)
		case rejected:
			turned = append(turned, a.took)
		}
		if w := int((a.due - begin) / windowSize); w < len(windows) {
			windows[w].asked++
			if a.outcome == good {
				windows[w].good++
			}
		}
	}
	r.admitted, r.rejected, r.lag = newQuantiles(admitted), newQuantiles(turned), newQuantiles(lags)
	possible := min(1, c.phases[k].load) * c.capacity() * c.phases[k].span.Seconds()
	r.goodput = float64(r.counts[good]) / possible
	r.recovery = recovery(windows)
	return r
}

const (
	windowSize = 250 * time.Millisecond
	steady     = 3 // windows in a row that make a recovery
)

// window counts the requests that were due in a quarter of a second.
type window struct{ asked, good int }

func (w window) fine() bool { return w.asked > 0 && float64(w.good) >= 0.99*float64(w.asked) }

func recovery(windows []window) time.Duration {
	row := 0
	for i, w := range windows {
		if !w.fine() {
			row = 0
			continue
		}
		if row++; row == steady {
			return time.Duration(i+1-steady) * windowSize
		}
	}
	return -1
}
