package concurrency

import (
	"math"
	"testing"
	"time"

	"github.com/platinummonkey/go-concurrency-limits/limit"
)

// adaptive returns the algorithms that move.
func adaptive() []string { return []string{Knee, Gradient2, Vegas, AIMD} }

const tenMS = float64(10 * time.Millisecond)

// held feeds the same window n times and returns the limit after each.
func held(a algorithm, n int, r reading) (limits []int) {
	for i := range n {
		limits = append(limits, a.step(time.Duration(i+1)*100*time.Millisecond, r))
	}
	return limits
}

func TestEveryAlgorithmFindsItsWayBackFromACollapse(t *testing.T) {
	for _, algorithm := range adaptive() {
		s := newSim(build(t, Config{Algorithm: algorithm, Max: 64}), 16, 2, false, 1)
		s.drop = func(now time.Duration) bool { return now >= 3*time.Second && now < 5*time.Second }
		s.run(12 * time.Second)
		if low, high := s.limits(4, 5); high != DefaultMin {
			t.Errorf("%s: limit %d..%d while all fails, want the floor", algorithm, low, high)
		}
		if got := s.goodput(7, 12); got < 0.95 {
			t.Errorf("%s: goodput %.3f two seconds after, want 0.95", algorithm, got)
		}
	}
}

func TestEveryAlgorithmIgnoresOneDropInTwoHundred(t *testing.T) {
	for _, algorithm := range adaptive() {
		s := newSim(build(t, Config{Algorithm: algorithm, Max: 64}), 16, 2, false, 1)
		s.drop = func(time.Duration) bool { return s.rng.IntN(200) == 0 }
		if got := s.run(20*time.Second).goodput(2, 20); got < 0.95 {
			t.Errorf("%s: goodput %.3f, want 0.95", algorithm, got)
		}
	}
}

func TestEveryAlgorithmHoldsWhileLessIsWantedThanAllowed(t *testing.T) {
	for _, algorithm := range adaptive() {
		e := build(t, Config{Algorithm: algorithm})
		feed(e, 0, time.Millisecond, 60_000, Sample{Latency: 20 * time.Millisecond, InFlight: 19})
		if e.Limit() != DefaultInitial {
			t.Errorf("%s: limit %d, want %d", algorithm, e.Limit(), DefaultInitial)
		}
	}
}

// The library's probe takes the latency of the moment for the one without a queue, and the limit climbs for hours.
func TestVegasNeverTakesALoadedLatencyForItsBaseline(t *testing.T) {
	v := newVegas(Config{Min: 4, Max: 500, Initial: 20})
	v.anchor(20, tenMS)
	for range 200_000 { // five and a half hours of windows
		v.step(0, reading{latency: tenMS * max(1, float64(v.last)/16), inFlight: v.last, saturated: true})
	}
	if v.last > 23 || v.last < 16 {
		t.Errorf("limit %d for 16 slots, want 19 to 22", v.last)
	}
	bare := limit.NewVegasLimitWithRegistry("", 20, nil, 500, 1, nil, nil, nil, nil, nil, 30, nil, nil)
	for range 200_000 {
		at := bare.EstimatedLimit()
		bare.OnSample(1, int64(tenMS*max(1, float64(at)/16)), at, false)
	}
	if got := bare.EstimatedLimit(); got <= 23 {
		t.Errorf("limit %d by the library alone: the test cannot tell a probe", got)
	}
}

// The library returns early when a latency is its new lowest, before it has looked at the drop.
func TestVegasSeesTheDropOfAQuickWindow(t *testing.T) {
	v := newVegas(Config{Min: 4, Max: 500, Initial: 20})
	v.anchor(20, tenMS)
	if got := v.feed(1, 1, 20, true); got != 19 {
		t.Errorf("limit %d after a drop at 1 ns, want 19", got)
	}
	if v.base != told(tenMS) {
		t.Errorf("baseline %v moved", time.Duration(v.base))
	}
}

func TestVegasIsNeverFedATimeThatIsNone(t *testing.T) {
	for _, latency := range []float64{math.NaN(), math.Inf(1)} {
		v := newVegas(Config{Min: 4, Max: 500, Initial: 20})
		v.anchor(20, tenMS)
		for _, got := range held(v, 50, reading{latency: latency, inFlight: 20}) {
			if got != 20 {
				t.Fatalf("latency %v moved the limit to %d", latency, got)
			}
		}
	}
	v := newVegas(Config{Min: 4, Max: 500, Initial: 20}) // no baseline yet
	if got := v.drop(1, 20); got != 20 {
		t.Errorf("limit %d, want 20: there is nothing to compare with", got)
	}
}

// The libraries of Vegas and AIMD know no lower bound but 1, and AIMD no upper one: beyond ours they must not wander off.
func TestTheLibraryStartsAnewAtOurBounds(t *testing.T) {
	for name, a := range map[string]algorithm{
		"vegas": newVegas(Config{Min: 10, Max: 30, Initial: 20}), "aimd": newAIMD(Config{Min: 10, Max: 30, Initial: 20}),
	} {
		a.anchor(20, tenMS)
		up := held(a, 100, reading{latency: tenMS, inFlight: 40, saturated: true})
		if got := up[len(up)-1]; got != 30 {
			t.Errorf("%s: limit %d, want the max of 30", name, got)
		}
		at := 30
		for range 100 {
			at = a.drop(1, at)
		}
		if at != 10 {
			t.Errorf("%s: limit %d after a hundred drops, want the min of 10", name, at)
		}
		if got := a.step(1, reading{latency: tenMS, inFlight: 40, saturated: true}); got <= 10 {
			t.Errorf("%s: limit %d by the first good window, want growth at once", name, got)
		}
	}
}

// AIMD is known to be weak: nothing but failure stops it.
func TestAIMDGrowsForAsLongAsNothingFails(t *testing.T) {
	s := newSim(build(t, Config{Algorithm: AIMD, Max: 60}), 16, 2, false, 1).run(30 * time.Second)
	if low, high := s.limits(25, 30); low != 60 || high != 60 {
		t.Errorf("limit %d..%d, want its max of 60", low, high)
	}
}

func TestKneeComesToRestAboveTheSlotsHoweverFarItStarts(t *testing.T) {
	for _, start := range []int{1, 4, 16, 100, 10_000} {
		k, slots := &knee{exact: float64(start)}, 16.0
		at := start
		for range 60 {
			rate := min(float64(at), slots) / 0.010
			at = k.step(0, reading{rate: rate, known: 3, baseline: tenMS, saturated: true})
		}
		if want := int(headroom*slots + spare); at < want || at > want+1 {
			t.Errorf("from %d to %d, want %d", start, at, want)
		}
	}
}

func TestKneeHoldsWhatItDoesNotUnderstand(t *testing.T) {
	for why, r := range map[string]reading{
		"not saturated":         {rate: 100, known: 3, baseline: tenMS},
		"slower than explained": {rate: 100, known: 3, baseline: tenMS, saturated: true, slow: true},
		"too little known":      {rate: 100, known: 2, baseline: tenMS, saturated: true},
	} {
		k := &knee{exact: 20}
		if got := held(k, 20, r)[19]; got != 20 {
			t.Errorf("%s: limit %d, want 20", why, got)
		}
	}
	k := &knee{exact: 20}
	if got := held(k, 20, reading{rate: 100, known: 3, baseline: tenMS, saturated: true})[19]; got > 4 {
		t.Errorf("limit %d for one slot, want about 3: else the test above proves nothing", got)
	}
}
