package concurrency

import (
	"fmt"
	"testing"
	"time"

	"github.com/platinummonkey/go-concurrency-limits/core"
	"github.com/platinummonkey/go-concurrency-limits/limit"
)

// build returns an estimator, or fails.
func build(t testing.TB, cfg Config) *Estimator {
	t.Helper()
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// bare is the negative control: the library's limit behind a plain window, without anything that this package adds.
type bare struct {
	lib       core.Limit
	statistic func(mean, lowest time.Duration) time.Duration
	win       window
	lowest    time.Duration
}

func (b *bare) Limit() int         { return b.lib.EstimatedLimit() }
func (b *bare) Tick(time.Duration) {}
func (b *bare) Observe(now time.Duration, s Sample) {
	b.win.add(s, b.Limit())
	if !s.Dropped && (b.lowest == 0 || s.Latency < b.lowest) {
		b.lowest = s.Latency
	}
	open := now - b.win.opened
	if b.win.ok > 0 && (open >= windowLongest || open >= windowTime && b.win.ok+b.win.dropped >= windowSamples) {
		rtt := b.statistic(time.Duration(b.win.mean()), b.lowest)
		b.lib.OnSample(int64(now), int64(rtt), b.win.inFlight, b.win.dropped > 0)
		b.win, b.lowest = window{opened: now}, 0
	}
}

func ofMean(mean, _ time.Duration) time.Duration     { return mean }
func ofLowest(_, lowest time.Duration) time.Duration { return lowest }

func bareGradient2(t testing.TB) *bare {
	t.Helper()
	lib, err := limit.NewGradient2Limit("", 20, 500, 4, nil, 0.2, 600, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &bare{lib: lib, statistic: ofMean}
}

func TestGoodputStaysNearCapacityFromAColdStart(t *testing.T) {
	for _, exponential := range []bool{false, true} {
		for _, slots := range []int{4, 16} {
			for _, load := range []float64{2, 5, 10} {
				t.Run(fmt.Sprintf("%d slots, %gx, exponential %v", slots, load, exponential), func(t *testing.T) {
					s := newSim(build(t, Config{}), slots, load, exponential, 1).run(10 * time.Second)
					if got := s.goodput(2, 10); got < 0.95 {
						t.Errorf("goodput %.3f, want at least 0.95", got)
					}
				})
			}
		}
	}
}

func TestALargeBackendIsFoundWithinSeconds(t *testing.T) {
	for _, exponential := range []bool{false, true} {
		s := newSim(build(t, Config{}), 128, 1.2, exponential, 1).run(10 * time.Second)
		if got := s.goodput(2, 10); got < 0.9 {
			t.Errorf("exponential %v: goodput %.3f, want at least 0.9", exponential, got)
		}
	}
	if got := newSim(bareGradient2(t), 128, 1.2, false, 1).run(10*time.Second).goodput(2, 10); got >= 0.9 {
		t.Errorf("goodput %.3f with the library alone: the test cannot tell a slow start", got)
	}
}

// Fed with the smallest latency of each window a limit collapses under service times that vary; the mean does not.
func TestVaryingServiceTimesDoNotCollapseTheLimit(t *testing.T) {
	s := newSim(build(t, Config{}), 16, 2, true, 3).run(30 * time.Second)
	low, _ := s.limits(10, 30)
	if got := s.goodput(10, 30); got < 0.95 {
		t.Errorf("goodput %.3f, want at least 0.95 (lowest limit %d)", got, low)
	}
	vegas := limit.NewVegasLimitWithRegistry("", 20, nil, 500, 1, nil, nil, nil, nil, nil, 30, nil, nil)
	s = newSim(&bare{lib: vegas, statistic: ofLowest}, 16, 2, true, 3).run(30 * time.Second)
	if got := s.goodput(10, 30); got >= 0.95 {
		t.Errorf("goodput %.3f fed with the minimum: the test cannot tell a collapse", got)
	}
}

func TestTheLimitDoesNotRunAwayUnderLastingOverload(t *testing.T) {
	const minutes = 4
	run := func(l limiter) (high int) {
		s := newSim(l, 16, 1.5, false, 1).run(minutes * time.Minute)
		_, high = s.limits(minutes*60-60, minutes*60)
		return high
	}
	if high := run(build(t, Config{})); high > 2*16+queueSize {
		t.Errorf("limit %d after %d minutes, want at most %d", high, minutes, 2*16+queueSize)
	}
	if high := run(bareGradient2(t)); high <= 2*16+queueSize {
		t.Errorf("limit %d with the library alone: the test cannot tell a runaway", high)
	}
}

func TestOverloadThatEndsIsForgottenWithinTwoSeconds(t *testing.T) {
	s := newSim(build(t, Config{}), 16, 1, true, 1)
	s.rate = func(now time.Duration) float64 {
		if now < 8*time.Second {
			return 10 * s.capacity()
		}
		return s.capacity() / 2
	}
	s.run(20 * time.Second)
	if got := s.goodput(10, 20); got < 0.99 {
		t.Errorf("goodput %.4f from two seconds after, want at least 0.99", got)
	}
}

// Service times that vary make single seeds double the limit for a moment; hence medians.
func TestAServiceThatBecomesSlowerNeitherRaisesTheLimitNorKeepsIt(t *testing.T) {
	var meanwhile, after [seeds]float64
	high := median(func(seed uint64) float64 {
		s := newSim(build(t, Config{}), 16, 1.5, true, seed)
		s.budget = time.Second // so slow a service cannot keep 250 ms behind a line of 100 ms, whatever the limit
		fast, slow := s.service, s.times(60*time.Millisecond, true)
		s.service = func(now time.Duration) time.Duration {
			if now >= 10*time.Second && now < 130*time.Second {
				return slow(now)
			}
			return fast(now)
		}
		s.run(140 * time.Second)
		meanwhile[seed-1], after[seed-1] = s.goodput(20, 129)*3, s.goodput(132, 140)
		_, high := s.limits(15, 129)
		return float64(high)
	})
	if high > 64 {
		t.Errorf("limit up to %v while the service was slow, want no more than the doubled one of before", high)
	}
	if got := median(func(seed uint64) float64 { return meanwhile[seed-1] }); got < 0.9 { // of the reduced capacity
		t.Errorf("goodput %.3f while slow, want at least 0.9", got)
	}
	if got := median(func(seed uint64) float64 { return after[seed-1] }); got < 0.95 {
		t.Errorf("goodput %.3f two seconds after it became quick again, want at least 0.95", got)
	}
}

func TestABackendThatLosesSlotsIsGivenLess(t *testing.T) {
	s := newSim(build(t, Config{}), 16, 1.5, true, 1).run(10 * time.Second)
	for i := range s.free.all[5:] {
		s.free.all[5+i] = 40 * time.Second
	}
	s.free.fix()
	s.run(50 * time.Second)
	_, high := s.limits(13, 40)
	if got := s.goodput(13, 39) * 16 / 5; got < 0.95 || high > 32 {
		t.Errorf("goodput %.3f at limits up to %d, want at least 0.95 of what 5 slots can do", got, high)
	}
	if got := s.goodput(43, 50); got < 0.95 {
		t.Errorf("goodput %.3f three seconds after the slots came back, want at least 0.95", got)
	}
}

func TestAnOutagePullsTheLimitToTheFloorAndItsEndLetsItClimbBack(t *testing.T) {
	outage := func(l limiter) *sim {
		s := newSim(l, 16, 2, false, 1)
		s.drop = func(now time.Duration) bool { return now >= 5*time.Second && now < 10*time.Second }
		return s.run(15 * time.Second)
	}
	s := outage(build(t, Config{}))
	if low, high := s.limits(7, 10); high != DefaultMin {
		t.Errorf("limit %d..%d two seconds into an outage, want the floor of %d", low, high, DefaultMin)
	}
	if got := s.goodput(12, 15); got < 0.95 {
		t.Errorf("goodput %.3f two seconds after the outage, want at least 0.95", got)
	}
	if low, _ := outage(bareGradient2(t)).limits(7, 10); low <= DefaultMin {
		t.Error("the library alone reached the floor, too: the test proves nothing")
	}
}

func TestAFewDropsChangeNothing(t *testing.T) {
	s := newSim(build(t, Config{}), 16, 2, false, 1)
	s.drop = func(time.Duration) bool { return s.rng.IntN(200) == 0 }
	s.run(30 * time.Second)
	if got := s.goodput(2, 30); got < 0.95 {
		t.Errorf("goodput %.3f, want at least 0.95", got)
	}
}

// A cap beside the estimate hides demand from it: it must neither grow meanwhile nor need time when the cap is lifted.
func TestACapBesideTheEstimateFreezesIt(t *testing.T) {
	e := build(t, Config{})
	s := newSim(e, 16, 2, false, 1)
	s.cap = func() int {
		if s.now >= 10*time.Second && s.now < 310*time.Second {
			return 8
		}
		return 1000
	}
	s.run(320 * time.Second)
	_, before := s.limits(9, 10)
	low, high := s.limits(12, 309)
	if low < before-2 || high > before+2 {
		t.Errorf("limit %d..%d under the cap, want it to stay near %d", low, high, before)
	}
	if got := s.goodput(311, 320); got < 0.95 {
		t.Errorf("goodput %.3f after the cap was lifted, want at least 0.95", got)
	}
}

func TestASlowServiceIsMeasuredToo(t *testing.T) { // one second each, so no window ever has 20 samples
	s := newSim(build(t, Config{}), 8, 1, false, 1)
	s.service = s.times(time.Second, true)
	s.rate = func(time.Duration) float64 { return 16 }
	s.maxWait, s.budget = time.Second, time.Minute
	s.run(10 * time.Minute)
	good := 0
	for _, sec := range s.seconds[60:] {
		good += sec.good
	}
	low, high := s.limits(120, 600)
	if rate := float64(good) / 540; rate < 0.95*8 || high > 3*8 {
		t.Errorf("%.2f a second at limits %d..%d, want nearly 8 at no more than %d", rate, low, high, 3*8)
	}
}
