package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/internal/page"
	"github.com/spillway-go/spillway/bench/internal/results"
	"github.com/spillway-go/spillway/bench/scenarios"
)

//go:embed page.html
var text string

var whole = page.New(text, template.FuncMap{
	"bounds": Bounds, "form": Form, "where": where, "value": value,
	"words": func(metric string) string { return strings.ReplaceAll(metric, "_", " ") },
})

// section is one scenario in one mode.
type section struct {
	Anchor, Scenario, Mode, About, Settings string
	Verdicts                                []judge.Verdict
	Charts                                  []template.HTML
	Runs                                    []runRow
}

// runRow is one line of the table of runs.
type runRow struct {
	Arm                                    string
	Level                                  string
	Seed                                   uint64
	Asked, OK, Late, Shed, Timeout, Failed int64
	Goodput, P50, P99, Sent, Unsent        string
	LagP50, LagP99, LagMax                 string
	Invalid                                string
	Partial                                bool
}

// HTML writes the report as one file that loads nothing.
func HTML(w io.Writer, f *results.File) error {
	counts := make(map[judge.Status]int)
	for _, v := range f.Verdicts {
		counts[v.Status]++
	}
	return whole.Execute(w, map[string]any{
		"File": f, "Verdicts": worstFirst(f.Verdicts), "Sections": sections(f), "Heat": heat(f.Map), "Pass": counts[judge.Pass], "Fail": counts[judge.Fail],
		"Pending": counts[judge.Pending], "Invalid": counts[judge.Invalid],
	})
}

func sections(f *results.File) (all []*section) {
	index := make(map[string]*section)
	at := func(scenario, mode string) *section {
		key := scenario + "-" + mode
		if index[key] == nil {
			s := &section{Anchor: key, Scenario: scenario, Mode: mode}
			if known, err := scenarios.Find(scenario); err == nil {
				s.About, s.Settings = known.About, settings(known)
			}
			index[key] = s
			all = append(all, s)
		}
		return index[key]
	}
	for _, v := range f.Verdicts {
		s := at(v.Scenario, v.Mode)
		s.Verdicts = append(s.Verdicts, v)
	}
	grouped := make(map[*section][]*measure.Run)
	for _, r := range f.Runs {
		s := at(r.Scenario, r.Mode)
		grouped[s] = append(grouped[s], r)
		s.Runs = append(s.Runs, newRunRow(r))
	}
	for s, runs := range grouped {
		s.Charts = charts(runs)
	}
	first := make(map[string]int) // the forms of a scenario stand together
	for i, s := range all {
		if _, seen := first[s.Scenario]; !seen {
			first[s.Scenario] = i
		}
	}
	slices.SortStableFunc(all, func(a, b *section) int { return cmp.Compare(first[a.Scenario], first[b.Scenario]) })
	return all
}

// worstFirst returns the rows with those that need a look at the top.
func worstFirst(all []judge.Verdict) []judge.Verdict {
	rank := map[judge.Status]int{judge.Fail: 0, judge.Invalid: 1, judge.Pending: 2, judge.Pass: 3}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b judge.Verdict) int { return cmp.Compare(rank[a.Status], rank[b.Status]) })
	return sorted
}

// where names the form of a run in words.
func where(mode string) string {
	switch mode {
	case "sim":
		return "in virtual time"
	case "handler":
		return "in process"
	case "socket":
		return "over sockets"
	}
	return mode
}

// Form writes what came out in one form: goodput, and how many criteria hold.
func Form(f *results.Form, criteria int) string {
	switch {
	case f == nil:
		return "not played"
	case f.Invalid != "":
		return "INVALID"
	case criteria == 0:
		return fmt.Sprintf("%.3f", float64(f.Goodput))
	}
	return fmt.Sprintf("%.3f · %d of %d", float64(f.Goodput), f.Met, criteria)
}

// settings is what the scenario runs with, in words.
func settings(s *scenarios.Scenario) string {
	if s.Kind == "probe" {
		return fmt.Sprintf("quota %d, %d per second", s.Probe.Capacity, s.Probe.Refill)
	}
	text := fmt.Sprintf("%d slots × %v (%s): C = %.0f/s; D = %v; static limit %d", s.App.Slots, s.App.Service, s.App.Spread, s.App.Capacity(), s.Deadline, s.Static)
	if s.Spillway != "" {
		text += "\n" + strings.TrimSpace(s.Spillway)
	}
	return text
}

func newRunRow(r *measure.Run) runRow {
	s := r.Sum(measure.Pick{})
	row := runRow{
		Arm: r.Arm, Level: fmt.Sprintf("%.3g", r.Level), Seed: r.Seed, Asked: s.Asked,
		OK: s.Counts[measure.OK], Late: s.Counts[measure.Late], Shed: s.Counts[measure.Shed], Timeout: s.Counts[measure.Timeout], Failed: s.Counts[measure.Failed],
		Goodput: fmt.Sprintf("%.3f", judge.Goodput(r, measure.Pick{})),
		P50:     fmt.Sprintf("%.1f", ms(s.Admitted.Quantile(.5))), P99: fmt.Sprintf("%.1f", ms(s.Admitted.Quantile(.99))),
		Sent: fmt.Sprint(r.Generator.Sent), Unsent: fmt.Sprint(r.Generator.Unsent),
		LagP50: fmt.Sprintf("%.1f", ms(r.Generator.LagP50.Duration())), LagP99: fmt.Sprintf("%.1f", ms(r.Generator.LagP99.Duration())),
		LagMax: fmt.Sprintf("%.1f", ms(r.Generator.LagMax.Duration())), Invalid: r.Invalid, Partial: r.Partial,
	}
	if r.Mode == "sim" {
		row.LagP50, row.LagP99, row.LagMax = "-", "-", "-"
	}
	return row
}

// Bounds says which values pass.
func Bounds(v *judge.Verdict) string {
	if v.Min != nil && v.Max != nil && *v.Min == *v.Max {
		return "= " + value(*v.Min)
	}
	var b []string
	if v.Min != nil {
		b = append(b, "≥ "+value(*v.Min))
	}
	if v.Max != nil {
		b = append(b, "≤ "+value(*v.Max))
	}
	return strings.Join(b, " and ")
}

func value(n judge.Number) string {
	if v := math.Abs(float64(n)); v >= 10_000 && v < 1e9 {
		return fmt.Sprintf("%.0f", float64(n))
	}
	return fmt.Sprintf("%.4g", float64(n))
}
