package concurrency

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// calm, middling and dire are the three bands of pressure.
const calm, middling, dire = 0.0, 0.4, 1.0

// service is a simulated owner of a Cap with demand for everything that it may take.
type service struct {
	cap    Cap
	now    time.Duration
	limit  int
	demand int
	got    int
}

// under lets the pressure last and returns the limits in effect, one for each 250 ms.
func (s *service) under(pressure float64, lasting time.Duration) (limits []int) {
	for range lasting / capStep {
		s.now += capStep
		inFlight := min(s.demand, s.cap.Apply(s.limit, DefaultMin))
		s.got = s.cap.Update(s.now, Reading{Pressure: pressure, Known: true, Limit: s.limit, InFlight: inFlight, Floor: DefaultMin})
		limits = append(limits, s.got)
	}
	return limits
}

func TestDirePressureHalvesTheLimitWithinThreeSecondsAndSparesTheFloor(t *testing.T) {
	s := service{limit: 100, demand: 1000}
	limits := s.under(dire, 3*time.Second)
	if limits[0] != 85 {
		t.Errorf("first step to %d, want 85", limits[0])
	}
	if got := limits[len(limits)-1]; got > 50 {
		t.Errorf("limit %d after 3 s, want at most 50", got)
	}
	if s.under(dire, time.Minute); s.got != DefaultMin {
		t.Errorf("limit %d after a minute, want the floor of %d", s.got, DefaultMin)
	}
}

func TestRecoveryIsMonotoneAndEndsAtTheEstimate(t *testing.T) {
	s := service{limit: 100, demand: 1000}
	s.under(dire, time.Minute)
	last := DefaultMin
	for i, got := range s.under(calm, time.Minute) {
		if got < last || got > 100 {
			t.Fatalf("step %d: from %d to %d", i, last, got)
		}
		last = got
	}
	if _, on := s.cap.On(); on || s.got != 100 {
		t.Errorf("limit %d and a cap (%v) after recovery, want 100 and none", s.got, on)
	}
}

func TestRaisingTakesSixSecondsToDouble(t *testing.T) {
	s := service{limit: 200, demand: 1000}
	s.under(dire, 2*time.Second)
	from := s.got
	if s.under(calm, 5*time.Second); s.got >= 2*from {
		t.Errorf("from %d to %d within 5 s: too quick", from, s.got)
	}
	if s.under(calm, 2*time.Second); s.got < 2*from {
		t.Errorf("from %d to %d within 7 s: too slow", from, s.got)
	}
}

func TestTheMiddleBandHoldsWhateverThereIs(t *testing.T) {
	s := service{limit: 100, demand: 1000}
	if s.under(middling, time.Minute); s.got != 100 {
		t.Errorf("limit %d without a cap before, want 100", s.got)
	}
	s.under(dire, time.Second)
	before := s.got
	if s.under(middling, time.Minute); s.got != before {
		t.Errorf("limit %d, want it held at %d", s.got, before)
	}
}

// Utilisation of 10, 90, 10, 90 % smoothed with a time constant of 0.7 s is a pressure that stays in the middle band.
func TestSmoothedSpikesCutNothing(t *testing.T) {
	s := service{limit: 100, demand: 1000}
	utilisation := 0.5
	for i := range 200 {
		utilisation += 0.3 * ([2]float64{0.1, 0.9}[i%2] - utilisation)
		s.under(min(max((utilisation-0.75)/0.2, 0), 1), capStep)
		if s.got != 100 {
			t.Fatalf("cut to %d in step %d", s.got, i)
		}
	}
}

// A share of the maximum would be nothing to a service that has 30 of its 500 in use; the cap starts from the 30.
func TestTheCutStartsFromWhatIsInUse(t *testing.T) {
	s := service{limit: 500, demand: 30}
	if s.under(dire, capStep); s.got != 25 {
		t.Errorf("limit %d, want 0.85·30 = 25", s.got)
	}
}

