package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/bench/internal/arms"
	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/internal/load"
	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/internal/results"
	"github.com/spillway-go/spillway/bench/scenarios"
)

// runFlags are the flags of bench run.
type runFlags struct {
	outputs
	target, target2 string
	remote          bool
	scenario        string
	arms            string
	mode            string
	seed            uint64
	seeds           int
	capacity        float64
	inFlight        int
	quiet           bool
	adhoc           adhoc
	quota           quotaFlags
}

func runCommand(ctx context.Context, args []string, out, log io.Writer) (int, error) {
	var r runFlags
	f := flags("run")
	r.outputs.flags(f)
	f.StringVar(&r.target, "target", "", "the `URL` of the server; without it the built-in app")
	f.StringVar(&r.target2, "target2", "", "for probes: the `URL` of a second server that shares its quotas with the first")
	f.BoolVar(&r.remote, "allow-remote", false, "allow a target that is not on this machine")
	f.StringVar(&r.scenario, "scenario", "", "a scenario by `name`, or a YAML file")
	f.StringVar(&r.arms, "arms", "", "which arms of the built-in app, such as none,static,spillway; empty means the scenario's")
	f.StringVar(&r.mode, "mode", "handler", "how the built-in app is called: handler or socket")
	f.Uint64Var(&r.seed, "seed", 1, "the first seed of the schedule")
	f.IntVar(&r.seeds, "seeds", 1, "how many seeds, one run for each")
	f.Float64Var(&r.capacity, "capacity", 0, "the target's capacity in requests per second; loads of scenarios are multiples of it")
	f.IntVar(&r.inFlight, "max-in-flight", 0, "how many requests may be under way at once; 0 means what the schedule can need")
	f.BoolVar(&r.quiet, "quiet", false, "no line each second")
	r.adhoc.flags(f)
	r.quota.flags(f)
	if err := parse(f, args, 0); err != nil {
		return exitUsage, err
	}
	s, err := r.choose(f)
	if err != nil {
		return exitUsage, err
	}
	if s.Kind == "probe" {
		return r.probe(ctx, s, out)
	}
	return r.measure(ctx, s, out, log)
}

// choose returns the scenario that the flags describe.
func (r *runFlags) choose(f *flag.FlagSet) (*scenarios.Scenario, error) {
	if r.mode != "handler" && r.mode != "socket" {
		return nil, usagef("-mode %q is neither handler nor socket", r.mode)
	}
	if r.seeds < 1 || r.seeds > 100 {
		return nil, usagef("-seeds %d is not from 1 to 100", r.seeds)
	}
	if err := r.adhoc.aim(&r.target, &r.target2); err != nil {
		return nil, err
	}
	if r.scenario == "" {
		if r.target == "" {
			return nil, usagef("give -target URL, or -scenario NAME for the built-in app")
		}
		return r.adhoc.scenario()
	}
	for _, name := range []string{"rate", "duration", "clients", "arrivals"} {
		if given(f, name) {
			return nil, usagef("-%s has no meaning with -scenario, which says it itself", name)
		}
	}
	s, err := scenarios.Find(r.scenario)
	if err != nil {
		return nil, usage{err}
	}
	if r.target != "" && s.Kind != "probe" {
		if r.capacity <= 0 {
			return nil, usagef("scenario %s loads the target by multiples of its capacity: give -capacity, in requests per second", s.ID)
		}
		s.App.Service = time.Duration(float64(s.App.Slots) / r.capacity * float64(time.Second))
	}
	return s, nil
}

func given(f *flag.FlagSet, name string) (found bool) {
	f.Visit(func(g *flag.Flag) { found = found || g.Name == name })
	return found
}

// measure plays the scenario in real time.
func (r *runFlags) measure(ctx context.Context, s *scenarios.Scenario, out, log io.Writer) (int, error) {
	file := &results.File{Command: "run", Env: results.ReadEnv(), Settings: map[string]string{"scenario": s.ID, "spillway": s.Spillway}}
	names, mode := chosen(r.arms, s), r.mode
	if s.Kind == "overhead" {
		return r.cost(ctx, s, file, out)
	}
	if r.target != "" {
		names, mode = []string{judge.Target}, "remote"
	}
	for _, arm := range names {
		if arm != judge.Target && !slices.Contains(arms.Names, arm) {
			return exitUsage, usagef("arm %q is none of none, static, spillway", arm)
		}
	}
	err := each(s, names, r.seed, r.seeds, 1, file, func(arm string, level float64, seed uint64) (*measure.Run, error) {
		if ctx.Err() != nil {
			return nil, nil
		}
		return r.one(ctx, s, arm, mode, level, seed, log)
	})
	if err != nil {
		return exitInvalid, err
	}
	file.Partial = ctx.Err() != nil
	file.Verdicts = verdicts(s, mode, names, file.Runs)
	return conclude(file, &r.outputs, out)
}

