package concurrency

import (
	"math"
	"testing"
	"time"

	"github.com/platinummonkey/go-concurrency-limits/limit"
	"pgregory.net/rapid"
)

// feed gives e n samples, each the given time after the one before, starting after from, and returns when it ended.
func feed(e *Estimator, from, every time.Duration, n int, s Sample) time.Duration {
	for range n {
		from += every
		e.Observe(from, s)
	}
	return from
}

// The limit stays within its bounds and time within reason, whatever comes: no latency, absurd ones, clocks that run back.
func TestNoSequenceOfSamplesMovesTheLimitOutOfItsBounds(t *testing.T) {
	latencies := []time.Duration{-1, 0, 1, time.Millisecond, time.Second, time.Hour, 1<<63 - 1, -1 << 63}
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.IntRange(1, 30).Draw(t, "min")
		high := low + rapid.IntRange(0, 100).Draw(t, "more")
		e, err := New(Config{
			Algorithm: rapid.SampledFrom(Algorithms()).Draw(t, "algorithm"),
			Min:       low, Max: high, Initial: rapid.IntRange(0, 200).Draw(t, "initial"),
		})
		if err != nil {
			t.Fatal(err)
		}
		now := time.Duration(0)
		for range rapid.IntRange(1, 40).Draw(t, "runs") {
			s := Sample{
				Latency:  rapid.SampledFrom(latencies).Draw(t, "latency"),
				InFlight: rapid.SampledFrom([]int{-1, 0, 1, low, high, math.MaxInt32}).Draw(t, "in flight"),
				Dropped:  rapid.Bool().Draw(t, "dropped"),
				Usual:    rapid.SampledFrom(latencies).Draw(t, "usual"),
				Short:    rapid.Bool().Draw(t, "short"),
			}
			every := time.Duration(rapid.SampledFrom([]int64{0, 1, 1e6, 2e7, 3e9, -1e6}).Draw(t, "every"))
			for range rapid.IntRange(1, 120).Draw(t, "samples") {
				now += every
				e.Observe(now, s)
				if got := e.Limit(); got < low || got > high {
					t.Fatalf("limit %d, want it in [%d, %d]", got, low, high)
				}
				if b := e.baseline; b < 0 || b != b {
					t.Fatalf("baseline %v", b)
				}
			}
			e.Tick(now)
			e.Eased(now, rapid.SampledFrom([]int{-1, 0, high}).Draw(t, "left"))
			if got := e.Limit(); got < low || got > high {
				t.Fatalf("limit %d after a shortage, want it in [%d, %d]", got, low, high)
			}
		}
	})
}

func TestAThousandDropsWithoutASuccessReachTheFloorInAFewWindows(t *testing.T) {
	for _, algorithm := range adaptive() {
		e := build(t, Config{Algorithm: algorithm, Initial: 100})
		feed(e, 0, 2*time.Millisecond, 300, Sample{InFlight: 100, Dropped: true}) // 600 ms
		if e.Limit() != DefaultMin || e.Status().Change != Fell {
			t.Errorf("%s: limit %d by %s, want the floor of %d", algorithm, e.Limit(), e.Status().Change, DefaultMin)
		}
		feed(e, time.Second, 2*time.Millisecond, 700, Sample{InFlight: 4, Dropped: true})
		if e.Limit() != DefaultMin {
			t.Errorf("%s: limit %d, want it to stay at the floor", algorithm, e.Limit())
		}
	}
}

func TestAShareOfDropsTakesHalfOfItOffTheLimit(t *testing.T) {
	e := build(t, Config{Initial: 100})
	for i := range 20 { // 40 % dropped
		e.Observe(time.Duration(i+1)*5*time.Millisecond, Sample{Latency: time.Millisecond, InFlight: 50, Dropped: i%5 < 2})
	}
	if e.Limit() != 80 {
		t.Errorf("limit %d, want 100·(1 − 0.4/2) = 80", e.Limit())
	}
}

func TestADropWithoutALatencyLeavesTheBaselineAlone(t *testing.T) {
	e := build(t, Config{})
	e.Observe(time.Millisecond, Sample{Dropped: true}) // as the very first
	end := feed(e, 0, time.Millisecond, 1000, Sample{Latency: 10 * time.Millisecond, InFlight: 5})
	want := e.baseline
	if want != float64(10*time.Millisecond) {
		t.Fatalf("baseline %v, want 10ms", time.Duration(want))
	}
	feed(e, end, time.Millisecond, 5, Sample{Dropped: true})
	if e.baseline != want || e.Limit() != DefaultInitial {
		t.Errorf("baseline %v and limit %d after a drop", time.Duration(e.baseline), e.Limit())
	}
}

func TestALoneHealthCheckSetsNoBaseline(t *testing.T) {
	e := build(t, Config{})
	end := feed(e, 0, 5*time.Second, 3, Sample{Latency: time.Microsecond, InFlight: 1})
	if e.baseline != 0 {
		t.Errorf("baseline %v from three samples", time.Duration(e.baseline))
	}
	feed(e, end, 200*time.Millisecond, 40, Sample{Latency: 10 * time.Millisecond, InFlight: 1}) // 5 a second
	if got := time.Duration(e.baseline); got < 8*time.Millisecond || got > 10*time.Millisecond {
		t.Errorf("baseline %v at five requests a second, want nearly 10ms", got)
	}
}

