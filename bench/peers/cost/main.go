// Cost compares what overload controls themselves cost: to let one request in and out again, and to refuse one. It prints one
// table, with ratios.
//
//	go run .          # about 30 s
//	go run . -quick   # about 5 s; too short to be quoted
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spillway-go/spillway/bench/peers/stopwatch"
	"github.com/spillway-go/spillway/bench/peers/table"
)

// plan says how long to measure.
type plan struct {
	rounds int
	span   time.Duration
}

var (
	full  = plan{rounds: 10, span: 80 * time.Millisecond}
	quick = plan{rounds: 3, span: 20 * time.Millisecond}
)

func main() {
	short := flag.Bool("quick", false, "a look in a few seconds; its figures are too rough to be quoted")
	flag.Parse()
	p := full
	if *short {
		p = quick
	}
	if err := run(os.Stdout, os.Stderr, p); err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

// figures are those of one control: passing and refusing, on one core and on two. What it does not do is nil.
type figures struct{ pass, refuse [2]*stopwatch.Figure }

// run measures everything and prints the table to out; progress goes to log.
func run(out, log io.Writer, p plan) error {
	before := table.Load()
	all := map[string]*figures{}
	for _, c := range controls {
		all[c.name] = new(figures)
	}
	for _, what := range []string{"pass", "refuse"} {
		for _, cores := range []int{1, 2} {
			fmt.Fprintf(log, "%s, %d core(s)\n", what, cores)
			if err := measure(what, cores, p, all); err != nil {
				return fmt.Errorf("%s on %d core(s): %w", what, cores, err)
			}
		}
	}
	return print(out, p, all, before)
}

func measure(what string, cores int, p plan, all map[string]*figures) error {
	var contenders []stopwatch.Contender
	for _, c := range controls {
		open := c.pass
		if what == "refuse" {
			open = c.refuse
		}
		if open == nil {
			continue
		}
		once, closing, err := open()
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		defer closing()
		contenders = append(contenders, stopwatch.Contender{Name: c.name, Run: repeat(once)})
	}
	measured, err := stopwatch.Compare(stopwatch.Plan{Cores: cores, Rounds: p.rounds, Span: p.span}, contenders)
	if err != nil {
		return err
	}
	for i, f := range measured {
		into := &all[f.Name].pass
		if what == "refuse" {
			into = &all[f.Name].refuse
		}
		into[cores-1] = &measured[i]
	}
	return nil
}

// repeat makes a run of an operation that tells whether it did what it is about.
func repeat(once func() bool) func(worker, n int) error {
	return func(_, n int) error {
		for i := range n {
			if !once() {
				return fmt.Errorf("operation %d of %d came out otherwise than it has to", i+1, n)
			}
		}
		return nil
	}
}

func print(w io.Writer, p plan, all map[string]*figures, before string) error {
	fmt.Fprintf(w, "%s\n\n", table.Machine())
	if p.rounds < full.rounds {
		fmt.Fprint(w, "QUICK: too few and too short runs to be quoted.\n\n")
	}
	fmt.Fprintf(w, "Nanoseconds; median of %d interleaved runs of %v. On 1 core processor time of one goroutine, on 2 cores time on the wall divided\n"+
		"by the operations of both goroutines. In brackets Spillway's figure divided by the row's: below 1 Spillway is cheaper.\n\n", p.rounds, p.span)
	t := table.Table{Left: 2, Header: []string{"control", "version", "pass 1", "pass 2", "B", "allocs", "refuse 1", "refuse 2", "allocs"}}
	worst := 0.0
	for _, c := range controls {
		f := all[c.name]
		row := []string{c.name, version(c.module)}
		for i := range 2 {
			row = append(row, beside(f.pass[i], all[own].pass[i]))
		}
		row = append(row, "", "")
		if f.pass[0] != nil {
			row[4], row[5] = fmt.Sprintf("%.0f", f.pass[0].Bytes), fmt.Sprintf("%.0f", f.pass[0].Allocs)
		}
		for i := range 2 {
			row = append(row, beside(f.refuse[i], all[own].refuse[i]))
		}
		if f.refuse[0] != nil {
			row = append(row, fmt.Sprintf("%.0f", f.refuse[0].Allocs))
		}
		for _, x := range []*stopwatch.Figure{f.pass[0], f.pass[1], f.refuse[0], f.refuse[1]} {
			if x != nil {
				worst = max(worst, x.Spread)
			}
		}
		t.Add(row...)
	}
	if err := t.Markdown(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nNoise: the middle half of the runs lies within ±%.0f %% of the median in the worst cell; load average %s before, %s after.\n", 100*worst, before, table.Load())
	return err
}

func version(module string) string {
	if module == "" {
		return ""
	}
	return table.Version(module)
}

// beside prints a figure and, for others than Spillway's, that one as a ratio to it.
func beside(f, ours *stopwatch.Figure) string {
	switch {
	case f == nil:
		return ""
	case f == ours || ours == nil:
		return fmt.Sprintf("%.0f", f.Nanos)
	}
	return fmt.Sprintf("%.0f (%.2f)", f.Nanos, ours.Nanos/f.Nanos)
}
