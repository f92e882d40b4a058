package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spillway-go/spillway/bench/peers/table"
	"github.com/spillway-go/spillway/limits/redisstore"
)

// report collects figures until all are there.
type report struct {
	plan    plan
	server  *server
	started string // the load average before anything ran
	results []map[string]result
	three   []threeRules
	buckets map[string]float64
	log     float64
}

// threeRules is what decisions by three rules cost the server beside decisions by one.
type threeRules struct {
	callers    int
	one, three result
}

func newReport(p plan, s *server) *report {
	return &report{plan: p, server: s, started: table.Load(), buckets: make(map[string]float64)}
}

func (r *report) measure(m measurement) error {
	contenders := limiters
	if m.callers == 1 {
		contenders = append(slices.Clone(limiters), limiter{name: empty, open: openEmpty})
	}
	results, err := r.plan.compare(r.server, m, contenders)
	r.results = append(r.results, results)
	return err
}

// measureThree measures by the server's processor time, with calls that are sent alone and with calls that go together.
func (r *report) measureThree() error {
	for _, callers := range []int{1, 64} {
		results, err := r.plan.compare(r.server, measurement{callers: callers, keys: r.plan.keys}, []limiter{
			{name: "one", open: openStore(redisstore.Config{Prefix: "one"}, 1)},
			{name: "three", open: openStore(redisstore.Config{Prefix: "three"}, 3)},
		})
		if err != nil {
			return err
		}
		r.three = append(r.three, threeRules{callers, results["one"], results["three"]})
	}
	return nil
}

func (r *report) measureMemory() error {
	for _, l := range limiters {
		if l.name != own && l.name != peer {
			continue
		}
		b, err := bytesPerBucket(r.server, l, r.plan.buckets)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		r.buckets[l.name] = b
	}
	b, err := bytesPerLog(r.server, r.plan.logs)
	r.log = b
	return err
}

