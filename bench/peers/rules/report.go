package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/spillway-go/spillway/bench/peers/stopwatch"
	"github.com/spillway-go/spillway/bench/peers/table"
)

// report collects figures until all are there.
type report struct {
	plan    plan
	started string // the load average before anything ran
	// nanos and allocs are by limiter, then by column; a column is a case on a number of cores.
	columns []string
	nanos   map[string][]float64
	allocs  map[string]float64 // the most of any case
	memory  map[string][]float64
	three   []stopwatch.Figure
	spreads []float64
}

func newReport(p plan) *report {
	return &report{
		plan: p, started: table.Load(),
		nanos: map[string][]float64{}, allocs: map[string]float64{}, memory: map[string][]float64{},
	}
}

// measure times one case for all limiters, on one core and on two.
func (r *report) measure(m measurement) error {
	var contenders []stopwatch.Contender
	for _, l := range limiters {
		s, err := m.prepare(l)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		defer s.close()
		contenders = append(contenders, stopwatch.Contender{Name: l.name, Run: s.run})
	}
	for _, cores := range []int{1, 2} {
		figures, err := stopwatch.Compare(stopwatch.Plan{Cores: cores, Rounds: r.plan.rounds, Span: r.plan.span}, contenders)
		if err != nil {
			return fmt.Errorf("on %d cores: %w", cores, err)
		}
		r.columns = append(r.columns, fmt.Sprintf("%s %d", m.short, cores))
		for _, f := range figures {
			r.nanos[f.Name] = append(r.nanos[f.Name], f.Nanos)
			r.allocs[f.Name] = max(r.allocs[f.Name], f.Allocs)
			r.spreads = append(r.spreads, f.Spread)
		}
	}
	return nil
}

// measureThree times three rules in one decision against one.
func (r *report) measureThree() error {
	var contenders []stopwatch.Contender
	for _, c := range []contender{
		{name: "Spillway, one rule", open: openSpillway},
		{name: "Spillway, three rules, all or nothing", open: openSpillwayThree},
		{name: "x/time/rate in a sync.Map, one", open: openXTime},
		{name: "x/time/rate in three sync.Maps, not atomic", open: func(x rule) (take, func(), error) { return xTime(x, 3) }},
	} {
		s, err := cases[0].prepare(c)
		if err != nil {
			return err
		}
		contenders = append(contenders, stopwatch.Contender{Name: c.name, Run: s.run})
	}
	figures, err := stopwatch.Compare(stopwatch.Plan{Cores: 1, Rounds: r.plan.rounds, Span: r.plan.span}, contenders)
	r.three = figures
	return err
}

func (r *report) measureMemory(l contender) error {
	for _, n := range r.plan.keys {
		b, err := bytesPerKey(l, n)
		if err != nil {
			return err
		}
		r.memory[l.name] = append(r.memory[l.name], b)
	}
	return nil
}

// print writes the report as markdown.
func (r *report) print(w io.Writer) error {
	fmt.Fprintf(w, "%s\n\n", table.Machine())
	if r.plan.rounds < full.rounds {
		fmt.Fprint(w, "QUICK: too few and too short runs to be quoted.\n\n")
	}
	fmt.Fprintf(w, "Nanoseconds for one decision, its clock included; median of %d interleaved runs of %v. On 1 core processor time of one\n"+
		"goroutine, on 2 cores time on the wall divided by the decisions of both goroutines. In brackets Spillway's figure divided by the row's:\n"+
		"below 1 Spillway is cheaper. Bytes per key are the worst of %v distinct keys.\n\n", r.plan.rounds, r.plan.span, r.plan.keys)
	t := table.Table{Left: 2, Header: append([]string{"limiter", "version"}, append(r.columns, "allocs", "bytes/key")...)}
	own := limiters[0].name
	for _, l := range limiters {
		row := []string{l.name, table.Version(l.module)}
		for i, ns := range r.nanos[l.name] {
			row = append(row, beside(ns, r.nanos[own][i], l.name == own))
		}
		row = append(row, fmt.Sprintf("%.0f", r.allocs[l.name]), beside(slices.Max(r.memory[l.name]), slices.Max(r.memory[own]), l.name == own))
		t.Add(row...)
	}
	if err := t.Markdown(w); err != nil {
		return err
	}
	if err := r.printThree(w); err != nil {
		return err
	}
	if err := r.printMarks(w); err != nil {
		return err
	}
	slices.Sort(r.spreads)
	_, err := fmt.Fprintf(w, "\nNoise: the middle half of the runs lies within ±%.0f %% of the median in the typical cell, ±%.0f %% in the worst; load average %s before, %s after.\n",
		100*r.spreads[len(r.spreads)/2], 100*r.spreads[len(r.spreads)-1], r.started, table.Load())
	return err
}

