package bars

import (
	"context"
	"slices"

	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/internal/sim"
)

// Result is what one bar came to.
type Result struct {
	Case, Bar         string
	Min, Max          float64 // the bar's
	Median, Low, High float64 // over the seeds
	Reached           bool
}

// Play plays the case with seeds 1 to n and returns a Result for each of its bars. When ctx ends it returns its error.
func (c *Case) Play(ctx context.Context, n int) ([]Result, error) {
	if c.Once {
		n = 1
	}
	values := make([][]float64, len(c.Bars))
	for seed := range uint64(n) {
		run, err := c.run(ctx, "spillway", seed+1)
		if err != nil {
			return nil, err
		}
		for i := range c.Bars {
			v := 0.0
			if c.Bars[i].figure != nil {
				v = c.Bars[i].figure(run)
			} else if v, err = c.overAlone(ctx, run, seed+1); err != nil {
				return nil, err
			}
			values[i] = append(values[i], v)
		}
	}
	var all []Result
	for i, b := range c.Bars {
		slices.Sort(values[i])
		m := values[i][len(values[i])/2]
		all = append(all, Result{c.Name, b.Name, b.Min, b.Max, m, values[i][0], values[i][len(values[i])-1], b.Reached(m)})
	}
	return all, nil
}

func (c *Case) run(ctx context.Context, arm string, seed uint64) (*measure.Run, error) {
	run, err := sim.Run(ctx, sim.Config{Scenario: c.Scenario, Arm: arm, Level: 1, Seed: seed})
	if err == nil && run.Partial {
		err = ctx.Err()
	}
	return run, err
}

// overAlone is the median latency over that of the same requests without anything in front of the app.
func (c *Case) overAlone(ctx context.Context, run *measure.Run, seed uint64) (float64, error) {
	alone, err := c.run(ctx, "none", seed)
	if err != nil {
		return 0, err
	}
	return float64(run.Sum(measure.Pick{}).Admitted.Quantile(.5)) / float64(alone.Sum(measure.Pick{}).Admitted.Quantile(.5)), nil
}
