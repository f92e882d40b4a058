package concurrency

import (
	"testing"
	"time"
)

// A burst that finds the limit where it starts, with room behind it for all: every tenth of a second turns many away.
func TestABurstOnAColdStartFindsRoomWithinTenthsOfASecond(t *testing.T) {
	for _, c := range backends(128) {
		reached := median(func(seed uint64) float64 {
			e := build(t, Config{})
			s := newSim(e, c.slots, 2, c.exponential, seed)
			for at := 10 * time.Millisecond; at < 3*time.Second; at += 10 * time.Millisecond {
				if s.run(at); e.Settled() >= c.slots {
					return at.Seconds()
				}
			}
			return 3
		})
		if reached > 0.3 {
			t.Errorf("%v: a limit for all slots after %.2f s, want 0.3 s", c, reached)
		}
	}
}

func TestASmallBackendIsNotDoubledByHaste(t *testing.T) {
	for _, c := range backends(4, 16) {
		high := median(func(seed uint64) float64 {
			e := build(t, Config{})
			s := newSim(e, c.slots, 10, c.exponential, seed)
			highest := 0
			for at := 10 * time.Millisecond; at < 2*time.Second; at += 10 * time.Millisecond {
				s.run(at)
				highest = max(highest, e.Settled())
			}
			return float64(highest)
		})
		if high > 2*DefaultInitial {
			t.Errorf("%v: limit up to %v, want one attempt of twice the %d it starts with", c, high, DefaultInitial)
		}
	}
}

// What is quick to end comes back first. 50 samples from the first moment on are mostly such, and would make the limit of
// an idle process look as if nothing could be faster.
func TestTheFirstSamplesAreNotTheQuickestOnes(t *testing.T) {
	mean := median(func(seed uint64) float64 {
		e := build(t, Config{})
		s := newSim(e, 128, 2, true, seed)
		for at := time.Millisecond; e.baseline == 0; at += time.Millisecond {
			s.run(at + 10*time.Millisecond)
		}
		return e.baseline / float64(serviceTime)
	})
	if mean < 0.8 || mean > 1.2 {
		t.Errorf("first baseline %.2f of the service time", mean)
	}
}

func TestNothingIsHastyWithoutDemand(t *testing.T) {
	e := build(t, Config{})
	feed(e, 0, time.Millisecond, 95, Sample{Latency: 20 * time.Millisecond, InFlight: 5})
	if e.Status().Rate != 0 {
		t.Errorf("a window was judged before its time although nobody was waiting: %+v", e.Status())
	}
}
