package concurrency

import (
	"testing"
	"time"
)

// burstsOf is a backend to which a hundred requests come within 10 ms, every half a minute, each of which takes a second.
func burstsOf(l limiter, c cell, seed uint64) *sim {
	return burstsEvery(30*time.Second, time.Second, l, c, seed)
}

// burstsEvery is the same with other pauses and another time that work takes.
func burstsEvery(pause, service time.Duration, l limiter, c cell, seed uint64) *sim {
	s := newSim(l, c.slots, 1, c.exponential, seed)
	s.service = s.times(service, c.exponential)
	s.maxWait, s.budget = 500*time.Millisecond, time.Minute
	s.rate = func(now time.Duration) float64 {
		if now%pause < 10*time.Millisecond {
			return 100 / 0.01
		}
		return 0
	}
	return s
}

// tail returns the share of the arrivals of bursts 26 to 30 that were turned away, and how long the others took on average.
func tail(s *sim) (refused float64, took time.Duration) {
	s.run(25 * 30 * time.Second)
	s.answered = nil
	s.run(30 * 30 * time.Second)
	for _, d := range s.answered {
		took += d / time.Duration(len(s.answered))
	}
	return s.refused(25 * 30), took
}

// unaware is told of no shortage.
type unaware struct{ *Estimator }

func (u unaware) Observe(now time.Duration, s Sample) {
	s.Short = false
	u.Estimator.Observe(now, s)
}

func TestBurstsOfSlowWorkFindTheRoomThereIs(t *testing.T) {
	for _, c := range backends(128) {
		got := median(func(seed uint64) float64 {
			refused, _ := tail(burstsOf(build(t, Config{}), c, seed))
			return refused
		})
		if got > 0.05 {
			t.Errorf("%v: %.2f of a burst of 100 turned away after 25 bursts, want hardly any", c, got)
		}
		if got, _ := tail(burstsOf(unaware{build(t, Config{})}, c, 1)); got < 0.5 {
			t.Errorf("%v: %.2f turned away by an estimator that knows of no shortage: the test cannot tell", c, got)
		}
	}
}

// Work that takes half a second waits in the line for a second round, at which windows are saturated and what they show is tried. When
// bursts follow one another soon, saturation does not last from one to the next.
func TestBurstsOfTwoRoundsAndBurstsThatFollowOneAnotherFindTheirRoomToo(t *testing.T) {
	for _, c := range []struct{ pause, service time.Duration }{
		{30 * time.Second, 500 * time.Millisecond}, {5 * time.Second, 500 * time.Millisecond}, {5 * time.Second, time.Second},
	} {
		got := median(func(seed uint64) float64 {
			s := burstsEvery(c.pause, c.service, build(t, Config{}), cell{128, false}, seed).run(20 * c.pause)
			return s.refused(15 * int(c.pause/time.Second))
		})
		if got > 0.05 {
			t.Errorf("%v of work every %v: %.2f turned away after 15 bursts, want hardly any", c.service, c.pause, got)
		}
	}
}

// Where there is no room behind, twice as much takes longer, and that is not kept.
func TestBurstsOfSlowWorkDoNotRaiseTheLimitOverAFewSlots(t *testing.T) {
	for _, c := range backends(4, 10, 16) {
		var took [seeds]float64
		limit := median(func(seed uint64) float64 {
			e := build(t, Config{})
			_, mean := tail(burstsOf(e, c, seed))
			took[seed-1] = mean.Seconds()
			return float64(e.Settled())
		})
		high := max(2*DefaultInitial, 3*float64(c.slots))
		if limit > high {
			t.Errorf("%v: limit %v, want at most %v", c, limit, high)
		}
		for _, name := range []string{Gradient2, Vegas} { // these take steps down while a doubling is on trial
			e := build(t, Config{Algorithm: name})
			if tail(burstsOf(e, c, 1)); !c.exponential && float64(e.Settled()) > high {
				t.Errorf("%s, %v: limit %d, want at most %v", name, c, e.Settled(), high)
			}
		}
		// That of a hundred at once would be 12.6, 5.5 and 3.6 s.
		if got, most := median(func(seed uint64) float64 { return took[seed-1] }), 1+24/float64(c.slots); got > most {
			t.Errorf("%v: %.1f s on average, want at most %.1f", c, got, most)
		}
	}
}

// What a burst shows of throughput and latency while it ends is no reason for less.
func TestBurstsThatFollowOneAnotherDoNotLowerTheLimit(t *testing.T) {
	for _, exponential := range []bool{false, true} {
		for _, service := range []time.Duration{50 * time.Millisecond, time.Second} {
			low := median(func(seed uint64) float64 {
				s := burstsEvery(5*time.Second, service, build(t, Config{}), cell{128, exponential}, seed)
				s.run(5 * time.Minute)
				low := DefaultMax
				for sec := 60; sec < 300; sec += 5 {
					low = min(low, s.seconds[sec-1].low) // between the bursts
				}
				return float64(low)
			})
			if low < DefaultInitial-2 {
				t.Errorf("work of %v, exponential %v: limit down to %v", service, exponential, low)
			}
		}
	}
}

