package judge

import (
	"fmt"
	"math"
	"time"

	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/scenarios"
)

// metric computes one figure of a run for a criterion.
type metric func(r *measure.Run, c *scenarios.Criterion) float64

var metrics = map[string]metric{
	"goodput":  func(r *measure.Run, c *scenarios.Criterion) float64 { return Goodput(r, pick(c)) },
	"success":  func(r *measure.Run, c *scenarios.Criterion) float64 { return r.Sum(pick(c)).Success() },
	"drops":    drops,
	"timeouts": timeouts,
	"p50":      func(r *measure.Run, c *scenarios.Criterion) float64 { return ms(r.Sum(pick(c)).Admitted.Quantile(.5)) },
	"p99":      func(r *measure.Run, c *scenarios.Criterion) float64 { return ms(p99(r, pick(c))) },
	"p99_deadline": func(r *measure.Run, c *scenarios.Criterion) float64 {
		return ratio(ms(p99(r, pick(c))), ms(r.Deadline.Duration()))
	},
	"p99_ratio": func(r *measure.Run, c *scenarios.Criterion) float64 {
		return ratio(ms(p99(r, pick(c))), ms(p99(r, than(c))))
	},
	"success_ratio": successRatio,
	"calls":         calls,
	"recovery":      recovery,
	"convergence":   convergence,
	"stays_down":    staysDown,
	"amplification": amplification,
	"wasted":        wasted,
	"jain":          func(r *measure.Run, c *scenarios.Criterion) float64 { return fairness(r, pick(c)) },
	"share":         func(r *measure.Run, c *scenarios.Criterion) float64 { return share(r, pick(c)) },
	"order":         order,
	"first_deadline": func(r *measure.Run, c *scenarios.Criterion) float64 {
		return float64(r.Sum(pick(c)).Counts[measure.OK]) / (r.Capacity * r.Deadline.Duration().Seconds())
	},
	"hysteresis": hysteresis,
	"slope":      slope,
}

// Metric computes the criterion's metric of one run.
func Metric(r *measure.Run, c *scenarios.Criterion) (float64, error) {
	if f := metrics[c.Metric]; f != nil {
		return f(r, c), nil
	}
	if v, ok := r.Extra[c.Metric]; ok {
		return v, nil
	}
	return 0, fmt.Errorf("bench: %s: %s: the run has no metric %q", r.Scenario, c.Name, c.Metric)
}

func pick(c *scenarios.Criterion) measure.Pick { return measure.Pick{Phase: c.Phase, Of: c.Of} }
func than(c *scenarios.Criterion) measure.Pick { return measure.Pick{Phase: c.Than, Of: c.Of} }

func p99(r *measure.Run, p measure.Pick) time.Duration { return r.Sum(p).Admitted.Quantile(.99) }

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func ratio(a, b float64) float64 {
	if b == 0 {
		if a == 0 {
			return 1
		}
		return math.Inf(1)
	}
	return a / b
}

// Goodput is ok / min(asked, C), window by window, so that a quiet second does not pay for a busy one. For some of the
// populations only, it is ok / min(asked, C) over whole phases.
func Goodput(r *measure.Run, p measure.Pick) float64 {
	ok, possible := 0.0, 0.0
	for _, ph := range r.Picked(p) {
		if len(p.Of) > 0 {
			s := r.Sum(measure.Pick{Phase: ph.Name, Of: p.Of})
			ok += float64(s.Counts[measure.OK])
			possible += min(float64(s.Asked), r.Capacity*(ph.End-ph.Start).Duration().Seconds())
			continue
		}
		for _, w := range r.Series.Windows(ph.Start, ph.End) {
			ok += float64(w.Counts[measure.OK])
			possible += min(float64(w.Asked), r.Capacity*r.Series.Window.Duration().Seconds())
		}
	}
	return ratio(ok, possible)
}

func drops(r *measure.Run, c *scenarios.Criterion) float64 {
	s := r.Sum(pick(c))
	lost := s.Attempts - s.Counts[measure.OK] - s.Counts[measure.Late]
	return float64(lost) / float64(max(1, s.Attempts))
}

func timeouts(r *measure.Run, c *scenarios.Criterion) float64 {
	s := r.Sum(pick(c))
	return float64(s.Counts[measure.Timeout]) / float64(max(1, s.Attempts))
}

func successRatio(r *measure.Run, c *scenarios.Criterion) float64 {
	return ratio(r.Sum(pick(c)).Success(), r.Sum(than(c)).Success())
}

// calls is what was asked for in a second, retries included, as a multiple of that in the phase it is compared with.
func calls(r *measure.Run, c *scenarios.Criterion) float64 {
	rate := func(p measure.Pick) float64 {
		length := 0.0
		for _, ph := range r.Picked(p) {
			length += (ph.End - ph.Start).Duration().Seconds()
		}
		return ratio(float64(r.Sum(p).Attempts), length)
	}
	return ratio(rate(pick(c)), rate(than(c)))
}

func amplification(r *measure.Run, c *scenarios.Criterion) float64 {
	s := r.Sum(pick(c))
	return float64(s.Attempts) / float64(max(1, s.Asked))
}

func wasted(r *measure.Run, c *scenarios.Criterion) float64 {
	s := r.Sum(pick(c))
	return float64(s.Wasted) / float64(max(1, s.Work))
}

