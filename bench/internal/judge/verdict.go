package judge

import (
	"fmt"
	"math"
	"slices"

	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/scenarios"
)

// Status is the word for how a row came out.
type Status string

// The four ends of a row. Pending rows leave the exit code alone.
const (
	Pass    Status = "PASS"
	Fail    Status = "FAIL"
	Pending Status = "PENDING"
	Invalid Status = "INVALID"
)

// Target is the arm of a run against somebody's own server. It is judged by the criteria for the spillway arm.
const Target = "target"

// Verdict is one criterion against what was measured.
type Verdict struct {
	Scenario string `json:"scenario"`
	Name     string `json:"name"`
	Metric   string `json:"metric"`
	Arm      string `json:"arm"`
	Mode     string `json:"mode"`
	Status   Status `json:"status"`
	// Value is the median over the seeds, or the worst where every seed counts, Low and High the extremes, and Seeds how many there are.
	Value Number  `json:"value"`
	Low   Number  `json:"low"`
	High  Number  `json:"high"`
	Seeds int     `json:"seeds"`
	Min   *Number `json:"min,omitempty"`
	Max   *Number `json:"max,omitempty"`
	// Control marks rows that prove that the scenario hurts.
	Control bool   `json:"control,omitempty"`
	Note    string `json:"note,omitempty"`
	Plain   string `json:"plain,omitempty"`
	Try     string `json:"try,omitempty"`
}

// Number is a float64 that JSON can hold also when it is infinite: what never happened has taken for ever.
type Number float64

// MarshalJSON writes it as a word when it has no digits.
func (n Number) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(n), 0) || math.IsNaN(float64(n)) {
		return fmt.Appendf(nil, "%q", fmt.Sprint(float64(n))), nil
	}
	return fmt.Appendf(nil, "%.6g", float64(n)), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (n *Number) UnmarshalJSON(text []byte) error {
	s := string(text)
	if len(s) > 1 && s[0] == '"' {
		s = s[1 : len(s)-1]
	}
	var f float64
	if _, err := fmt.Sscan(s, &f); err != nil {
		return fmt.Errorf("bench: %q is no number", s)
	}
	*n = Number(f)
	return nil
}

// Judge holds every criterion of s against the runs of one mode, over all seeds.
func Judge(s *scenarios.Scenario, mode string, runs []*measure.Run) []Verdict {
	var all []Verdict
	for i := range s.Pass {
		all = append(all, judge(s, &s.Pass[i], mode, runs))
	}
	return all
}

func judge(s *scenarios.Scenario, c *scenarios.Criterion, mode string, runs []*measure.Run) Verdict {
	v := Verdict{
		Scenario: s.ID, Name: c.Name, Metric: c.Metric, Arm: c.Arm, Mode: mode, Control: c.Control, Plain: c.Plain, Try: c.Try,
		Min: (*Number)(c.Min), Max: (*Number)(c.Max), Status: Invalid,
	}
	bySeed := make(map[uint64][]*measure.Run)
	for _, r := range runs {
		if r.Scenario != s.ID || r.Arm != c.Arm && !(r.Arm == Target && c.Arm == "spillway") || r.Mode != mode {
			continue
		}
		if r.Invalid != "" {
			v.Note = r.Invalid
			return v
		}
		if r.Partial {
			v.Note = "broken off"
			return v
		}
		bySeed[r.Seed] = append(bySeed[r.Seed], r)
	}
	var values []float64
	for _, same := range bySeed {
		value, err := overLevels(same, c)
		if err != nil {
			v.Note = err.Error()
			return v
		}
		values = append(values, value)
	}
	if len(values) == 0 {
		v.Note = "this arm was not run"
		return v
	}
	slices.Sort(values)
	v.Seeds = len(values)
	v.Low, v.High = Number(values[0]), Number(values[len(values)-1])
	v.Value = Number(Median(values))
	if c.Every && c.Min != nil {
		v.Value = v.Low
	} else if c.Every {
		v.Value = v.High
	}
	v.Status, v.Note = status(float64(v.Value), c)
	return v
}

// Median of sorted values.
func Median(sorted []float64) float64 {
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

func status(value float64, c *scenarios.Criterion) (Status, string) {
	passes := !math.IsNaN(value) && (c.Min == nil || value >= *c.Min) && (c.Max == nil || value <= *c.Max)
	switch {
	case c.Pending != "" && passes:
		return Fail, "it was pending (" + c.Pending + ") and passes now: take pending out of the scenario"
	case c.Pending != "":
		return Pending, c.Pending
	case passes:
		return Pass, ""
	}
	return Fail, ""
}

// overLevels is the metric at the level that the criterion is about, or the worst of several.
func overLevels(runs []*measure.Run, c *scenarios.Criterion) (float64, error) {
	if c.Metric == "goodput_levels" {
		return goodputLevels(runs, c)
	}
	worst, found := 0.0, false
	for _, r := range runs {
		if c.Level != 0 && r.Level != c.Level || r.Level < c.From {
			continue
		}
		v, err := Metric(r, c)
		if err != nil {
			return 0, err
		}
		if !found || c.Min != nil && v < worst || c.Min == nil && v > worst {
			worst, found = v, true
		}
	}
	if !found {
		return 0, fmt.Errorf("no run at the level that this is about")
	}
	return worst, nil
}

func goodputLevels(runs []*measure.Run, c *scenarios.Criterion) (float64, error) {
	at := func(level float64) float64 {
		for _, r := range runs {
			if r.Level == level {
				return Goodput(r, pick(c))
			}
		}
		return math.NaN()
	}
	return at(c.Level) / at(c.ThanLevel), nil
}
