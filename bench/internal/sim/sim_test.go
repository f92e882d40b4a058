package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/spillway-go/spillway/bench/internal/flawed"
	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/scenarios"
)

// find returns a built-in scenario, shortened.
func find(t testing.TB, name string) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Phases { // long enough for every event there is, short enough for the race detector
		s.Phases[i].For = min(s.Phases[i].For, 4*time.Second)
	}
	return s
}

func parse(t testing.TB, text string) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func play(t testing.TB, cfg Config) *measure.Run {
	t.Helper()
	if cfg.Level == 0 {
		cfg.Level = 1
	}
	run, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestTheSameSeedGivesTheSameBytes(t *testing.T) {
	for _, arm := range []string{"none", "spillway"} {
		var texts [3][]byte
		for i, seed := range []uint64{1, 1, 2} {
			s := find(t, "retry-storm-backoff") // jitter of clients and of Retry-After, too
			text, err := json.Marshal(play(t, Config{Scenario: s, Arm: arm, Seed: seed}))
			if err != nil {
				t.Fatal(err)
			}
			texts[i] = bytes.ReplaceAll(text, []byte(`"seed":2`), []byte(`"seed":1`))
		}
		if !bytes.Equal(texts[0], texts[1]) {
			t.Errorf("%s: the same seed gave two results", arm)
		}
		if bytes.Equal(texts[0], texts[2]) {
			t.Errorf("%s: another seed changed nothing", arm)
		}
	}
}

// TestTheOracleReachesWhatIsPossible: metrics that a perfect scheduler does not pass would measure something else.
func TestTheOracleReachesWhatIsPossible(t *testing.T) {
	s := parse(t, `
id: triple
app: {slots: 10, service: 20ms}
deadline: 400ms
phases: [{name: warmup, for: 2s, warmup: true}, {name: load, for: 30s}]
populations:
  - {name: greedy, clients: 1, load: 2}
  - {name: others, clients: 10, load: 1}
`)
	run := play(t, Config{Scenario: s, Arm: "oracle", Seed: 3})
	if g := judge.Goodput(run, measure.Pick{}); g < 0.99 || g > 1.01 {
		t.Errorf("goodput %v", g)
	}
	fair, err := judge.Metric(run, &scenarios.Criterion{Metric: "jain"})
	if err != nil || fair < 0.99 {
		t.Errorf("Jain %v, %v", fair, err)
	}
	none := play(t, Config{Scenario: s, Arm: "none", Seed: 3})
	if g := judge.Goodput(none, measure.Pick{}); g > 0.1 {
		t.Errorf("without protection goodput is %v at three times the capacity: nothing is proved", g)
	}
}

func TestEveryRequestEndsExactlyOnce(t *testing.T) {
	for _, name := range []string{"retry-storm", "noisy-churn", "impatient", "deadline", "herd", "slow-dep"} {
		for _, arm := range []string{"none", "static", "spillway", "oracle"} {
			run := play(t, Config{Scenario: find(t, name), Arm: arm, Seed: 5})
			s := run.Sum(measure.Pick{})
			ended := int64(0)
			for _, n := range s.Counts {
				ended += n
			}
			if ended != s.Attempts || s.Attempts < s.Asked {
				t.Errorf("%s/%s: %d attempts of %d requests, %d ends", name, arm, s.Attempts, s.Asked, ended)
			}
			if arm != "none" && run.Extra["in_flight_end"] != 0 {
				t.Errorf("%s/%s: %v slots did not come back", name, arm, run.Extra["in_flight_end"])
			}
		}
	}
}

// one is a single request of so much work at an app of one slot, with a deadline and a patience.
func one(t *testing.T, service, deadline, timeout string) *scenarios.Scenario {
	return parse(t, `
id: one
app: {slots: 1, service: `+service+`}
deadline: `+deadline+`
arrivals: constant
phases: [{name: a, for: 1s}]
populations: [{name: p, load: 0.00001, timeout: `+timeout+`, bursts: {at: 100ms, size: 1}}]
`)
}

func TestAnAnswerAfterTheDeadlineIsLateAndNoGoodput(t *testing.T) {
	s := one(t, "150ms", "100ms", "400ms")
	run := play(t, Config{Scenario: s, Arm: "none", Seed: 1})
	c := run.Sum(measure.Pick{}).Counts
	if c[measure.Late] != 1 || c[measure.OK] != 0 {
		t.Errorf("outcomes %v, want one late", c)
	}
	if run.Phases[0].Wasted != run.Phases[0].Work {
		t.Errorf("work for a late answer is not counted as wasted")
	}
}

func TestWhoGivesUpInTheLineWastesNoWork(t *testing.T) {
	s := parse(t, `
id: line
app: {slots: 1, service: 300ms}
deadline: 500ms
arrivals: constant
phases: [{name: a, for: 2s}]
populations:
  - {name: first, bursts: {at: 100ms, size: 0.6}}
  - {name: hasty, timeout: 100ms, bursts: {at: 150ms, size: 0.6}}
spillway: |
  concurrency: {algorithm: fixed, initial: 1}
  queue: {max_wait: 10s}
`)
	run := play(t, Config{Scenario: s, Arm: "spillway", Seed: 1})
	p := run.Phases[0].Populations
	if p[0].Counts[measure.OK] != 1 || p[1].Counts[measure.Timeout] != 1 || run.Phases[0].Wasted != 0 {
		t.Errorf("first %v, hasty %v, wasted %v", p[0].Counts, p[1].Counts, run.Phases[0].Wasted)
	}
	run = play(t, Config{Scenario: s, Arm: "none", Seed: 1})
	if run.Phases[0].Wasted == 0 {
		t.Error("the control wastes nothing: the app does not ignore cancellation")
	}
}

// TestFlawsTurnNamedRowsRed: a criterion that no broken product fails would prove nothing.
func TestFlawsTurnNamedRowsRed(t *testing.T) {
	s := parse(t, `
id: burst
app: {slots: 10, service: 20ms}
deadline: 400ms
phases: [{name: warmup, for: 5s, warmup: true}, {name: load, for: 20s}]
populations:
  - {name: steady, clients: 50, load: 0.5}
  - {name: bursty, clients: 100, bursts: {at: 6s, every: 5s, size: 0.2}}
spillway: |
  queue: {max_wait: 300ms, capacity: 200}
pass: [{name: nobody is dropped, metric: drops, max: 0.001}]
`)
	for flaw, want := range map[string]judge.Status{"": judge.Pass, flawed.NoQueue: judge.Fail} {
		runs := []*measure.Run{play(t, Config{Scenario: s, Arm: "spillway", Flaw: flaw, Seed: 1})}
		if v := judge.Judge(s, "sim", runs)[0]; v.Status != want {
			t.Errorf("flaw %q: %s is %s (%v), want %s", flaw, v.Name, v.Status, v.Value, want)
		}
	}
}

func TestARunThatIsBrokenOffSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	run, err := Run(ctx, Config{Scenario: find(t, "sweep"), Arm: "none", Level: 5, Seed: 1})
	if err != nil || !run.Partial {
		t.Errorf("%v, partial %v", err, run.Partial)
	}
}

func TestBadSettingsAreErrors(t *testing.T) {
	bad := find(t, "step")
	bad.Spillway = "queue: {length: 3}"
	for _, cfg := range []Config{
		{Scenario: find(t, "step"), Arm: "magic"}, {Scenario: find(t, "step"), Arm: "spillway", Flaw: "ugly"}, {Scenario: bad, Arm: "spillway"},
	} {
		if _, err := Run(t.Context(), cfg); err == nil {
			t.Errorf("%s %s: no error", cfg.Arm, cfg.Flaw)
		}
	}
}

// BenchmarkSim shows how many requests a second of real time holds.
func BenchmarkSim(b *testing.B) {
	for _, arm := range []string{"none", "spillway"} {
		b.Run(arm, func(b *testing.B) {
			requests, start := int64(0), time.Now()
			for b.Loop() {
				requests += play(b, Config{Scenario: find(b, "noisy"), Arm: arm, Seed: 1}).Generator.Asked
			}
			b.ReportMetric(float64(requests)/time.Since(start).Seconds(), "requests/s")
		})
	}
}
