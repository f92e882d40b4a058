package health

import (
	"fmt"
	"math"
	"time"
)

const (
	// waitsWindow is how far back scheduling looks: the runtime counts one transition in eight, and a saturated process makes
	// few of them, 28 to 144 counted in 2 s.
	waitsWindow = 2 * time.Second
	// fewestWaits is how many must have been counted for their 99th percentile to mean something.
	fewestWaits = 20
)

// scheduling is the 99th percentile, in seconds, of how long goroutines were runnable before they ran. It rises from 0.1 ms to
// tens of milliseconds as soon as every P is busy. It does not see CFS throttling, its population changes between versions of
// Go, and a machine that is full of others raises it too: hence supporting only.
type scheduling struct {
	runtime *runtimeLook
	window  window[[]uint64]
}

func newScheduling(r *runtimeLook) *scheduling {
	return &scheduling{runtime: r, window: newWindow[[]uint64](waitsWindow)}
}

func (s *scheduling) name() string { return "scheduling" }

func (s *scheduling) source() string {
	return "99th percentile of what runnable goroutines waited, in seconds"
}

func (s *scheduling) measure(round time.Time) (float64, time.Duration, error) {
	g := s.runtime.at(round)
	if len(g.waits) == 0 {
		return 0, 0, errNoMetric
	}
	if len(g.bounds) != len(g.waits)+1 {
		return 0, 0, errWaitsForm
	}
	place, err := s.window.add(round)
	if err != nil {
		return 0, 0, err
	}
	// A copy: the runtime fills the same memory again, and a difference with itself would be 0 for ever.
	*place = append((*place)[:0], g.waits...)
	old, now := s.window.oldest().value, *place
	total := uint64(0)
	for i := range now {
		if len(old) != len(now) || now[i] < old[i] {
			s.window.forget()
			return 0, 0, errWaitsFell
		}
		total += now[i] - old[i]
	}
	if total < fewestWaits {
		// Few events are not a sign of health: a process whose goroutines never leave the CPU makes few.
		return 0, 0, errFewWaits
	}
	rank := uint64(math.Ceil(0.99 * float64(total)))
	for i := range now {
		if n := now[i] - old[i]; n < rank {
			rank -= n
			continue
		}
		if high := g.bounds[i+1]; !math.IsInf(high, 0) {
			return high, s.window.covers(), nil
		}
		return g.bounds[i], s.window.covers(), nil
	}
	return 0, 0, errFewWaits // not reached: rank ≤ total
}

var errFewWaits = fmt.Errorf("%w: fewer than %d waits were counted in %v, too few to tell", errAbsent, fewestWaits, waitsWindow)
