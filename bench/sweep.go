package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/internal/results"
	"github.com/spillway-go/spillway/bench/internal/sim"
	"github.com/spillway-go/spillway/bench/scenarios"
)

// sweeping are the settings of bench sweep.
type sweeping struct {
	outputs
	target   string
	remote   bool
	mode     string
	seed     uint64
	findKnee bool
	adhoc    adhoc
}

func sweepCommand(ctx context.Context, args []string, out, log io.Writer) (int, error) {
	var w sweeping
	f := flags("sweep")
	w.outputs.flags(f)
	name := f.String("scenario", "sweep", "a scenario by `name`, or a YAML file")
	levels := f.String("levels", "", "multiples of the capacity, or with -target of -rate, such as 0.5,1,2; empty means the scenario's")
	arms := f.String("arms", "", "which arms, such as none,static,spillway; empty means the scenario's")
	f.StringVar(&w.mode, "mode", "sim", "sim, handler or socket")
	f.StringVar(&w.target, "target", "", "the `URL` of a server, with -rate, -duration and so on instead of a scenario")
	f.BoolVar(&w.remote, "allow-remote", false, "allow a target that is not on this machine")
	f.Uint64Var(&w.seed, "seed", 1, "the seed")
	f.BoolVar(&w.findKnee, "knee", false, "find the highest load at which 99 % are answered in time, by bisection")
	w.adhoc.flags(f)
	if err := parse(f, args, 0); err != nil {
		return exitUsage, err
	}
	if w.mode != "sim" && w.mode != "handler" && w.mode != "socket" {
		return exitUsage, usagef("-mode %q is none of sim, handler, socket", w.mode)
	}
	s, err := w.scenario(*name, *levels)
	if err != nil {
		return exitUsage, err
	}
	return w.sweep(ctx, s, chosen(*arms, s), out)
}

// scenario is what is swept.
func (w *sweeping) scenario(name, levels string) (s *scenarios.Scenario, err error) {
	if w.target != "" {
		if err := w.adhoc.aim(&w.target); err != nil {
			return nil, err
		}
		if s, err = w.adhoc.scenario(); err != nil {
			return nil, err
		}
		s.Arms, w.mode = []string{judge.Target}, "remote"
		s.Levels = []float64{0.25, 0.5, 0.75, 1, 1.5, 2}
	} else if s, err = scenarios.Find(name); err != nil {
		return nil, usage{err}
	}
	if s.Kind == "probe" || s.Kind == "overhead" {
		return nil, usagef("scenario %s has no load to sweep", s.ID)
	}
	if w.findKnee {
		s.Kind = "bisect"
	}
	if levels == "" {
		return s, nil
	}
	s.Levels, s.Pass = nil, nil // the criteria are about the scenario's own levels
	for _, text := range strings.Split(levels, ",") {
		l, err := strconv.ParseFloat(text, 64)
		if err != nil || !(l > 0 && l <= 1000) {
			return nil, usagef("-levels: %q is no multiple above 0 and up to 1000", text)
		}
		s.Levels = append(s.Levels, l)
	}
	return s, nil
}

func (w *sweeping) sweep(ctx context.Context, s *scenarios.Scenario, names []string, out io.Writer) (int, error) {
	file := &results.File{Command: "sweep", Settings: map[string]string{"scenario": s.ID, "spillway": s.Spillway}}
	if w.mode != "sim" {
		file.Env = results.ReadEnv()
	}
	atOnce := 1
	if w.mode == "sim" {
		atOnce = runtime.GOMAXPROCS(0)
	}
	err := each(s, names, w.seed, 1, atOnce, file, func(arm string, level float64, seed uint64) (*measure.Run, error) {
		return w.one(ctx, s, arm, level, seed)
	})
	if err != nil {
		return exitInvalid, err
	}
	file.Partial = ctx.Err() != nil
	if s.Kind == "bisect" {
		for _, r := range file.Runs {
			fmt.Fprintln(out, kneeLine(r))
		}
	} else {
		file.Verdicts = verdicts(s, w.mode, names, file.Runs)
	}
	return conclude(file, &w.outputs, out)
}

func (w *sweeping) one(ctx context.Context, s *scenarios.Scenario, arm string, level float64, seed uint64) (*measure.Run, error) {
	if w.mode == "sim" {
		return sim.Run(ctx, sim.Config{Scenario: s, Arm: arm, Level: level, Seed: seed})
	}
	l := local{scenario: s, arm: arm, mode: w.mode, level: level, seed: seed}
	if w.mode != "remote" {
		return l.run(ctx)
	}
	return l.remote(ctx, w.target, w.remote)
}
