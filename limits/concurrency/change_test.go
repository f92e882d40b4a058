package concurrency

import (
	"testing"
	"time"
)

func TestOverloadThatEndsLeavesNoTrace(t *testing.T) {
	for _, c := range backends(4, 16, 128) {
		got := median(func(seed uint64) float64 {
			s := newSim(build(t, Config{}), c.slots, 0.5, c.exponential, seed)
			s.rate = func(now time.Duration) float64 {
				if now < 5*time.Second {
					return 10 * s.capacity()
				}
				return s.capacity() / 2
			}
			return s.run(12*time.Second).goodput(6, 12)
		})
		if got < 0.99 {
			t.Errorf("%v: goodput %.3f from the second second after, want 0.99", c, got)
		}
	}
}

// shortage is a backend that has 0.3 of its slots from second 8 to 13.
func shortage(l limiter, c cell, seed uint64) (s *sim, share float64) {
	s = newSim(l, c.slots, 1.5, c.exponential, seed).run(8 * time.Second)
	left := s.lose(13 * time.Second)
	return s.run(20 * time.Second), float64(left) / float64(c.slots)
}

// slowdown is a backend that is 3.3 times as slow from second 8 to 13.
func slowdown(l limiter, c cell, seed uint64) (s *sim, share float64) {
	s = newSim(l, c.slots, 1.5, c.exponential, seed)
	fast, slow := s.service, s.times(serviceTime*33/10, c.exponential)
	s.budget = 500 * time.Millisecond // one of 66 ms with exponential times is else late by itself
	s.service = func(now time.Duration) time.Duration {
		if now >= 8*time.Second && now < 13*time.Second {
			return slow(now)
		}
		return fast(now)
	}
	return s.run(20 * time.Second), 1 / 3.3
}

func TestLessCapacityIsUsedToTheFullTwoSecondsLaterAndMoreWhenItComesBack(t *testing.T) {
	for name, change := range map[string]func(limiter, cell, uint64) (*sim, float64){"slots": shortage, "speed": slowdown} {
		for _, c := range backends(4, 16, 128) {
			from, want := 10, 0.9
			if c.slots == 4 {
				from, want = 12, 0.8
			}
			var back [seeds]float64
			down := median(func(seed uint64) float64 {
				s, share := change(build(t, Config{}), c, seed)
				back[seed-1] = s.goodput(from+5, 20)
				return s.goodput(from, 13) / share
			})
			up := median(func(seed uint64) float64 { return back[seed-1] })
			if down < want || up < 0.95 {
				t.Errorf("%s, %v: %.3f of what is possible with less and %.3f after, want %.2f and 0.95", name, c, down, up, want)
			}
		}
	}
	// AIMD does not see that its backend answers late.
	if s, share := shortage(build(t, Config{Algorithm: AIMD}), cell{16, false}, 1); s.goodput(10, 13)/share > 0.5 {
		t.Error("AIMD does as well: the test cannot tell who notices")
	}
}

func TestAHiccupIsNoOverload(t *testing.T) {
	for _, c := range backends(16, 128) {
		got := median(func(seed uint64) float64 {
			s := newSim(build(t, Config{}), c.slots, 0.9, c.exponential, seed)
			for at := 5 * time.Second; at < 40*time.Second; at += 10 * time.Second {
				s.run(at).stall(100 * time.Millisecond)
			}
			return s.run(40 * time.Second).refused(8) // the limit has grown from 20 to what is wanted
		})
		if got > 0.005 {
			t.Errorf("%v: %.2f %% refused, want at most 0.5", c, 100*got)
		}
	}
}

func TestNothingIsRefusedWithRoomToSpare(t *testing.T) {
	for _, c := range backends(4, 16, 128) {
		got := median(func(seed uint64) float64 {
			return newSim(build(t, Config{}), c.slots, 0.7, c.exponential, seed).run(20 * time.Second).refused(4)
		})
		if got > 0 {
			t.Errorf("%v: %.3f %% refused at 0.7 times the capacity", c, 100*got)
		}
	}
}

// hasty is a knee that believes every window, from the first one on.
type hasty struct{ knee }

func (h *hasty) step(now time.Duration, r reading) int {
	r.known, r.slow = 3, false
	return h.knee.step(now, r)
}

// A burst of new connections on an idle process keeps its goroutines waiting for some tenths of a second, so that permits
// are held five times as long as the work takes. The limit must not fall because of that, or throughput stays low after it.
func TestABurstOfConnectionsOnAnIdleProcessDoesNotLowerTheLimit(t *testing.T) {
	burst := func(e *Estimator, exponential bool, seed uint64) *sim {
		s := newSim(e, 16, 5, exponential, seed)
		s.rate = func(now time.Duration) float64 {
			if now < 5*time.Second {
				return s.capacity() / 5
			}
			return 5 * s.capacity()
		}
		s.lag = func(now time.Duration) float64 {
			if now >= 5*time.Second && now < 5500*time.Millisecond {
				return 5
			}
			return 1
		}
		return s.run(8 * time.Second)
	}
	for _, exponential := range []bool{false, true} {
		first := func(e func() *Estimator) float64 {
			return median(func(seed uint64) float64 { return burst(e(), exponential, seed).goodput(5, 6) })
		}
		// 20 permits held for 100 ms are a quarter of the capacity, so 0.63 is all there is.
		if got := first(func() *Estimator { return build(t, Config{}) }); got < 0.55 {
			t.Errorf("exponential %v: goodput %.3f in the second of the burst, want 0.55", exponential, got)
		}
		if got := first(func() *Estimator {
			e := build(t, Config{})
			e.alg = &hasty{knee{exact: DefaultInitial}}
			return e
		}); got >= 0.55 {
			t.Errorf("exponential %v: goodput %.3f with a hasty knee: the test cannot tell", exponential, got)
		}
		after := median(func(seed uint64) float64 { return burst(build(t, Config{}), exponential, seed).goodput(6, 8) })
		if after < 0.93 {
			t.Errorf("exponential %v: goodput %.3f in the two seconds after, want 0.93", exponential, after)
		}
	}
}