// chosen is the list of arms that a flag names, or the scenario's.
func chosen(list string, s *scenarios.Scenario) []string {
	if list != "" {
		return strings.Split(list, ",")
	}
	return s.Arms
}

// cost runs a scenario of kind overhead.
func (r *runFlags) cost(ctx context.Context, s *scenarios.Scenario, file *results.File, out io.Writer) (int, error) {
	run, err := overhead(ctx, s)
	if err != nil {
		return exitInvalid, err
	}
	file.Runs, file.Partial = append(file.Runs, run), run.Partial
	file.Verdicts = verdicts(s, "handler", s.Arms, file.Runs)
	return conclude(file, &r.outputs, out)
}

// each makes every run of a scenario, so many at a time: seeds, levels and arms, or one search for each arm where the scenario asks
// for that. A nil Run is left out: it was broken off before it began. The order in the file is always the same.
func each(s *scenarios.Scenario, names []string, seed uint64, seeds, atOnce int, file *results.File, play func(string, float64, uint64) (*measure.Run, error)) error {
	var jobs []func() (*measure.Run, error)
	for i := range uint64(seeds) {
		for _, arm := range names {
			if s.Kind == "bisect" {
				jobs = append(jobs, func() (*measure.Run, error) {
					return knee(s, func(level float64) (*measure.Run, error) { return play(arm, level, seed+i) })
				})
				continue
			}
			for _, level := range s.Levels {
				jobs = append(jobs, func() (*measure.Run, error) { return play(arm, level, seed+i) })
			}
		}
	}
	runs, errs := make([]*measure.Run, len(jobs)), make([]error, len(jobs))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(atOnce, len(jobs)) {
		workers.Go(func() {
			for n := next.Add(1) - 1; n < int64(len(jobs)); n = next.Add(1) - 1 {
				if runs[n], errs[n] = jobs[n](); errs[n] != nil {
					next.Add(int64(len(jobs)))
				}
			}
		})
	}
	workers.Wait()
	for n, run := range runs {
		if errs[n] != nil {
			return errs[n]
		}
		if run != nil {
			file.Runs = append(file.Runs, run)
		}
	}
	return nil
}

// verdicts judges the runs and keeps the rows about arms that were run.
func verdicts(s *scenarios.Scenario, mode string, names []string, runs []*measure.Run) (kept []judge.Verdict) {
	for _, v := range judge.Judge(s, mode, runs) {
		if slices.Contains(names, v.Arm) || v.Arm == "spillway" && slices.Contains(names, judge.Target) {
			kept = append(kept, v)
		}
	}
	return kept
}

// one is one run; the errors are of usage.
func (r *runFlags) one(ctx context.Context, s *scenarios.Scenario, arm, mode string, level float64, seed uint64, log io.Writer) (*measure.Run, error) {
	local := local{scenario: s, arm: arm, mode: mode, level: level, seed: seed, inFlight: r.inFlight}
	if !r.quiet && terminal(log) {
		local.progress = progress(log, s, arm, level)
	}
	if mode != "remote" {
		return local.run(ctx)
	}
	return local.remote(ctx, r.target, r.remote)
}

// knock sends one request before the work begins, so that a wrong address is one clear line and not thousands of errors.
func knock(ctx context.Context, sender load.Sender, target string, shot *load.Shot) error {
	short, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	a := sender.Send(short, shot)
	switch {
	case a.Err == nil || ctx.Err() != nil:
		return nil
	case errors.Is(a.Err, load.ErrRemote):
		return usagef("%s: %w", target, load.ErrRemote)
	}
	return fmt.Errorf("bench: %s cannot be reached: %w", target, a.Err)
}

// progress prints one line each second.
func progress(w io.Writer, s *scenarios.Scenario, arm string, level float64) func(int, measure.Point, int) {
	return func(second int, p measure.Point, inFlight int) {
		c := p.Counts
		fmt.Fprintf(w, "%s/%s %.3g  %3d/%ds  asked %d  ok %d  late %d  shed %d  timeout %d  error %d  in flight %d\n", s.ID, arm, level, second,
			int(s.Duration().Seconds()), p.Attempts, c[measure.OK], c[measure.Late], c[measure.Shed], c[measure.Timeout], c[measure.Failed], inFlight)
	}
}

// firstPath is a path that the scenario asks for.
func firstPath(s *scenarios.Scenario) string {
	p := &s.Populations[0]
	if len(p.Requests) > 0 {
		return p.Requests[0].Path
	}
	return "/" + p.Route
}