func TestLoadThatIsNotOursCutsNothing(t *testing.T) {
	s := service{limit: 100, demand: DefaultMin}
	if s.under(dire, time.Minute); s.got != 100 {
		t.Errorf("limit %d although only the floor was in flight, want 100", s.got)
	}
}

func TestWithoutDemandTheCapIsNotRaised(t *testing.T) {
	s := service{limit: 100, demand: 1000}
	s.under(dire, time.Second)
	before := s.got
	s.demand = before / 2
	if s.under(calm, time.Minute); s.got != before {
		t.Errorf("limit %d, want it held at %d", s.got, before)
	}
	s.demand = 1000
	if s.under(calm, capStep); s.got <= before {
		t.Errorf("limit %d with demand, want more than %d", s.got, before)
	}
}

func TestAnUnknownPressureHoldsAndIsForgottenAfterTenSeconds(t *testing.T) {
	for name, pressure := range map[string]float64{"unknown": dire, "NaN": math.NaN(), "infinite": math.Inf(1), "negative": -1} {
		s := service{limit: 100, demand: 1000}
		s.under(dire, time.Second)
		before := s.got
		r := Reading{Pressure: pressure, Known: name != "unknown", Limit: 100, InFlight: before, Floor: DefaultMin}
		for range 39 {
			s.now += capStep
			if got := s.cap.Update(s.now, r); got != before {
				t.Fatalf("%s: limit %d, want it held at %d", name, got, before)
			}
		}
		s.now += capStep
		if got := s.cap.Update(s.now, r); got != 100 {
			t.Errorf("%s: limit %d after ten seconds, want 100", name, got)
		}
	}
	var c Cap
	if got := c.Update(time.Hour, Reading{Limit: 7, Floor: 4}); got != 7 {
		t.Errorf("limit %d from a cap that never knew anything, want 7", got)
	}
}

func TestAGapIsNoEvidence(t *testing.T) {
	var c Cap
	r := Reading{Pressure: dire, Known: true, Limit: 100, InFlight: 100, Floor: 4}
	c.Update(0, r)
	if got := c.Update(time.Minute, r); got != 72 {
		t.Errorf("limit %d after a gap, want one step to 72", got)
	}
	for range 100 {
		if got := c.Update(time.Minute, r); got != 72 {
			t.Errorf("limit %d by repeating the same instant, want 72", got)
		}
	}
	if got := c.Update(time.Second, r); got != 72 {
		t.Errorf("limit %d by a clock that ran back, want 72", got)
	}
}

func TestTheFloorIsKeptAlsoWhenItIsRaised(t *testing.T) {
	s := service{limit: 100, demand: 1000}
	s.under(dire, time.Minute)
	if got := s.cap.Apply(100, 10); got != 10 {
		t.Errorf("limit %d, want the new floor of 10", got)
	}
	if got := s.cap.Apply(3, 10); got != 3 {
		t.Errorf("limit %d, want the estimate of 3: a floor of the cap raises no estimate", got)
	}
}

// TestTheLawHoldsForAnyReadings checks the promises of the law over any sequence of readings.
func TestTheLawHoldsForAnyReadings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Cap
		now := time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(t, "readings") {
			now += capStep
			r := Reading{
				Pressure: rapid.Float64Range(0, 1).Draw(t, "pressure"), Known: rapid.Bool().Draw(t, "known"),
				Limit: rapid.IntRange(4, 500).Draw(t, "limit"), InFlight: rapid.IntRange(0, 500).Draw(t, "in flight"),
				Floor: 4,
			}
			was, before := c.on, c.value
			got := c.Update(now, r)
			if got < 4 || got > r.Limit {
				t.Fatalf("limit %d of %d, floor 4", got, r.Limit)
			}
			if was && c.on && (c.value < before*capCut-1e-9 && c.value > 4 || c.value > before*capRaise+1e-9) {
				t.Fatalf("from %v to %v in one step", before, c.value)
			}
			if was && c.on && !r.Known && c.value != before {
				t.Fatalf("moved from %v to %v without knowing anything", before, c.value)
			}
		}
	})
}
