// Redis compares what a decision costs that several processes share through Redis: Spillway's redisstore beside redis_rate, on
// a server that it starts itself. It prints decisions per second with ratios, how long callers wait, what a balance takes of
// Redis's memory, and what three rules cost in one call.
//
//	go run .          # everything, about 3 minutes
//	go run . -quick   # a look, about 20 s; too short to be quoted
//
// Server and callers share the machine's cores, as the figures are about what is left for both. Before anything is timed every
// contender is held to what the comparison is about: allowed is allowed, denied is denied, keys vary.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

// plan says how long to measure.
type plan struct {
	rounds  int
	span    time.Duration
	keys    int // of the workload with many
	buckets int // whose memory is measured
	logs    int // of 100 entries each, likewise
}

var (
	full  = plan{rounds: 7, span: time.Second, keys: 100_000, buckets: 100_000, logs: 2000}
	quick = plan{rounds: 3, span: 200 * time.Millisecond, keys: 100_000, buckets: 20_000, logs: 200}
)

func main() {
	short := flag.Bool("quick", false, "a look in about 20 s; its figures are too rough to be quoted")
	flag.Parse()
	p := full
	if *short {
		p = quick
	}
	if err := run(os.Stdout, os.Stderr, p); err != nil {
		fmt.Fprintln(os.Stderr, "redis:", err)
		os.Exit(1)
	}
}

// run measures everything and prints the report to out; progress goes to log, a line for each step.
func run(out, log io.Writer, p plan) error {
	server, end, err := startServer()
	if err != nil {
		return err
	}
	defer end()
	r := newReport(p, server)
	for _, l := range limiters {
		if err := check(server, l); err != nil {
			return fmt.Errorf("%s does not do what the comparison is about: %w", l.name, err)
		}
	}
	for _, c := range casesOf(p) {
		fmt.Fprintln(log, c.name)
		if err := r.measure(c); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	fmt.Fprintln(log, "three rules in one call")
	if err := r.measureThree(); err != nil {
		return fmt.Errorf("three rules: %w", err)
	}
	fmt.Fprintln(log, "memory")
	if err := r.measureMemory(); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	return r.print(out)
}
