package concurrency

import (
	"testing"
	"time"
)

// With 20 at once that take 2 s each there are 10 samples a second, which no window of a second can learn from.
func TestHandlersThatTakeSecondsFindTheirLimitToo(t *testing.T) {
	for _, exponential := range []bool{false, true} {
		reached := median(func(seed uint64) float64 {
			e := build(t, Config{})
			s := newSim(e, 128, 1, false, seed)
			s.service = s.times(2*time.Second, exponential)
			s.rate = func(time.Duration) float64 { return 128 / 2 * 1.5 }
			s.maxWait, s.budget = time.Second, time.Minute
			for at := 100 * time.Millisecond; at < 2*time.Minute; at += 100 * time.Millisecond {

				if s.run(at); e.Settled() >= 128 {
					return at.Seconds()
				}
			}
			return 120
		})
		if reached > 15 {
			t.Errorf("exponential %v: %.1f s to find 128 slots of 2 s, want 15 s", exponential, reached)
		}
	}
}
