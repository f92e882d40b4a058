package main

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/bench/flawed"
	"github.com/spillway-go/spillway/bench/judge"
	"github.com/spillway-go/spillway/bench/results"
	"github.com/spillway-go/spillway/bench/scenarios"
	"github.com/spillway-go/spillway/bench/sim"
)

func simCommand(ctx context.Context, args []string, out, log io.Writer) (int, error) {
	var o outputs
	f := flags("sim", log)
	o.flags(f)
	name := f.String("scenario", "", "a scenario by `name`, or a YAML file")
	seed := f.Uint64("seed", 1, "the first seed")
	seeds := f.Int("seeds", 1, "how many seeds, one run for each")
	names := f.String("arms", "none,static,spillway", "which arms; oracle is the best there can be")
	flaw := f.String("flaw", "", "break the library, to see which criteria notice: "+strings.Join(flawed.Names, ", "))
	if err := parse(f, args, 0); err != nil {
		return exitUsage, err
	}
	switch {
	case *name == "":
		return exitUsage, usagef("give -scenario NAME; bench list shows them")
	case *seeds < 1 || *seeds > 100:
		return exitUsage, usagef("-seeds %d is not from 1 to 100", *seeds)
	}
	s, err := scenarios.Find(*name)
	if err != nil {
		return exitUsage, usage{err}
	}
	file, err := simulate(ctx, s, strings.Split(*names, ","), *flaw, *seed, *seeds)
	if err != nil {
		return exitUsage, usage{err}
	}
	return conclude(file, &o, out)
}

// simulate plays one scenario in virtual time. The result holds nothing of the machine.
func simulate(ctx context.Context, s *scenarios.Scenario, names []string, flaw string, seed uint64, seeds int) (*results.File, error) {
	file := &results.File{Command: "sim", Settings: map[string]string{"scenario": s.ID, "spillway": s.Spillway}}
	for i := range uint64(seeds) {
		for _, level := range s.Levels {
			for _, arm := range names {
				run, err := sim.Run(ctx, sim.Config{Scenario: s, Arm: arm, Flaw: flaw, Level: level, Seed: seed + i})
				if err != nil {
					return nil, err
				}
				file.Runs = append(file.Runs, run)
				file.Partial = file.Partial || run.Partial
			}
		}
	}
	for _, v := range judge.Judge(s, "sim", file.Runs) {
		if slices.Contains(names, v.Arm) {
			file.Verdicts = append(file.Verdicts, v)
		}
	}
	return file, nil
}
