package main

import (
	"context"
	"flag"
	"io"

	"github.com/spillway-go/spillway/bench/scenarios"
)

// quotaFlags say which quota the probes expect.
type quotaFlags struct {
	capacity, refill int64
}

func (q *quotaFlags) flags(f *flag.FlagSet) {
	f.Int64Var(&q.capacity, "quota", 0, "for probes: how many requests a client has at once; 0 is the scenario's")
	f.Int64Var(&q.refill, "refill", 0, "for probes: how many requests a client gets back each second; 0 is the scenario's")
}

func (r *runFlags) probe(ctx context.Context, s *scenarios.Scenario, out io.Writer) (int, error) {
	return exitUsage, usagef("probes are not there yet")
}
