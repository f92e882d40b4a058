// Http compares what middlewares add to a handler that does almost nothing: for a request that is let in, and for one that is
// refused. It prints one table, with ratios.
//
//	go run .          # about a minute
//	go run . -quick   # about 5 s; too short to be quoted
//	go run . -loopback   # a server with everything on beside a bare one, over real connections; about 20 s
package main

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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
	real := flag.Bool("loopback", false, "compare a server with everything on with a bare one, over real connections")
	if os.Getenv(clientMark) != "" {
		if err := beClients(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "http: clients:", err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	p := full
	if *short {
		p = quick
	}
	what := func() error { return run(os.Stdout, os.Stderr, p) }
	if *real {
		what = func() error { return loopback(os.Stdout, p) }
	}
	if err := what(); err != nil {
		fmt.Fprintln(os.Stderr, "http:", err)
		os.Exit(1)
	}
}

// response is a response that costs nothing but its fields, of which each request has its own, as in net/http.
type response struct {
	header http.Header
	status int
}

func (r *response) Header() http.Header         { return r.header }
func (r *response) WriteHeader(status int)      { r.status = status }
func (r *response) Write(b []byte) (int, error) { return len(b), nil }

func newRequest() *http.Request {
	r := httptest.NewRequest("GET", "/api/items", nil)
	r.RemoteAddr = "192.0.2.1:1234"
	return r
}

// asked serves n requests and checks their status.
func asked(h http.Handler, status int) func(worker, n int) error {
	return func(_, n int) error {
		w, r := new(response), newRequest()
		for i := range n {
			w.header, w.status = make(http.Header), http.StatusOK
			h.ServeHTTP(w, r)
			if w.status != status {
				return fmt.Errorf("request %d of %d: status %d, want %d", i+1, n, w.status, status)
			}
		}
		return nil
	}
}

// run measures everything and prints the table to out; progress goes to log.
func run(out, log io.Writer, p plan) error {
	before := table.Load()
	admitted, err := measure(true, p, log)
	if err != nil {
		return err
	}
	refused, err := measure(false, p, log)
	if err != nil {
		return err
	}
	return print(out, p, admitted, refused, before)
}

// measure times everybody who can do it, by name.
func measure(wide bool, p plan, log io.Writer) (map[string]stopwatch.Figure, error) {
	fmt.Fprintf(log, "admitted: %t\n", wide)
	var timed []stopwatch.Contender
	for _, c := range contenders {
		if !wide && c.status == 0 {
			continue
		}
		h, closing, err := c.open(wide)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		if h == nil {
			continue
		}
		defer closing()
		status := http.StatusOK
		if !wide {
			if err := asked(h, http.StatusOK)(0, 1); err != nil {
				return nil, fmt.Errorf("%s, the first: %w", c.name, err)
			}
			status = c.status
		}
		timed = append(timed, stopwatch.Contender{Name: c.name, Run: asked(h, status)})
	}
	figures, err := stopwatch.Compare(stopwatch.Plan{Cores: 1, Rounds: p.rounds, Span: p.span}, timed)
	if err != nil {
		return nil, err
	}
	all := map[string]stopwatch.Figure{}
	for _, f := range figures {
		all[f.Name] = f
	}
	return all, nil
}

func print(w io.Writer, p plan, admitted, refused map[string]stopwatch.Figure, before string) error {
	fmt.Fprintf(w, "%s\n\n", table.Machine())
	if p.rounds < full.rounds {
		fmt.Fprint(w, "QUICK: too few and too short runs to be quoted.\n\n")
	}
	fmt.Fprintf(w, "What is added to the bare handler of the same kind, for a request that is let in; and all that a refused request costs. Processor time of\n"+
		"one goroutine in nanoseconds; median of %d interleaved runs of %v. In brackets Spillway's figure of the same kind divided by the row's: below 1\n"+
		"Spillway is cheaper.\n\n", p.rounds, p.span)
	t := table.Table{Left: 2, Header: []string{"middleware", "version", "added", "B", "allocs", "refused", "B", "allocs"}}
	worst := 0.0
	base, ours := bare, own
	for _, c := range contenders {
		if c.name == echoOwn {
			base, ours = echoOwn, "Spillway in Echo"
		}
		version := ""
		if c.module != "" {
			version = table.Version(c.module)
		}
		row := []string{c.name, version, "", "", "", "", "", ""}
		if f, ok := admitted[c.name]; ok {
			b, o := admitted[base], admitted[ours]
			worst = max(worst, f.Spread)
			if c.name == base {
				row[2] = fmt.Sprintf("%.0f in all", f.Nanos)
				row[3], row[4] = fmt.Sprintf("%.0f in all", f.Bytes), fmt.Sprintf("%.0f in all", f.Allocs)
			} else {
				row[2] = beside(f.Nanos-b.Nanos, o.Nanos-b.Nanos, c.name == ours)
				row[3], row[4] = fmt.Sprintf("%.0f", f.Bytes-b.Bytes), beside(f.Allocs-b.Allocs, o.Allocs-b.Allocs, c.name == ours)
			}
		}
		if f, ok := refused[c.name]; ok {
			worst = max(worst, f.Spread)
			row[5] = beside(f.Nanos, refused[ours].Nanos, c.name == ours)
			row[6], row[7] = fmt.Sprintf("%.0f", f.Bytes), fmt.Sprintf("%.0f", f.Allocs)
		}
		t.Add(row...)
	}
	if err := t.Markdown(w); err != nil {
		return err
	}
	peer, b, o := admitted[httpr], admitted[bare], admitted[own]
	ns, allocs := (o.Nanos-b.Nanos)/(peer.Nanos-b.Nanos), (o.Allocs-b.Allocs)/(peer.Allocs-b.Allocs)
	fmt.Fprintf(w, "\nMarks: added at most 0.70 of httprate's time: %.2f, %s; of its allocations: %.2f, %s; refused cheaper than by anybody else: %s.\n",
		ns, reached(ns <= 0.7), allocs, reached(allocs <= 0.7), reached(cheapest(refused)))
	_, err := fmt.Fprintf(w, "\nNoise: the middle half of the runs lies within ±%.0f %% of the median in the worst cell; load average %s before, %s after.\n", 100*worst, before, table.Load())
	return err
}

// cheapest reports whether nobody refuses for less.
func cheapest(refused map[string]stopwatch.Figure) bool {
	for _, c := range contenders {
		ours := own
		if c.name == "Echo's limiter" {
			ours = "Spillway in Echo"
		}
		if f, ok := refused[c.name]; ok && c.module != spillway && f.Nanos < refused[ours].Nanos {
			return false
		}
	}
	return true
}

func reached(ok bool) string {
	if ok {
		return "reached"
	}
	return "missed"
}

// beside prints a figure and, for others than Spillway's, that one as a ratio to it.
func beside(f, ours float64, itself bool) string {
	if itself || f <= 0 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.0f (%.2f)", f, ours/f)
}
