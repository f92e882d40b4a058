package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/internal/results"
	"github.com/spillway-go/spillway/bench/internal/sim"
	"github.com/spillway-go/spillway/bench/scenarios"
)

// The grid of the map, and how long each cell is watched after its trigger.
var (
	mapLoads    = []float64{0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.95}
	mapTriggers = []float64{2, 3, 5, 7, 10}
	mapSeconds  = []int{1, 3, 10}
)

const (
	mapBefore = 10 * time.Second
	mapWatch  = 40 * time.Second
)

// recoveryMap plays the scenario for every load, trigger and length of the trigger: where the app does not come back after
// the trigger has gone, it is metastable there. All populations keep their shares of the load.
func recoveryMap(ctx context.Context, s *scenarios.Scenario, arms []string, flaw string, seed uint64) (*results.File, error) {
	if s.Kind == "probe" || s.Kind == "overhead" {
		return nil, fmt.Errorf("bench: scenario %s has no load to draw a map of", s.ID)
	}
	m := &results.Map{
		Scenario: s.ID, Seed: seed, Loads: mapLoads, Triggers: mapTriggers, Seconds: mapSeconds, Watched: mapWatch.Seconds(),
		Recovery: make(map[string][][][]judge.Number),
	}
	file := &results.File{Command: "sim", Settings: map[string]string{"scenario": s.ID, "spillway": s.Spillway}, Map: m}
	for _, arm := range arms {
		for _, seconds := range m.Seconds {
			var plane [][]judge.Number
			for _, trigger := range m.Triggers {
				var row []judge.Number
				for _, load := range m.Loads {
					run, err := sim.Run(ctx, sim.Config{Scenario: cell(s, load, trigger, seconds), Arm: arm, Flaw: flaw, Level: 1, Seed: seed})
					if err != nil {
						return nil, err
					}
					if run.Partial {
						file.Partial = true
						return file, nil
					}
					recovery, err := judge.Metric(run, &scenarios.Criterion{Metric: "recovery", Phase: "after"})
					if err != nil {
						return nil, err
					}
					row = append(row, judge.Number(recovery))
				}
				plane = append(plane, row)
			}
			m.Recovery[arm] = append(m.Recovery[arm], plane)
		}
	}
	return file, nil
}

// cell is the scenario with one load, trigger and length.
func cell(s *scenarios.Scenario, load, trigger float64, seconds int) *scenarios.Scenario {
	c := *s
	c.Phases = []scenarios.Phase{
		{Name: "warmup", For: 5 * time.Second, Warmup: true}, {Name: "before", For: mapBefore},
		{Name: "trigger", For: time.Duration(seconds) * time.Second, Trigger: true}, {Name: "after", For: mapWatch},
	}
	c.Disturb = nil
	total := 0.0
	for _, p := range s.Populations {
		total += p.Load.In(0).From
	}
	c.Populations = slices.Clone(s.Populations)
	for i := range c.Populations {
		p := &c.Populations[i]
		share := 1 / float64(len(c.Populations))
		if total > 0 {
			share = p.Load.In(0).From / total
		}
		at := func(load float64) scenarios.Load { return scenarios.Load{From: load * share, To: load * share} }
		p.Load, p.Bursts = scenarios.Loads{at(load), at(load), at(trigger), at(load)}, nil
	}
	return &c
}

// printMap prints the seconds until recovery, one table for each arm and length.
func printMap(w io.Writer, m *results.Map) {
	for _, arm := range slices.Sorted(maps.Keys(m.Recovery)) {
		for i, plane := range m.Recovery[arm] {
			fmt.Fprintf(w, "%s: seconds until all is as before, after %d s of trigger (- is never in %.0f s)\n", arm, m.Seconds[i], m.Watched)
			t := tabwriter.NewWriter(w, 6, 8, 1, ' ', tabwriter.AlignRight)
			fmt.Fprint(t, "trigger \\ load\t")
			for _, l := range m.Loads {
				fmt.Fprintf(t, "%.2g\t", l)
			}
			for n, row := range plane {
				fmt.Fprintf(t, "\n%.3g\t", m.Triggers[n])
				for _, v := range row {
					if float64(v) >= m.Watched {
						fmt.Fprint(t, "-\t")
					} else {
						fmt.Fprintf(t, "%.0f\t", float64(v))
					}
				}
			}
			fmt.Fprintln(t)
			t.Flush()
		}
	}
}