// order is the smallest lead in success of each population over the next one.
func order(r *measure.Run, c *scenarios.Criterion) float64 {
	lead, before := math.Inf(1), 0.0
	for i, name := range c.Of {
		success := r.Sum(measure.Pick{Phase: c.Phase, Of: []string{name}}).Success()
		if i > 0 {
			lead = min(lead, before-success)
		}
		before = success
	}
	return lead
}

// The definition of "as before".
const (
	recoveredSuccess = 0.95
	recoveredP99     = 1.2
	recoveredWindows = 3
)

// recovery counts windows from the start of the phase to the end of the run until three in a row are as before. What p99 was
// before is the highest of a window then: a window has too few requests to be held against the p99 of many.
func recovery(r *measure.Run, c *scenarios.Criterion) float64 {
	ref := reference(r, c)
	before, slowest := r.Sum(ref), measure.Micros(0)
	for _, ph := range r.Picked(ref) {
		for _, w := range r.Series.Windows(ph.Start, ph.End) {
			slowest = max(slowest, w.P99)
		}
	}
	for _, ph := range r.Picked(pick(c)) {
		points := r.Series.Windows(ph.Start, r.Phases[len(r.Phases)-1].End)
		good := 0
		for i, w := range points {
			success := float64(w.Counts[measure.OK]) >= recoveredSuccess*before.Success()*float64(w.Asked)
			if !success || float64(w.P99) > recoveredP99*float64(slowest) {
				good = 0
				continue
			}
			if good++; good == recoveredWindows {
				return float64(i+1-recoveredWindows) * r.Series.Window.Duration().Seconds()
			}
		}
		return float64(len(points)) * r.Series.Window.Duration().Seconds()
	}
	return math.Inf(1)
}

// reference is the phase "than", or the first that is neither warm-up nor trigger.
func reference(r *measure.Run, c *scenarios.Criterion) measure.Pick {
	if c.Than != "" {
		return than(c)
	}
	for i := range r.Phases {
		if ph := &r.Phases[i]; !ph.Warmup && !ph.Trigger {
			return measure.Pick{Phase: ph.Name}
		}
	}
	return measure.Pick{}
}

// convergence looks for the first whole second, at a tenth of a second's precision, with goodput ≥ 0.9.
func convergence(r *measure.Run, c *scenarios.Criterion) float64 {
	f, phases := &r.Fine, r.Picked(pick(c))
	if f.Window == 0 || len(phases) != 1 {
		return math.Inf(1)
	}
	ph := phases[0]
	first, second := int(ph.Start/f.Window), int(measure.InMicros(time.Second)/f.Window)
	for i := first; i+second <= min(int(ph.End/f.Window), len(f.Asked)); i++ {
		asked, ok := 0.0, 0.0
		for n := i; n < i+second; n++ {
			asked, ok = asked+float64(f.Asked[n]), ok+float64(f.OK[n])
		}
		if ok >= 0.9*min(asked, r.Capacity) {
			return float64(i-first) * f.Window.Duration().Seconds()
		}
	}
	return (ph.End - ph.Start).Duration().Seconds()
}

// staysDown is the time from the start of the phase until half of the requests succeed again.
func staysDown(r *measure.Run, c *scenarios.Criterion) float64 {
	n := 0
	for _, ph := range r.Picked(pick(c)) {
		for _, w := range r.Series.Windows(ph.Start, ph.End) {
			if w.Asked > 0 && float64(w.Counts[measure.OK]) >= 0.5*float64(w.Asked) {
				return float64(n) * r.Series.Window.Duration().Seconds()
			}
			n++
		}
	}
	return float64(n) * r.Series.Window.Duration().Seconds()
}

// hysteresis compares goodput on the way up with that on the way down, at the same load, in blocks of 5 windows.
func hysteresis(r *measure.Run, c *scenarios.Criterion) float64 {
	up, down := r.Picked(pick(c)), r.Picked(than(c))
	if len(up) != 1 || len(down) != 1 {
		return math.Inf(1)
	}
	a, b := r.Series.Windows(up[0].Start, up[0].End), r.Series.Windows(down[0].Start, down[0].End)
	const block = 5
	largest := 0.0
	for i := 0; i+block <= min(len(a), len(b)); i += block {
		x, y := 0.0, 0.0
		for n := i; n < i+block; n++ {
			x += float64(a[n].Counts[measure.OK])
			y += float64(b[len(b)-1-n].Counts[measure.OK])
		}
		largest = max(largest, math.Abs(x-y)/max(1, max(x, y)))
	}
	return largest
}

// slope compares the mean p99 of the last quarter with that of the first, after the warm-up.
func slope(r *measure.Run, c *scenarios.Criterion) float64 {
	var points []measure.Point
	for _, ph := range r.Picked(pick(c)) {
		points = append(points, r.Series.Windows(ph.Start, ph.End)...)
	}
	quarter := len(points) / 4
	if quarter == 0 {
		return math.Inf(1)
	}
	mean := func(ps []measure.Point) (m float64) {
		for _, p := range ps {
			m += float64(p.P99) / float64(len(ps))
		}
		return m
	}
	first, last := mean(points[:quarter]), mean(points[len(points)-quarter:])
	return ratio(math.Abs(last-first), first)
}
