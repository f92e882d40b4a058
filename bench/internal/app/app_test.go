package app

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spillway-go/spillway/bench/scenarios"
)

func scenario(slots int, d ...scenarios.Disturbance) *scenarios.Scenario {
	return &scenarios.Scenario{
		App: scenarios.App{Slots: slots, Service: 10 * time.Millisecond}, Disturb: d,
		Populations: []scenarios.Population{{Name: "a"}, {Name: "b"}},
	}
}

// TestTheAppServesInOrderOfArrival holds the heap against a plain list of slots that is searched each time.
func TestTheAppServesInOrderOfArrival(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(1, 9).Draw(t, "slots")
		a, model := New(scenario(slots)), make([]time.Duration, slots)
		now := time.Duration(0)
		for range 50 {
			now += time.Duration(rapid.IntRange(0, 20).Draw(t, "gap"))
			work := time.Duration(rapid.IntRange(1, 50).Draw(t, "work"))
			first := slices.Index(model, slices.Min(model))
			want := max(now, model[first])
			model[first] = want + work
			if start, end := a.Reserve(now, 0, work); start != want || end != want+work {
				t.Fatalf("arrived %v: from %v to %v, want from %v to %v", now, start, end, want, want+work)
			}
			if a.Next() != slices.Min(model) {
				t.Fatalf("next slot at %v, want %v", a.Next(), slices.Min(model))
			}
		}
	})
}

func TestDisturbancesLastAsLongAsTheySay(t *testing.T) {
	slow := scenarios.Disturbance{At: 100, For: 50, Slower: 3, Population: "b"}
	stall := scenarios.Disturbance{At: 1000, For: 100, Every: 500, Stall: true}
	for _, c := range []struct {
		now        time.Duration
		population int
		start, end time.Duration
	}{
		{0, 1, 0, 10},         // before
		{99, 1, 99, 109},      // began before
		{100, 1, 100, 130},    // three times slower
		{100, 0, 100, 110},    // the other population does not notice
		{149, 1, 149, 179},    // the last that does
		{150, 1, 150, 160},    // over
		{1000, 0, 1100, 1110}, // starts when the stall is over
		{1099, 0, 1100, 1110}, // still
		{995, 0, 995, 1105},   // stopped in the middle
		{1100, 0, 1100, 1110}, // over
		{1550, 0, 1600, 1610}, // comes again
		{2095, 0, 2100, 2110}, // and again
	} {
		if start, end := New(scenario(1, slow, stall)).Reserve(c.now, c.population, 10); start != c.start || end != c.end {
			t.Errorf("arrived %d (population %d): from %d to %d, want from %d to %d", c.now, c.population, start, end, c.start, c.end)
		}
	}
}

func TestSlotsThatAreLostFinishWhatTheyHaveBegunAndComeBack(t *testing.T) {
	a := New(scenario(4, scenarios.Disturbance{At: 100, For: 50, Lost: 3}))
	for range 4 {
		if _, end := a.Reserve(95, 0, 10); end != 105 {
			t.Fatalf("ends at %d, want 105", end)
		}
	}
	for i, want := range []time.Duration{115, 125, 135, 145, 155, 160, 160, 160} { // one slot, and from 150 on four
		if _, end := a.Reserve(101, 0, 10); end != want {
			t.Errorf("the %d. that comes meanwhile ends at %d, want %d", i+1, end, want)
		}
	}
}