// print writes the report as markdown.
func (r *report) print(w io.Writer) error {
	fmt.Fprintf(w, "%s, redis-server %s, go-redis %s\n\n", table.Machine(), r.server.version(), table.Version("github.com/redis/go-redis/v9"))
	if r.plan.rounds < full.rounds {
		fmt.Fprint(w, "QUICK: too few and too short runs to be quoted.\n\n")
	}
	fmt.Fprintf(w, "Decisions per second, and how long the middle one and each hundredth take, in µs; median of %d interleaved runs of %v. Server and\n"+
		"callers share two cores. In brackets the row's decisions per second divided by redis_rate's.\n\n", r.plan.rounds, r.plan.span)
	t := table.Table{Left: 3, Header: []string{"case", "limiter", "version", "decisions/s", "p50", "p99", "Redis CPU, µs"}}
	for i, m := range casesOf(r.plan) {
		label := m.name
		for _, l := range limiters {
			x := r.results[i][l.name]
			t.Add(label, l.name, table.Version(l.module), r.rate(i, l.name), micros(x.p50), micros(x.p99), micros(x.cpu))
			label = ""
		}
		if x, ok := r.results[i][empty]; ok {
			t.Add("", empty, "", r.rate(i, empty), micros(x.p50), micros(x.p99), micros(x.cpu))
		}
	}
	if err := t.Markdown(w); err != nil {
		return err
	}
	fmt.Fprint(w, "\nThree rules in one call, all or nothing, against one; 100 000 clients:\n\n")
	t = table.Table{Left: 1, Header: []string{"callers", "one: decisions/s", "three", "one: Redis CPU, µs", "three", "× one"}}
	for _, x := range r.three {
		t.Add(fmt.Sprint(x.callers), fmt.Sprintf("%.0f", x.one.perSecond), fmt.Sprintf("%.0f", x.three.perSecond),
			micros(x.one.cpu), micros(x.three.cpu), fmt.Sprintf("%.2f", x.ratio()))
	}
	if err := t.Markdown(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nBytes of Redis's memory for each key, at names of %d bytes, everything in:\n\n", nameLength)
	t = table.Table{Left: 1, Header: []string{"state", "bytes"}}
	for _, l := range limiters {
		if b, ok := r.buckets[l.name]; ok {
			t.Add("bucket, "+l.name, fmt.Sprintf("%.0f", b))
		}
	}
	t.Add(fmt.Sprintf("log of %d charges, %s", entries, own), fmt.Sprintf("%.0f", r.log))
	if err := t.Markdown(w); err != nil {
		return err
	}
	if err := r.printMarks(w); err != nil {
		return err
	}
	spreads := r.spreads()
	_, err := fmt.Fprintf(w, "\nNoise: the middle half of the runs lies within ±%.0f %% of the median in the typical cell, ±%.0f %% in the worst; load average %s before, %s after.\n",
		100*spreads[len(spreads)/2], 100*spreads[len(spreads)-1], r.started, table.Load())
	return err
}

func (r *report) rate(i int, name string) string {
	own := r.results[i][name].perSecond
	if name == peer {
		return fmt.Sprintf("%.0f", own)
	}
	return fmt.Sprintf("%.0f (%.1f)", own, own/r.results[i][peer].perSecond)
}

func micros(d time.Duration) string {
	µs := float64(d) / float64(time.Microsecond)
	if µs < 10 {
		return fmt.Sprintf("%.1f", µs)
	}
	return fmt.Sprintf("%.0f", µs)
}

func (t threeRules) ratio() float64 { return float64(t.three.cpu) / float64(t.one.cpu) }

func (r *report) spreads() []float64 {
	var all []float64
	for _, results := range r.results {
		for _, x := range results {
			all = append(all, x.spread)
		}
	}
	slices.Sort(all)
	return all
}

// mark is something that Spillway wants to reach.
type mark struct {
	name        string
	value, want float64
	atMost      bool
}

func (m mark) verdict() string {
	if m.atMost && m.value <= m.want || !m.atMost && m.value >= m.want {
		return "reached"
	}
	return "missed"
}

// marks are figures to be reached. They are printed, not enforced: a busy machine moves them.
func (r *report) marks() []mark {
	rate := func(i int) float64 { return r.results[i][own].perSecond / r.results[i][peer].perSecond }
	p99 := float64(r.results[0][own].p99) / float64(r.results[0][peer].p99)
	p50 := float64(r.results[3][own].p50) / float64(r.results[3][peer].p50)
	marks := []mark{
		{"hot key, 256 callers: decisions, times redis_rate's", rate(0), 30, false},
		{"hot key, 256 callers: p99, times redis_rate's", p99, 1, true},
		{"hot key, 64 callers: decisions, times redis_rate's", rate(1), 10, false},
		{"100 000 keys, 64 callers: decisions, times redis_rate's", rate(2), 3, false},
		{"100 000 keys, one caller: decisions, times redis_rate's", rate(3), 1.2, false},
		{"100 000 keys, one caller: p50, times redis_rate's", p50, 1, true},
		{"bytes of a bucket", r.buckets[own], 170, true},
		{fmt.Sprintf("bytes of a log of %d charges", entries), r.log, 2200, true},
	}
	for _, x := range r.three {
		marks = append(marks, mark{fmt.Sprintf("three rules, callers: %d: Redis CPU, times one's", x.callers), x.ratio(), 1.6, true})
	}
	return marks
}

func (r *report) printMarks(w io.Writer) error {
	fmt.Fprint(w, "\nMarks:\n\n")
	t := table.Table{Left: 1, Header: []string{"mark", "measured", "wanted", ""}}
	for _, m := range r.marks() {
		want := "at least "
		if m.atMost {
			want = "at most "
		}
		t.Add(m.name, fmt.Sprintf("%.2f", m.value), want+fmt.Sprint(m.want), m.verdict())
	}
	return t.Markdown(w)
}

// median returns the middle of values, of an even number the mean of the two in the middle.
func median(values []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	if n == 0 {
		return 0
	}
	return (s[(n-1)/2] + s[n/2]) / 2
}
