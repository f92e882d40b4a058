package schedule

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spillway-go/spillway/bench/scenarios"
)

// read makes a scenario of YAML.
func read(t testing.TB, text string) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const frame = `
id: test
app: {slots: 10, service: 10ms}
deadline: 100ms
`

// all plays the schedule to its end.
func all(s *scenarios.Scenario, level float64, seed uint64) (list []Arrival) {
	sch := New(s, level, seed)
	for a, ok := sch.Next(); ok; a, ok = sch.Next() {
		list = append(list, a)
	}
	return list
}

func TestConstantArrivalsAreEvenlySpaced(t *testing.T) {
	s := read(t, frame+"arrivals: constant\nphases: [{name: a, for: 10s}]\npopulations: [{name: p, load: 0.1}]")
	list := all(s, 1, 1)
	if n := len(list); n < 999 || n > 1000 {
		t.Fatalf("%d arrivals of 100/s in 10 s", n)
	}
	for i, a := range list {
		if want := time.Duration(i+1) * 10 * time.Millisecond; a.At < want-time.Microsecond || a.At > want+time.Microsecond {
			t.Fatalf("arrival %d at %v, want %v", i, a.At, want)
		}
	}
}

func TestPoissonArrivalsHaveTheRateAndTheSpreadOfChance(t *testing.T) {
	s := read(t, frame+"phases: [{name: a, for: 100s}]\npopulations: [{name: p, load: 0.5}]")
	list := all(s, 2, 7)
	gaps, squares := 0.0, 0.0
	for i := 1; i < len(list); i++ {
		g := (list[i].At - list[i-1].At).Seconds()
		gaps, squares = gaps+g, squares+g*g
	}
	n := float64(len(list) - 1)
	mean := gaps / n
	variation := math.Sqrt(squares/n-mean*mean) / mean
	if math.Abs(mean-0.001) > 0.00002 || math.Abs(variation-1) > 0.02 {
		t.Fatalf("mean gap %.6f s of 1 ms, coefficient of variation %.3f of 1", mean, variation)
	}
}

func TestARampIntegratesItsRate(t *testing.T) {
	s := read(t, frame+"arrivals: constant\nphases: [{name: up, for: 10s}, {name: down, for: 10s}]\npopulations: [{name: p, load: [\"0..2\", \"2..0\"]}]")
	counts := [4]int{}
	for _, a := range all(s, 1, 1) {
		counts[a.At/(5*time.Second)]++
	}
	for i, want := range [4]int{2500, 7500, 7500, 2500} {
		if d := counts[i] - want; d < -2 || d > 2 {
			t.Errorf("quarter %d: %d arrivals, want %d", i, counts[i], want)
		}
	}
}

func TestABurstComesAtOneInstantEachFromAnotherClient(t *testing.T) {
	s := read(t, frame+"phases: [{name: a, for: 10s}]\npopulations: [{name: p, clients: 50, bursts: {at: 1s, every: 4s, size: 0.5}}]")
	list := all(s, 1, 1)
	if len(list) != 3*50 {
		t.Fatalf("%d arrivals, want 3 bursts of 0.5·D·C = 50", len(list))
	}
	for i, a := range list {
		if want := time.Second + time.Duration(i/50)*4*time.Second; a.At != want || a.Client != i%50 {
			t.Fatalf("arrival %d: client %d at %v, want client %d at %v", i, a.Client, a.At, i%50, want)
		}
	}
}

func TestChurnGivesNewIdentitiesAndBoundsThem(t *testing.T) {
	s := read(t, frame+"phases: [{name: a, for: 10s}]\npopulations: [{name: p, clients: 2, load: 0.5, churn: 1s, identities: 6}]")
	seen := make(map[int]bool)
	for _, a := range all(s, 1, 1) {
		if want := 2 * int(a.At/time.Second) % 6; a.Client != want && a.Client != want+1 {
			t.Fatalf("at %v identity %d, want %d or %d", a.At, a.Client, want, want+1)
		}
		seen[a.Client] = true
	}
	if len(seen) != 6 {
		t.Errorf("%d identities, want 6", len(seen))
	}
}

// TestSchedulesAreOrderedAndRepeatable holds for any loads: times never fall back, and the same seed gives the same schedule,
// another one another.
func TestSchedulesAreOrderedAndRepeatable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		load := rapid.Float64Range(0.01, 3)
		s := &scenarios.Scenario{
			Deadline: 100 * time.Millisecond, Arrivals: rapid.SampledFrom([]string{"poisson", "constant"}).Draw(t, "arrivals"),
			App:    scenarios.App{Slots: 4, Service: 20 * time.Millisecond, Spread: "exponential"},
			Phases: []scenarios.Phase{{Name: "a", For: 2 * time.Second}, {Name: "b", For: time.Second}},
		}
		for range rapid.IntRange(1, 3).Draw(t, "populations") {
			s.Populations = append(s.Populations, scenarios.Population{
				Clients: 3, Service: 10 * time.Millisecond,
				Load: scenarios.Loads{{From: load.Draw(t, "from"), To: load.Draw(t, "to")}, {From: load.Draw(t, "from"), To: load.Draw(t, "to")}},
			})
		}
		seed := rapid.Uint64().Draw(t, "seed")
		a, b, other := all(s, 1, seed), all(s, 1, seed), all(s, 1, seed+1)
		for i := range a {
			if a[i] != b[i] {
				t.Fatalf("arrival %d differs for the same seed: %+v, %+v", i, a[i], b[i])
			}
			if i > 0 && a[i].At < a[i-1].At || a[i].At >= s.Duration()+time.Microsecond {
				t.Fatalf("arrival %d at %v after %v", i, a[i].At, a[max(i-1, 0)].At)
			}
		}
		same := len(a) == len(other)
		for i := 0; same && i < len(a); i++ {
			same = a[i] == other[i]
		}
		if same && len(a) > 0 {
			t.Fatal("another seed gave the same schedule")
		}
	})
}
