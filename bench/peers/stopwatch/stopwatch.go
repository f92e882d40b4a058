package stopwatch

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Contender is something whose operations are timed. Run does n operations and returns an error if one of them did not do
// what the comparison is about. With several cores it is called once for each worker at the same time; worker counts
// from 0.
type Contender struct {
	Name string
	Run  func(worker, n int) error
}

// Plan says how to measure. Every field but Callers must be above 0.
type Plan struct {
	Cores  int           // how many workers run at once, on as many processors
	Rounds int           // how many runs of each contender
	Span   time.Duration // about how long one run takes
	// Callers, if not 0, is how many workers there are instead, where operations wait for something outside this process.
	// Then the time on the wall counts also on one core.
	Callers int
}

func (p Plan) workers() int {
	if p.Callers > 0 {
		return p.Callers
	}
	return p.Cores
}

// Figure is the cost of one operation of one contender.
type Figure struct {
	Name   string
	Nanos  float64 // median over the rounds
	Spread float64 // half the distance between the quartiles, as a share of the median
	Allocs float64 // median over the rounds
	Bytes  float64 // allocated, median over the rounds
}

// run is what one run cost, per operation.
type run struct{ nanos, allocs, bytes float64 }

// Compare measures the contenders one against the other. It changes GOMAXPROCS while it runs, so nothing else may run in
// the process.
func Compare(plan Plan, contenders []Contender) ([]Figure, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(plan.Cores))
	sizes := make([]int, len(contenders))
	for i, c := range contenders {
		n, err := calibrate(plan, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		sizes[i] = n
	}
	runs := make([][]run, len(contenders))
	for round := range plan.Rounds {
		for k := range contenders {
			i := (k + round) % len(contenders)
			r, _, err := once(plan, contenders[i], sizes[i])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", contenders[i].Name, err)
			}
			runs[i] = append(runs[i], r)
		}
	}
	figures := make([]Figure, len(contenders))
	for i, c := range contenders {
		figures[i] = summarise(c.Name, runs[i])
	}
	return figures, nil
}

// calibrate finds how many operations take about plan.Span, and warms the contender up meanwhile.
func calibrate(plan Plan, c Contender) (int, error) {
	for n := max(1, 64/plan.workers()); ; n *= 4 {
		_, took, err := once(plan, c, n)
		if err != nil {
			return 0, err
		}
		if took >= plan.Span/8 || n >= 1<<28 {
			return max(1, int(float64(n)*float64(plan.Span)/float64(max(took, 1)))), nil
		}
	}
}

// once times n operations for each worker and returns what one costs, and how long it all took.
func once(plan Plan, c Contender, n int) (run, time.Duration, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, start := processorTime(), time.Now()
	err := work(plan.workers(), c, n)
	took := time.Since(start)
	spent := processorTime() - cpu
	runtime.ReadMemStats(&after)
	if plan.Cores > 1 || plan.Callers > 0 || spent <= 0 {
		spent = took
	}
	ops := float64(n * plan.workers())
	return run{
		nanos:  float64(spent) / ops,
		allocs: float64(after.Mallocs-before.Mallocs) / ops,
		bytes:  float64(after.TotalAlloc-before.TotalAlloc) / ops,
	}, took, err
}

// work lets every worker do n operations, and returns the first error.
func work(workers int, c Contender, n int) error {
	if workers == 1 {
		return c.Run(0, n)
	}
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() { errs[w] = c.Run(w, n) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func summarise(name string, runs []run) Figure {
	nanos := sorted(runs, func(r run) float64 { return r.nanos })
	f := Figure{
		Name:   name,
		Nanos:  median(nanos),
		Allocs: median(sorted(runs, func(r run) float64 { return r.allocs })),
		Bytes:  median(sorted(runs, func(r run) float64 { return r.bytes })),
	}
	if f.Nanos > 0 {
		f.Spread = (nanos[len(nanos)*3/4] - nanos[len(nanos)/4]) / 2 / f.Nanos
	}
	return f
}

func sorted(runs []run, pick func(run) float64) []float64 {
	values := make([]float64, len(runs))
	for i, r := range runs {
		values[i] = pick(r)
	}
	slices.Sort(values)
	return values
}

// median returns the middle of sorted values, of an even number the mean of the two in the middle.
func median(values []float64) float64 {
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