// beside prints a figure and, for others than Spillway, Spillway's as a ratio to it.
func beside(figure, own float64, isOwn bool) string {
	if isOwn || figure == 0 {
		return fmt.Sprintf("%.0f", figure)
	}
	return fmt.Sprintf("%.0f (%.2f)", figure, own/figure)
}

func (r *report) printThree(w io.Writer) error {
	fmt.Fprint(w, "\nThree rules in one decision, hot key, allowed, 1 core:\n\n")
	t := table.Table{Left: 1, Header: []string{"limiter", "ns", "× one"}}
	for i, f := range r.three {
		ratio := ""
		if i%2 == 1 {
			ratio = fmt.Sprintf("%.2f", f.Nanos/r.three[i-1].Nanos)
		}
		t.Add(f.Name, fmt.Sprintf("%.0f", f.Nanos), ratio)
	}
	return t.Markdown(w)
}

// printMarks holds Spillway to the marks that it sets itself. They are printed, not enforced: a busy machine moves them.
func (r *report) printMarks(w io.Writer) error {
	own := limiters[0].name
	at := func(name, column string) float64 { return r.nanos[name][slices.Index(r.columns, column)] }
	best := func(column string) float64 {
		low := 0.0
		for _, l := range limiters[1:] {
			if ns := at(l.name, column); low == 0 || ns < low {
				low = ns
			}
		}
		return low
	}
	const xtime, sethvargo = "x/time/rate in a sync.Map", "sethvargo/go-limiter"
	fmt.Fprint(w, "\nMarks:\n\n")
	t := table.Table{Left: 1, Header: []string{"mark", "measured", "at most", ""}}
	for _, m := range []struct {
		name        string
		value, most float64
	}{
		{"hot key, 1 core: ratio to sethvargo/go-limiter", at(own, "hot allow 1") / at(sethvargo, "hot allow 1"), 0.8},
		{"denied, 1 core: ratio to allowed", at(own, "hot deny 1") / at(own, "hot allow 1"), 1},
		{"zipf, 1 core: ratio to x/time", at(own, "zipf 1") / at(xtime, "zipf 1"), 0.6},
		{"uniform, 1 core: ratio to x/time", at(own, "uniform 1") / at(xtime, "uniform 1"), 0.6},
		{"hot key, 2 cores: ratio to the best peer", at(own, "hot allow 2") / best("hot allow 2"), 1},
		{"zipf, 2 cores: ratio to the best peer", at(own, "zipf 2") / best("zipf 2"), 1},
		{"uniform, 2 cores: ratio to the best peer", at(own, "uniform 2") / best("uniform 2"), 1},
		{"allocations, the most of any case", r.allocs[own], 0},
		{"bytes per key, the worst", slices.Max(r.memory[own]), 64},
		{"three rules: ratio to one", r.three[1].Nanos / r.three[0].Nanos, 2.5},
	} {
		verdict := "missed"
		if m.value <= m.most+0.005 { // what rounds to the mark is the mark
			verdict = "reached"
		}
		t.Add(m.name, fmt.Sprintf("%.2f", m.value), fmt.Sprintf("%g", m.most), verdict)
	}
	return t.Markdown(w)
}
