// Rules compares what a decision of a keyed rate limiter costs in this process: Spillway's limits.Memory beside the
// limiters that Go services use. It prints one table, in nanoseconds per decision and with ratios, and what each key costs
// in memory.
//
//	go run .          # everything, about 3 minutes
//	go run . -quick   # a look, about 20 s; too short to be quoted
//
// Every figure includes reading the clock once for each decision, as every peer does. Before anything is timed the fixtures
// are held to what they claim: allowed is allowed, denied is denied, and keys vary.
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
	rounds int
	span   time.Duration
	keys   []int // how many distinct keys to measure the memory of
}

var (
	full  = plan{rounds: 10, span: 80 * time.Millisecond, keys: []int{1_000_000, 1_200_000, 1_400_000}}
	quick = plan{rounds: 3, span: 20 * time.Millisecond, keys: []int{100_000, 140_000}}
)

func main() {
	short := flag.Bool("quick", false, "a look in about 20 s; its figures are too rough to be quoted")
	flag.Parse()
	p := full
	if *short {
		p = quick
	}
	if err := run(os.Stdout, os.Stderr, p); err != nil {
		fmt.Fprintln(os.Stderr, "rules:", err)
		os.Exit(1)
	}
}

// run measures everything and prints the report to out; progress goes to log, a line for each step.
func run(out, log io.Writer, p plan) error {
	r := newReport(p)
	for _, c := range cases {
		fmt.Fprintln(log, c.name)
		if err := r.measure(c); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	fmt.Fprintln(log, "three rules in one decision")
	if err := r.measureThree(); err != nil {
		return fmt.Errorf("three rules: %w", err)
	}
	for _, l := range limiters {
		fmt.Fprintf(log, "bytes per key of %s\n", l.name)
		if err := r.measureMemory(l); err != nil {
			return fmt.Errorf("memory of %s: %w", l.name, err)
		}
	}
	return r.print(out)
}
