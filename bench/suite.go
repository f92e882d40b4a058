package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/internal/results"
	"github.com/spillway-go/spillway/bench/scenarios"
)

// The seeds of a suite: with six the interval of a median is finite.
const (
	fullSeeds  = 6
	quickSeeds = 3
)

func suiteCommand(ctx context.Context, args []string, out, log io.Writer) (int, error) {
	var o outputs
	f := flags("suite")
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
	su := suite{ctx: ctx, log: log, modes: strings.Split(*modes, ","), quick: *quick, file: &results.File{Command: "suite"}, run: inReality}
	if *modes != "sim" {
		su.file.Env = results.ReadEnv()
	}
	for _, s := range all {
		if *only == "" || slices.Contains(strings.Split(*only, ","), s.ID) {
			su.chosen = append(su.chosen, s)
		}
	}
	su.plan()
	if err := su.play(); err != nil {
		return exitInvalid, err
	}
	su.file.Partial = ctx.Err() != nil
	return conclude(su.file, &o, out)
}

// suite collects the results of many scenarios.
type suite struct {
	ctx    context.Context
	log    io.Writer
	modes  []string
	quick  bool
	chosen []*scenarios.Scenario
	file   *results.File
	run    func(context.Context, *local) (*measure.Run, error) // a run in real time
}

// play plays all scenarios in virtual time, with all arms and seeds, and then those of them in real time for which that means
// something: virtual time uses every core, real time wants them idle.
func (su *suite) play() error {
	for _, s := range su.chosen {
		if err := su.inVirtualTime(s); err != nil {
			return err
		}
	}
	for _, s := range su.chosen {
		if su.ctx.Err() != nil {
			return nil
		}
		if s.Kind == "overhead" && slices.Contains(su.modes, "handler") {
			if err := su.overhead(s); err != nil {
				return err
			}
		}
		if len(su.realModes(s)) > 0 {
			if err := su.inRealTime(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// seeds is how many seeds of s are played in virtual time.
func (su *suite) seeds(s *scenarios.Scenario) int {
	switch {
	case su.quick:
		return quickSeeds
	case s.Seeds > 0:
		return s.Seeds
	}
	return fullSeeds
}

func (su *suite) inVirtualTime(s *scenarios.Scenario) error {
	if !slices.Contains(su.modes, "sim") || s.Kind == "overhead" || su.ctx.Err() != nil {
		return nil
	}
	fmt.Fprintf(su.log, "bench: %s in virtual time\n", s.ID)
	if su.quick {
		s = s.Quick()
	}
	file, err := simulate(su.ctx, s, s.Arms, "", 1, su.seeds(s))
	if err != nil {
		return err
	}
	su.file.Runs = append(su.file.Runs, file.Runs...)
	su.file.Verdicts = append(su.file.Verdicts, file.Verdicts...)
	return nil
}

// overhead measures what protection costs, which only real time can tell.
func (su *suite) overhead(s *scenarios.Scenario) error {
	fmt.Fprintf(su.log, "bench: %s in real time\n", s.ID)
	run, err := overhead(su.ctx, s)
	if err != nil {
		return err
	}
	su.file.Runs = append(su.file.Runs, run)
	su.file.Verdicts = append(su.file.Verdicts, verdicts(s, "handler", s.Arms, []*measure.Run{run})...)
	return nil
}

// realModes are the ways in which s is played in real time.
func (su *suite) realModes(s *scenarios.Scenario) (modes []string) {
	for _, m := range s.Modes {
		if slices.Contains(su.modes, m) {
			modes = append(modes, m)
		}
	}
	return modes
}
