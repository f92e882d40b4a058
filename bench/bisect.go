package main

import (
	"fmt"

	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/scenarios"
)

// The search for the knee: how often it halves, between which levels, and what counts as held.
const (
	bisections = 8
	lowestKnee = 0.2
	highKnee   = 2.0
	held       = 0.99
)

// knee finds the highest level at which 99 % of the requests are answered in time, by bisection. play makes one run. The Run
// it returns is the last one that held, with the figure capacity_ratio; if none held, the first that failed.
func knee(s *scenarios.Scenario, play func(level float64) (*measure.Run, error)) (*measure.Run, error) {
	low, high := lowestKnee, highKnee
	best, err := play(low)
	if err != nil || best == nil {
		return nil, err
	}
	if best.Sum(measure.Pick{}).Success() < held {
		low = 0
	}
	for n := 0; n < bisections && low > 0 && best.Invalid == "" && !best.Partial; n++ {
		middle := (low + high) / 2
		run, err := play(middle)
		switch {
		case err != nil || run == nil:
			return nil, err
		case run.Invalid != "" || run.Partial:
			return run, nil
		case run.Sum(measure.Pick{}).Success() >= held:
			low, best = middle, run
		default:
			high = middle
		}
	}
	asked := 0.0 // what was really asked for, as arrivals are random
	for _, ph := range best.Picked(measure.Pick{}) {
		sum := best.Sum(measure.Pick{Phase: ph.Name})
		asked += float64(sum.Asked) / sum.Length.Duration().Seconds() / float64(len(best.Picked(measure.Pick{})))
	}
	if low == 0 {
		asked = 0
	}
	if best.Extra == nil {
		best.Extra = make(map[string]float64)
	}
	best.Extra["capacity_ratio"] = asked / s.App.Capacity()
	return best, nil
}

// kneeLine says where the knee is.
func kneeLine(r *measure.Run) string {
	ratio := r.Extra["capacity_ratio"]
	return fmt.Sprintf("knee of %s/%s: %.0f requests per second, %.2f of the capacity", r.Scenario, r.Arm, ratio*r.Capacity, ratio)
}
