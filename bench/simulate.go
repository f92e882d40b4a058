package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/spillway-go/spillway/bench/internal/flawed"
	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/internal/results"
	"github.com/spillway-go/spillway/bench/internal/sim"
	"github.com/spillway-go/spillway/bench/scenarios"
)

func simCommand(ctx context.Context, args []string, out, log io.Writer) (int, error) {
	var o outputs
	f := flags("sim")
	o.flags(f)
	name := f.String("scenario", "", "a scenario by `name`, or a YAML file")
	seed := f.Uint64("seed", 1, "the first seed")
	seeds := f.Int("seeds", 1, "how many seeds, one run for each")
	names := f.String("arms", "", "which arms, such as none,static,spillway,oracle (the best there can be); empty means the scenario's")
	flaw := f.String("flaw", "", "break the library, to see which criteria notice: "+strings.Join(flawed.Names, ", "))
	mapped := f.Bool("map", false, "draw how long recovery takes for many loads and triggers, instead of playing the scenario once")
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
	if *mapped {
		file, err := recoveryMap(ctx, s, chosen(*names, s), *flaw, *seed)
		if err != nil {
			return exitUsage, usage{err}
		}
		printMap(out, file.Map)
		return conclude(file, &o, out)
	}
	file, err := simulate(ctx, s, chosen(*names, s), *flaw, *seed, *seeds)
	if err != nil {
		return exitUsage, usage{err}
	}
	return conclude(file, &o, out)
}

// simulate plays one scenario in virtual time. The result holds nothing of the machine.
func simulate(ctx context.Context, s *scenarios.Scenario, names []string, flaw string, seed uint64, seeds int) (*results.File, error) {
	switch s.Kind {
	case "probe":
		return probeInVirtualTime(ctx, s, names, flaw)
	case "overhead":
		return nil, fmt.Errorf("bench: scenario %s measures real time; use bench run", s.ID)
	}
	file := &results.File{Command: "sim", Settings: map[string]string{"scenario": s.ID, "spillway": s.Spillway}}
	err := each(s, names, seed, seeds, runtime.GOMAXPROCS(0), file, func(arm string, level float64, seed uint64) (*measure.Run, error) {
		return sim.Run(ctx, sim.Config{Scenario: s, Arm: arm, Flaw: flaw, Level: level, Seed: seed})
	})
	for _, run := range file.Runs {
		file.Partial = file.Partial || run.Partial
	}
	file.Verdicts = verdicts(s, "sim", names, file.Runs)
	return file, err
}
