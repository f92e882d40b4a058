package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/scenarios"
)

// TestWithoutTheirRuleTheseRowsAreRed: some scenarios pass because of one rule of their configuration, as the documentation
// advises. Without it they have to fail, or the rule and the advice are for nothing.
func TestWithoutTheirRuleTheseRowsAreRed(t *testing.T) {
	for _, c := range []struct{ scenario, row, rule string }{
		{"heavy-light", "light requests pass", "parallel"},
		{"noisy-churn", "victims succeed in a swarm", "address"},
	} {
		s, err := scenarios.Find(c.scenario)
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Phases {
			s.Phases[i].For = min(s.Phases[i].For, 10*time.Second)
		}
		var kept []string
		for line := range strings.Lines(s.Spillway) {
			if !strings.Contains(line, "name: "+c.rule) {
				kept = append(kept, line)
			}
		}
		without := *s
		without.Spillway = strings.Replace(strings.Join(kept, ""), "limits:\n  queue", "queue", 1)
		without.Spillway = strings.Replace(without.Spillway, "limits:\nqueue", "queue", 1)
		for _, how := range []struct {
			s    *scenarios.Scenario
			want judge.Status
		}{{s, judge.Pass}, {&without, judge.Fail}} {
			runs := []*measure.Run{play(t, Config{Scenario: how.s, Arm: "spillway", Seed: 1})}
			for _, v := range judge.Judge(how.s, "sim", runs) {
				if v.Name == c.row && v.Status != how.want {
					t.Errorf("%s: %s is %s (%v), want %s with\n%s", c.scenario, v.Name, v.Status, v.Value, how.want, how.s.Spillway)
				}
			}
		}
	}
}

// TestAddressesReachTheRules: in IPv6 a /64 is one holder, as the middleware takes it.
func TestAddressesReachTheRules(t *testing.T) {
	for from, want := range map[string]float64{`"2001:db8::/64"`: 1, "198.51.100.0/24": 20} {
		s := parse(t, `
id: from
app: {slots: 10, service: 20ms}
deadline: 200ms
phases: [{name: a, for: 2s}]
populations: [{name: p, clients: 20, load: 0.5, from: `+from+`}]
spillway: |
  limits:
    - {name: address, token_bucket: {capacity: 5, refill: 1/day}, per: ip}
`)
		run := play(t, Config{Scenario: s, Arm: "spillway", Seed: 1})
		if got := float64(run.Sum(measure.Pick{}).Counts[measure.OK]) / 5; got != want {
			t.Errorf("%s: %v holders, want %v", from, got, want)
		}
	}
}
