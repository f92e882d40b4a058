package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/bench/judge"
	"github.com/spillway-go/spillway/bench/measure"
	"github.com/spillway-go/spillway/bench/results"
	"github.com/spillway-go/spillway/bench/scenarios"
)

// The seeds of a suite: with six the interval of a median is finite.
const (
	fullSeeds  = 6
	quickSeeds = 3
)

func suiteCommand(ctx context.Context, args []string, out, log io.Writer) (int, error) {
	var o outputs
	f := flags("suite", log)
	o.flags(f)
	quick := f.Bool("quick", false, "shorter phases, three seeds, virtual time only")
	modes := f.String("modes", "", "which of sim,handler,socket; empty means all, and with -quick sim")
	only := f.String("only", "", "only these scenarios, separated by commas")
	if err := parse(f, args, 0); err != nil {
		return exitUsage, err
	}
	if *modes == "" {
		*modes = "sim,handler,socket"
		if *quick {
			*modes = "sim"
		}
	}
	for _, m := range strings.Split(*modes, ",") {
		if !slices.Contains([]string{"sim", "handler", "socket"}, m) {
			return exitUsage, usagef("-modes: %q is none of sim, handler, socket", m)
		}
	}
	all, err := scenarios.All()
	if err != nil {
		return exitInvalid, err
	}
	if *only != "" {
		for _, name := range strings.Split(*only, ",") {
			if !slices.ContainsFunc(all, func(s *scenarios.Scenario) bool { return s.ID == name }) {
				return exitUsage, usagef("-only: there is no scenario %q; bench list shows them", name)
			}
		}
	}
	su := suite{ctx: ctx, log: log, modes: strings.Split(*modes, ","), seeds: fullSeeds, file: &results.File{Command: "suite"}}
	if *quick {
		su.seeds = quickSeeds
	}
	if *modes != "sim" {
		su.file.Env = results.ReadEnv()
	}
	for _, s := range all {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), s.ID) {
			continue
		}
		if *quick {
			s.Quicken()
		}
		if err := su.play(s); err != nil {
			return exitInvalid, err
		}
		if ctx.Err() != nil {
			su.file.Partial = true
			break
		}
	}
	return conclude(su.file, &o, out)
}

// suite collects the results of many scenarios.
type suite struct {
	ctx   context.Context
	log   io.Writer
	modes []string
	seeds int
	file  *results.File
}

// play plays one scenario in virtual time with all arms and seeds, and then in those real ways that it can be played in.
func (su *suite) play(s *scenarios.Scenario) error {
	var simulated *measure.Run
	if slices.Contains(su.modes, "sim") && s.Kind != "overhead" {
		fmt.Fprintf(su.log, "bench: %s in virtual time\n", s.ID)
		file, err := simulate(su.ctx, s, s.Arms, "", 1, su.seeds)
		if err != nil {
			return err
		}
		su.file.Runs = append(su.file.Runs, file.Runs...)
		su.file.Verdicts = append(su.file.Verdicts, file.Verdicts...)
		simulated = last(file.Runs, "spillway")
	}
	if s.Kind == "overhead" && slices.Contains(su.modes, "handler") {
		run, err := overhead(su.ctx, s)
		if err != nil {
			return err
		}
		su.file.Runs = append(su.file.Runs, run)
		su.file.Verdicts = append(su.file.Verdicts, verdicts(s, "handler", s.Arms, []*measure.Run{run})...)
	}
	for _, mode := range s.Modes {
		if slices.Contains(su.modes, mode) && su.ctx.Err() == nil {
			if err := su.real(s, mode, simulated); err != nil {
				return err
			}
		}
	}
	return nil
}

// real plays the scenario with Spillway in real time, at the level and with the seed of the simulated run, and holds the two
// against each other. The bounds of the scenario are judged in virtual time, where nothing else interferes.
func (su *suite) real(s *scenarios.Scenario, mode string, simulated *measure.Run) error {
	if simulated == nil {
		return nil
	}
	fmt.Fprintf(su.log, "bench: %s in real time, %s, %v\n", s.ID, mode, s.Duration())
	l := local{scenario: s, arm: "spillway", mode: mode, level: simulated.Level, seed: simulated.Seed}
	run, err := l.run(su.ctx)
	if err != nil {
		return err
	}
	su.file.Runs = append(su.file.Runs, run)
	su.file.Verdicts = append(su.file.Verdicts, agreement(s, run, simulated))
	return nil
}

// last returns the last run of the arm with the first seed.
func last(runs []*measure.Run, arm string) (found *measure.Run) {
	for _, r := range runs {
		if r.Arm == arm && r.Seed == 1 {
			found = r
		}
	}
	return found
}

// agreement is the row that says whether real time and virtual time come to the same goodput.
func agreement(s *scenarios.Scenario, run, simulated *measure.Run) judge.Verdict {
	margin := judge.Number(s.Margin)
	off := judge.Number(math.Abs(judge.Goodput(run, measure.Pick{}) - judge.Goodput(simulated, measure.Pick{})))
	v := judge.Verdict{
		Scenario: s.ID, Name: "agrees with the simulation", Metric: "goodput_difference", Arm: run.Arm, Mode: run.Mode,
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
