package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/internal/results"
	"github.com/spillway-go/spillway/bench/internal/sim"
	"github.com/spillway-go/spillway/bench/scenarios"
)

// inRealTime plays s with Spillway in its real forms and holds them against the simulation of the same seed: goodput has to agree
// within the margin, and every criterion about Spillway has to hold in each form.
func (su *suite) inRealTime(s *scenarios.Scenario) error {
	s = s.InRealTime()
	played := make(map[string][]*measure.Run)
	for _, level := range s.Levels {
		simulated, err := sim.Run(su.ctx, sim.Config{Scenario: s, Arm: "spillway", Level: level, Seed: 1})
		if err != nil {
			return err
		}
		played["sim"] = append(played["sim"], simulated)
		runs, err := su.forms(s, level)
		if err != nil {
			return err
		}
		agreed := results.Agreement{Scenario: s.ID, Level: level, Margin: judge.Number(s.Margin), Sim: form(simulated), Status: judge.Pass}
		for mode, run := range runs {
			played[mode] = append(played[mode], run)
			f := form(run)
			if mode == "handler" {
				agreed.Handler = f
			} else {
				agreed.Socket = f
			}
		}
		for _, mode := range su.realModes(s) {
			su.file.Runs = append(su.file.Runs, runs[mode])
			v := agreement(s, runs[mode], simulated)
			su.file.Verdicts = append(su.file.Verdicts, v)
			agreed.Status = worse(agreed.Status, v.Status)
		}
		su.file.Agreements = append(su.file.Agreements, agreed)
	}
	last := &su.file.Agreements[len(su.file.Agreements)-1]
	last.Criteria, last.Sim.Met, _ = met(s, "sim", played["sim"])
	for _, mode := range su.realModes(s) {
		f := last.Handler
		if mode == "socket" {
			f = last.Socket
		}
		var rows []judge.Verdict
		_, f.Met, rows = met(s, mode, played[mode])
		su.file.Verdicts = append(su.file.Verdicts, rows...)
		for _, v := range rows {
			last.Status = worse(last.Status, v.Status)
		}
	}
	return nil
}

// forms plays s once in each real form, side by side where that disturbs neither. A run that the generator spoiled is played once
// more, alone.
func (su *suite) forms(s *scenarios.Scenario, level float64) (map[string]*measure.Run, error) {
	modes := su.realModes(s)
	runs, errs := make([]*measure.Run, len(modes)), make([]error, len(modes))
	play := func(ctx context.Context, i int) {
		runs[i], errs[i] = su.run(ctx, &local{scenario: s, arm: "spillway", mode: modes[i], level: level, seed: 1})
	}
	runtime.GC() // what the simulation left is no business of the run
	var both sync.WaitGroup
	for i, mode := range modes {
		fmt.Fprintf(su.log, "bench: %s in real time, %s, %v%s\n", s.ID, mode, s.Duration(), atLevel(s, level))
		both.Go(func() { play(su.ctx, i) })
		if !sideBySide(s) {
			both.Wait()
		}
	}
	both.Wait()
	found := make(map[string]*measure.Run)
	for i, mode := range modes {
		if errs[i] == nil && runs[i].Invalid != "" && su.ctx.Err() == nil {
			fmt.Fprintf(su.log, "bench: %s, %s: invalid (%s); once more, alone\n", s.ID, mode, runs[i].Invalid)
			play(su.ctx, i)
		}
		if errs[i] != nil {
			return nil, errs[i]
		}
		found[mode] = runs[i]
	}
	return found, nil
}

func inReality(ctx context.Context, l *local) (*measure.Run, error) { return l.run(ctx) }

func atLevel(s *scenarios.Scenario, level float64) string {
	if len(s.Levels) == 1 {
		return ""
	}
	return fmt.Sprintf(", level %g", level)
}

func form(r *measure.Run) *results.Form {
	f := &results.Form{Goodput: judge.Number(judge.Goodput(r, measure.Pick{})), LagP99: r.Generator.LagP99, Invalid: r.Invalid}
	if r.Partial {
		f.Invalid = "broken off"
	}
	return f
}

// met judges the criteria of s about Spillway in one form. One seed decides nothing that is pending: there virtual time does.
func met(s *scenarios.Scenario, mode string, runs []*measure.Run) (of, passed int, rows []judge.Verdict) {
	about := *s
	about.Pass = nil
	for _, c := range s.Pass {
		if c.Arm != "spillway" || c.Control || c.Pending != "" {
			continue
		}
		if mode != "sim" && c.Slack > 0 {
			c.Min, c.Max = moved(c.Min, -c.Slack), moved(c.Max, c.Slack)
			c.Plain += fmt.Sprintf(" By the clock it may be off by %g more: %s.", c.Slack, c.SlackWhy)
		}
		about.Pass = append(about.Pass, c)
	}
	rows = judge.Judge(&about, mode, runs)
	for _, v := range rows {
		if v.Status == judge.Pass {
			passed++
		}
	}
	return len(rows), passed, rows
}

// moved is the bound b moved by so much, if there is one.
func moved(b *float64, by float64) *float64 {
	if b == nil {
		return nil
	}
	v := *b + by
	return &v
}

// worse is the worse of two ends of a row.
func worse(a, b judge.Status) judge.Status {
	for _, s := range []judge.Status{judge.Invalid, judge.Fail} {
		if a == s || b == s {
			return s
		}
	}
	return a
}

// agreement is the row that says whether real time and virtual time come to the same goodput.
func agreement(s *scenarios.Scenario, run, simulated *measure.Run) judge.Verdict {
	margin := judge.Number(s.Margin)
	off := judge.Number(math.Abs(judge.Goodput(run, measure.Pick{}) - judge.Goodput(simulated, measure.Pick{})))
	v := judge.Verdict{
		Scenario: s.ID, Name: "agrees with the simulation" + atLevel(s, run.Level), Metric: "goodput_difference", Arm: run.Arm, Mode: run.Mode,
		Status: judge.Pass, Value: off, Low: off, High: off, Seeds: 1, Max: &margin,
		Plain: "How far the goodput in real time is from that of the same seed in virtual time.",
		Try:   "A busy machine stretches service times; try again when it is idle.",
	}
	switch {
	case run.Invalid != "":
		v.Status, v.Note = judge.Invalid, run.Invalid
	case run.Partial:
		v.Status, v.Note = judge.Invalid, "broken off"
	case off > margin:
		v.Status = judge.Fail
	}
	return v
}
