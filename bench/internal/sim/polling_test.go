package sim

import (
	"testing"

	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/scenarios"
)

// verdict of one row of the scenario pumpkin, played by the spillway arm.
func verdict(t *testing.T, row string, change func(*scenarios.Scenario)) judge.Verdict {
	t.Helper()
	s, err := scenarios.Find("pumpkin")
	if err != nil {
		t.Fatal(err)
	}
	change(s)
	runs := []*measure.Run{play(t, Config{Scenario: s, Arm: "spillway", Seed: 1})}
	for _, v := range judge.Judge(s, "sim", runs) {
		if v.Name == row {
			return v
		}
	}
	t.Fatalf("no row %q", row)
	return judge.Verdict{}
}

// TestPollingRowsCanFail: clients that stop polling, that poll too slowly, that come back all at once or whose server does not
// know the feature must each turn a row red.
func TestPollingRowsCanFail(t *testing.T) {
	for _, c := range []struct {
		row    string
		change func(*scenarios.Scenario)
		want   judge.Status
	}{
		{"polling cuts the calls", func(*scenarios.Scenario) {}, judge.Pass},
		{"polling cuts the calls", func(s *scenarios.Scenario) { s.Populations[1].Polls = false }, judge.Fail},
		{"polling cuts the calls", func(s *scenarios.Scenario) { s.Switch.PollAfter *= 4 }, judge.Fail},
		{"polling cuts the calls", func(s *scenarios.Scenario) { s.Switch.Lost = 0.5 }, judge.Fail},
		{"they come back", func(*scenarios.Scenario) {}, judge.Pass},
		{"they come back", func(s *scenarios.Scenario) { s.Switch.RecoverSpread *= 10 }, judge.Fail},
		{"who does not poll is refused", func(*scenarios.Scenario) {}, judge.Pass},
		{"who does not poll is refused", func(s *scenarios.Scenario) { s.Switch.Feature = "another" }, judge.Fail},
	} {
		if v := verdict(t, c.row, c.change); v.Status != c.want {
			t.Errorf("%s: %s (%v), want %s", v.Name, v.Status, v.Value, c.want)
		}
	}
}
