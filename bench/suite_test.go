package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/internal/results"
	"github.com/spillway-go/spillway/bench/scenarios"
)

// TestThePlanSkipsNothingSilently: whatever is not played in some form says why, before anything begins.
func TestThePlanSkipsNothingSilently(t *testing.T) {
	all, err := scenarios.All()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	su := suite{log: &log, modes: []string{"sim", "handler", "socket"}, chosen: all}
	su.plan()
	for _, s := range all {
		if strings.Count(log.String(), "  "+s.ID+" ") != 1 && s.Kind != "overhead" {
			t.Errorf("%s is not in the plan", s.ID)
		}
		if len(s.Modes) == 1 && !strings.Contains(s.Length, "left out") || len(s.Modes) == 0 && s.Virtual == "" && s.Kind != "overhead" {
			t.Errorf("%s does not say why a form is missing", s.ID)
		}
	}
	if !strings.Contains(log.String(), "all in all some") {
		t.Errorf("no estimate:\n%s", log.String())
	}
}

// forms plays one scenario as a suite does in real time, but in a bubble.
func forms(t *testing.T, change func(*suite, *scenarios.Scenario)) (file *results.File) {
	s, err := scenarios.Find("priority")
	if err != nil {
		t.Fatal(err)
	}
	s.Modes = []string{"handler"}
	s.Phases[0].For, s.Phases[1].Real = 2*time.Second, 5*time.Second
	file = new(results.File)
	su := suite{log: new(bytes.Buffer), modes: []string{"sim", "handler"}, file: file, run: inReality}
	change(&su, s)
	synctest.Test(t, func(t *testing.T) {
		su.ctx = t.Context()
		if err := su.inRealTime(s); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute) // what the app still works on
	})
	return file
}

func TestTheFormsOfAScenarioAgree(t *testing.T) {
	file := forms(t, func(*suite, *scenarios.Scenario) {})
	a := file.Agreements[0]
	if len(file.Agreements) != 1 || a.Status != judge.Pass || a.Criteria != 2 || a.Sim.Met != 2 || a.Handler.Met != 2 || a.Socket != nil {
		t.Errorf("%+v, sim %+v, handler %+v", a, a.Sim, a.Handler)
	}
	if file.Exit() != exitPass || len(file.Verdicts) != 3 {
		t.Errorf("exit %d, %d rows", file.Exit(), len(file.Verdicts))
	}
}

func TestAFormThatDoesNotHoldACriterionFails(t *testing.T) {
	file := forms(t, func(su *suite, _ *scenarios.Scenario) {
		su.run = func(ctx context.Context, l *local) (*measure.Run, error) {
			l.arm = "static" // as good in goodput, and blind to priorities
			run, err := l.run(ctx)
			run.Arm = "spillway"
			return run, err
		}
	})
	if a := file.Agreements[0]; a.Status != judge.Fail || a.Handler.Met != 0 || file.Exit() != exitFail {
		t.Errorf("%s, %d criteria met, exit %d", a.Status, a.Handler.Met, file.Exit())
	}
}

// TestSlackIsForRealTimeOnly: what the clock of a machine costs is no excuse in virtual time.
func TestSlackIsForRealTimeOnly(t *testing.T) {
	bound := 0.5
	s := &scenarios.Scenario{ID: "x", Pass: []scenarios.Criterion{{Name: "row", Metric: "figure", Arm: "spillway", Min: &bound, Slack: 0.1, SlackWhy: "why"}}}
	for _, c := range []struct {
		mode  string
		value float64
		met   int
	}{{"sim", 0.45, 0}, {"sim", 0.5, 1}, {"handler", 0.45, 1}, {"socket", 0.39, 0}} {
		run := &measure.Run{Scenario: "x", Arm: "spillway", Mode: c.mode, Extra: map[string]float64{"figure": c.value}}
		_, passed, rows := met(s, c.mode, []*measure.Run{run})
		if said := strings.Contains(rows[0].Plain, "why"); passed != c.met || said != (c.mode != "sim") {
			t.Errorf("%v in %s: %d met, %q", c.value, c.mode, passed, rows[0].Plain)
		}
	}
}

func TestASpoiledRunIsPlayedOnceMore(t *testing.T) {
	for spoiled, want := range map[int]judge.Status{1: judge.Pass, 2: judge.Invalid} {
		played := 0
		file := forms(t, func(su *suite, _ *scenarios.Scenario) {
			su.run = func(ctx context.Context, l *local) (*measure.Run, error) {
				run, err := l.run(ctx)
				if played++; played <= spoiled {
					run.Invalid = "late"
				}
				return run, err
			}
		})
		if a := file.Agreements[0]; a.Status != want || played != 2 {
			t.Errorf("spoiled %d times: %s after %d runs, want %s", spoiled, a.Status, played, want)
		}
		if invalid := slices.ContainsFunc(file.Verdicts, func(v judge.Verdict) bool { return v.Status == judge.Invalid }); invalid != (want == judge.Invalid) {
			t.Errorf("spoiled %d times: %+v", spoiled, file.Verdicts)
		}
	}
}