// burstOf feeds n samples of a shortage that took so many times as long as usual, the last of which ends it.
func burstOf(e *Estimator, at time.Duration, n int, stretch float64, s Sample) {
	s.Short, s.Usual = true, time.Second
	s.Latency = time.Duration(stretch * float64(time.Second))
	for i := range n {
		s.InFlight = n - i
		e.Observe(at, s)
	}
	e.Eased(at, 0)
}

func TestABurstIsJudgedWholeAndOnce(t *testing.T) {
	const enough = burstSamples
	minutes := func(n int) time.Duration { return time.Duration(n) * time.Minute }
	for _, c := range []struct {
		name string
		feed func(e *Estimator)
		want int
	}{
		{"room", func(e *Estimator) { burstOf(e, minutes(1), enough, 1, Sample{}) }, 2 * enough},
		{"few samples", func(e *Estimator) { burstOf(e, minutes(1), enough-1, 1, Sample{}) }, enough},
		{"slower than usual", func(e *Estimator) { burstOf(e, minutes(1), enough, 1.3, Sample{}) }, enough},
		{"somebody is left", func(e *Estimator) {
			burstOf(e, minutes(1), enough-1, 1, Sample{})
			e.Observe(minutes(1), Sample{Latency: time.Second, Usual: time.Second, Short: true, InFlight: enough})
			e.Eased(minutes(1), enough)
		}, enough},
		{"the limit was not reached", func(e *Estimator) {
			e.Reconfigure(Config{Initial: enough, Min: enough + 5})
			burstOf(e, minutes(1), enough, 1, Sample{})
		}, enough + 5},
		{"drops", func(e *Estimator) {
			e.Observe(minutes(1), Sample{Dropped: true, Short: true, InFlight: enough})
			burstOf(e, minutes(1), enough, 1, Sample{})
		}, enough},
		{"in the first minute", func(e *Estimator) { burstOf(e, time.Second, enough, 1, Sample{}) }, 2 * enough},
		{"nobody knows what is usual", func(e *Estimator) {
			burstOf(e, minutes(1), enough/2, 1, Sample{})
			for range enough / 2 {
				e.Observe(minutes(2), Sample{Latency: time.Second, Short: true, InFlight: enough})
			}
			e.Eased(minutes(2), 0)
		}, enough},
		{"work that took no time", func(e *Estimator) {
			burstOf(e, minutes(1), enough/2, 1, Sample{})
			burstOf(e, minutes(2), enough/2, 0, Sample{InFlight: enough})
		}, enough},
		{"another configuration", func(e *Estimator) {
			burstOf(e, minutes(1), enough/2, 1, Sample{})
			e.Reconfigure(Config{Initial: enough, Min: enough - 1})
			burstOf(e, minutes(2), enough/2, 1, Sample{})
		}, enough},
		{"a limit that something else has moved", func(e *Estimator) {
			burstOf(e, minutes(1), enough-1, 1, Sample{})
			e.set(enough-1, Shrank)
			burstOf(e, minutes(2), enough-1, 1, Sample{})
		}, enough - 1},
		{"not short", func(e *Estimator) {
			for range enough {
				e.Observe(minutes(1), Sample{Latency: time.Second, Usual: time.Second, InFlight: enough})
			}
			e.Eased(minutes(1), 0)
		}, enough},
		{"fixed", func(e *Estimator) {
			e.Reconfigure(Config{Algorithm: Fixed, Initial: enough})
			burstOf(e, minutes(1), enough, 1, Sample{})
		}, enough},
		{"the trial fails", func(e *Estimator) {
			burstOf(e, minutes(1), enough, 1, Sample{})
			burstOf(e, minutes(2), 2*enough, 1.5, Sample{})
		}, enough},
		{"a step down does not end the trial", func(e *Estimator) {
			burstOf(e, minutes(1), enough, 1, Sample{})
			e.set(2*enough-1, Shrank)
			burstOf(e, minutes(2), 2*enough, 1.5, Sample{})
		}, enough},
		{"but one below what it began with does", func(e *Estimator) {
			burstOf(e, minutes(1), enough, 1, Sample{})
			e.set(enough-1, Shrank)
			burstOf(e, minutes(2), 2*enough, 1.5, Sample{})
		}, enough - 1},
		{"overload that lasts does, too", func(e *Estimator) {
			burstOf(e, minutes(1), enough, 1, Sample{})
			e.pressed = e.now - time.Minute
			e.burst.saturated(e)
			burstOf(e, minutes(3), 2*enough, 1.4, Sample{})
		}, 2 * enough},
		{"a success ends the trial and makes up for failures", func(e *Estimator) {
			burstOf(e, minutes(1), enough, 1, Sample{})
			burstOf(e, minutes(2), 2*enough, 1.5, Sample{}) // fails: a pause of one
			burstOf(e, minutes(3), enough, 1, Sample{})
			burstOf(e, minutes(4), enough, 1, Sample{})
			burstOf(e, minutes(5), 2*enough-1, 1, Sample{}) // succeeds
			if e.Trial() <= 2*enough {
				e.set(1, Shrank)
			}
			burstOf(e, minutes(6), 2*enough, 1, Sample{})
			burstOf(e, minutes(7), 4*enough, 1.5, Sample{}) // fails: a pause of one again
			burstOf(e, minutes(8), 2*enough, 1, Sample{})
			burstOf(e, minutes(9), 2*enough, 1, Sample{})
		}, 4 * enough},
		{"what is tried meanwhile is given up", func(e *Estimator) {
			e.climb.on, e.climb.from = true, enough
			e.set(2*enough, Doubled)
			burstOf(e, minutes(1), enough, 1.3, Sample{})
		}, enough},
		{"later there is a queue at four times as much", func(e *Estimator) {
			burstOf(e, minutes(1), enough, 1, Sample{})
			burstOf(e, minutes(2), 2*enough, 1, Sample{})
			burstOf(e, minutes(3), 4*enough-1, 1, Sample{})
			burstOf(e, minutes(4), 4*enough, 2, Sample{})
		}, 2 * enough},
		{"a queue at a limit that is not of bursts' making", func(e *Estimator) {
			burstOf(e, minutes(1), enough, 2, Sample{})
		}, enough},
		{"after a second failure the pause is twice as long", func(e *Estimator) {
			for i, stretch := range []float64{1, 1.5, 1, 1, 1.5, 1, 1} {
				burstOf(e, minutes(i+1), e.Settled(), stretch, Sample{})
			}
		}, enough},
		{"and ends, too", func(e *Estimator) {
			for i, stretch := range []float64{1, 1.5, 1, 1, 1.5, 1, 1, 1} {
				burstOf(e, minutes(i+1), e.Settled(), stretch, Sample{})
			}
		}, 2 * enough},
		{"a pause follows", func(e *Estimator) {
			burstOf(e, minutes(1), enough, 1, Sample{})
			burstOf(e, minutes(2), 2*enough, 1.5, Sample{})
			burstOf(e, minutes(3), enough, 1, Sample{})
		}, enough},
		{"and ends", func(e *Estimator) {
			burstOf(e, minutes(1), enough, 1, Sample{})
			burstOf(e, minutes(2), 2*enough, 1.5, Sample{})
			burstOf(e, minutes(3), enough, 1, Sample{})
			burstOf(e, minutes(4), enough, 1, Sample{})
		}, 2 * enough},
		{"the trial succeeds", func(e *Estimator) {
			burstOf(e, minutes(1), enough, 1, Sample{})
			burstOf(e, minutes(2), 2*enough, 1, Sample{})
		}, 4 * enough},
		{"so much is not wanted", func(e *Estimator) {
			burstOf(e, minutes(1), enough, 1, Sample{})
			burstOf(e, minutes(2), 2*enough-1, 1, Sample{})
		}, 2 * enough},
		{"later there is a queue", func(e *Estimator) {
			burstOf(e, minutes(1), enough, 1, Sample{})
			burstOf(e, minutes(2), 2*enough-1, 1, Sample{})
			burstOf(e, minutes(3), 2*enough, 2, Sample{})
		}, enough},
	} {
		e := build(t, Config{Initial: enough})
		if c.feed(e); e.Settled() != c.want {
			t.Errorf("%s: limit %d, want %d", c.name, e.Settled(), c.want)
		}
	}
}

// While overload lasts a shortage that eases for a moment proves nothing: what is usual then is what the queue makes of it.
func TestLastingOverloadIsNoBurst(t *testing.T) {
	e := build(t, Config{Initial: burstSamples})
	now := feed(e, 0, 2*time.Millisecond, 3000, Sample{Latency: 20 * time.Millisecond, InFlight: burstSamples})
	limit := e.Settled()
	burstOf(e, now+time.Second, limit, 1, Sample{})
	if e.Settled() > limit {
		t.Errorf("limit from %d to %d", limit, e.Settled())
	}
	burstOf(e, now+burstAlone+time.Second, limit, 1, Sample{})
	if e.Settled() != 2*limit {
		t.Errorf("limit from %d to %d a minute later, want it doubled", limit, e.Settled())
	}
}
