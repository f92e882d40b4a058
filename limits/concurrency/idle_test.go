package concurrency

import (
	"testing"
	"time"
)

// Latency a little above the baseline is no reason for more while less is wanted than allowed, whatever the algorithm's arithmetic
// makes of it.
func TestWhatIsNotWantedIsNotAllowedEvenIfWorkIsSlow(t *testing.T) {
	for _, name := range Algorithms() {
		e := build(t, Config{Algorithm: name})
		var now time.Duration
		feed := func(latency time.Duration, seconds int) {
			for range seconds * 200 {
				now += 5 * time.Millisecond
				e.Observe(now, Sample{Latency: latency, InFlight: 12})
			}
		}
		feed(20*time.Millisecond, 2)
		before := e.Limit()
		feed(25*time.Millisecond, 10)
		if got := e.Limit(); got > before {
			t.Errorf("%s: limit from %d to %d, though it was never reached", name, before, got)
		}
	}
}