func TestSilenceHoldsTheLimit(t *testing.T) {
	e := build(t, Config{})
	now := feed(e, 0, time.Millisecond, 300, Sample{Latency: 20 * time.Millisecond, InFlight: 10})
	before := e.Status()
	for range 40 {
		now += 250 * time.Millisecond
		e.Tick(now)
	}
	after := e.Status()
	if after.Limit != before.Limit || after.Baseline != before.Baseline || after.Change != before.Change {
		t.Errorf("ten silent seconds changed %+v to %+v", before, after)
	}
}

// A backend that stalls in the middle of a dip must not leave the limit down there.
func TestADipThatNobodyEndsIsGivenUp(t *testing.T) {
	e := build(t, Config{Max: DefaultInitial}) // so that it is not doubled first
	now := feed(e, 0, time.Millisecond, 200, Sample{Latency: 20 * time.Millisecond, InFlight: 20})
	if !e.Status().Dipping || e.Limit() >= DefaultInitial {
		t.Fatalf("limit %d, want a dip as soon as the limit is reached", e.Limit())
	}
	e.Tick(now + 3*time.Second)
	if e.Status().Dipping || e.Limit() != DefaultInitial {
		t.Errorf("limit %d three seconds later, want %d", e.Limit(), DefaultInitial)
	}
}

func TestNothingGrowsWhileLessIsWantedThanAllowed(t *testing.T) {
	e := build(t, Config{})
	feed(e, 0, time.Millisecond, 60_000, Sample{Latency: 20 * time.Millisecond, InFlight: 19})
	if e.Limit() != DefaultInitial {
		t.Errorf("limit %d, want %d", e.Limit(), DefaultInitial)
	}
}

func TestAFixedLimitIsFixedAndStillMeasures(t *testing.T) {
	e := build(t, Config{Algorithm: Fixed, Initial: 16})
	feed(e, 0, time.Millisecond, 1000, Sample{Latency: time.Second, InFlight: 16, Dropped: false})
	feed(e, time.Second, time.Millisecond, 1000, Sample{InFlight: 16, Dropped: true})
	if e.Limit() != 16 {
		t.Errorf("limit %d, want 16", e.Limit())
	}
	feed(e, 2*time.Second, time.Millisecond, 1000, Sample{Latency: time.Second, InFlight: 16})
	if s := e.Status(); s.Latency != time.Second || s.Rate < 900 || s.Algorithm != Fixed {
		t.Errorf("status %+v, want the latency and rate of the last window", s)
	}
}

func TestTheSameSamplesGiveTheSameLimits(t *testing.T) {
	one := newSim(build(t, Config{}), 16, 2, true, 5).run(20 * time.Second)
	two := newSim(build(t, Config{}), 16, 2, true, 5).run(20 * time.Second)
	for i := range one.seconds {
		if one.seconds[i] != two.seconds[i] {
			t.Fatalf("second %d: %+v and %+v", i, one.seconds[i], two.seconds[i])
		}
	}
}

// poisoned is a library limit that has seen what it must never see: its first time is 0, so that it has divided 0 by 0.
func poisoned(t *testing.T) *limit.Gradient2Limit {
	t.Helper()
	lib, err := limit.NewGradient2Limit("", 20, 500, 4, queue, smoothing, frozen, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	lib.OnSample(0, 0, 20, false)
	if got := lib.EstimatedLimit(); got >= 4 && got <= 500 {
		t.Fatalf("the library made %d of it: the poison does not work", got)
	}
	return lib
}

func TestGradientStartsAnewWhenTheLibraryLosesItsMind(t *testing.T) {
	g := gradient{low: 4, high: 500}
	g.anchor(20, float64(10*time.Millisecond))
	g.lib = poisoned(t)
	if got := g.step(0, reading{latency: float64(10 * time.Millisecond), inFlight: 20}); got != 20 {
		t.Errorf("limit %d by a broken library, want the last good one of 20", got)
	}
	got := 0
	for range 20 {
		got = g.step(0, reading{latency: float64(10 * time.Millisecond), inFlight: 40})
	}
	if got <= 30 {
		t.Errorf("limit %d after twenty good steps, want growth again", got)
	}
}

func TestGradientIsNeverFedATimeThatIsNone(t *testing.T) {
	for _, latency := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		g := gradient{low: 4, high: 500}
		g.anchor(20, float64(10*time.Millisecond))
		for range 100 {
			if got := g.step(0, reading{latency: latency, inFlight: 20}); got != 20 {
				t.Fatalf("latency %v moved the limit to %d", latency, got)
			}
		}
		g.anchor(20, latency)
		if got := g.step(0, reading{latency: float64(10 * time.Millisecond), inFlight: 20}); got != 20 {
			t.Errorf("baseline %v moved the limit to %d", latency, got)
		}
	}
}

func TestGradientComesToRestAtTheToleratedQueue(t *testing.T) {
	const slots, base = 16, float64(20 * time.Millisecond)
	g := gradient{low: 4, high: 500}
	g.anchor(60, base)
	at := 60
	for range 200 {
		at = g.step(0, reading{latency: base * max(1, float64(at)/slots), inFlight: at})
	}
	if want := int(g.rest(slots/0.020, base)); at < want-1 || at > want+1 {
		t.Errorf("rests at %d, want 1.2·16 + 4 = %d", at, want)
	}
}

func TestObserveDoesNotAllocate(t *testing.T) {
	e, now := build(t, Config{}), time.Duration(0)
	if n := testing.AllocsPerRun(20_000, func() {
		now += time.Millisecond
		e.Observe(now, Sample{Latency: 20 * time.Millisecond, InFlight: 10})
	}); n != 0 {
		t.Errorf("%v allocations per sample, want none", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	e, now := build(b, Config{}), time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		now += time.Millisecond
		e.Observe(now, Sample{Latency: 20 * time.Millisecond, InFlight: 20})
	}
}
