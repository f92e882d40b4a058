package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"

	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/internal/page"
)

// charts draws what the runs of one scenario in one mode show. Curves are of the first seed.
func charts(runs []*measure.Run) (all []template.HTML) {
	if len(runs) == 0 {
		return nil
	}
	first := runs[0].Seed
	var same []*measure.Run
	for _, r := range runs {
		first = min(first, r.Seed)
	}
	levels := make(map[float64]bool)
	for _, r := range runs {
		if r.Seed == first {
			same = append(same, r)
			levels[r.Level] = true
		}
	}
	if len(levels) > 2 {
		return againstLoad(same)
	}
	for _, r := range same {
		if len(r.Series.Points) > 0 && r.Generator.Asked > 0 {
			return append(overTime(same), append(fairness(same), latencies(same)...)...)
		}
	}
	return nil
}

// byArm groups runs by arm, in the order of their first appearance.
func byArm(runs []*measure.Run) (arms []string, groups map[string][]*measure.Run) {
	groups = make(map[string][]*measure.Run)
	for _, r := range runs {
		if groups[r.Arm] == nil {
			arms = append(arms, r.Arm)
		}
		groups[r.Arm] = append(groups[r.Arm], r)
	}
	return arms, groups
}

// againstLoad draws goodput, p99 and the refused against offered load, with the arms overlaid.
func againstLoad(runs []*measure.Run) []template.HTML {
	goodput := page.Chart{Title: "Goodput against offered load", XLabel: "offered load / capacity", YLabel: "goodput / capacity", Mark: 1, YMax: 1.2}
	p99 := page.Chart{Title: "p99 of the admitted against offered load", XLabel: "offered load / capacity", YLabel: "ms"}
	drops := page.Chart{Title: "Refused, timed out or failed", XLabel: "offered load / capacity", YLabel: "share of requests", YMax: 1}
	arms, groups := byArm(runs)
	for _, arm := range arms {
		g, p, d := page.Curve{Name: arm, Class: arm}, page.Curve{Name: arm, Class: arm}, page.Curve{Name: arm, Class: arm}
		slices.SortFunc(groups[arm], func(a, b *measure.Run) int { return cmp.Compare(a.Level, b.Level) })
		for _, r := range groups[arm] {
			s := r.Sum(measure.Pick{})
			seconds := max(s.Length.Duration().Seconds(), 1e-9)
			g.X = append(g.X, float64(s.Asked)/seconds/r.Capacity)
			g.Y = append(g.Y, float64(s.Counts[measure.OK])/seconds/r.Capacity)
			p.Y = append(p.Y, ms(s.Admitted.Quantile(.99)))
			d.Y = append(d.Y, 1-float64(s.Counts[measure.OK]+s.Counts[measure.Late])/float64(max(1, s.Attempts)))
		}
		p.X, d.X = g.X, g.X
		goodput.Curves, p99.Curves, drops.Curves = append(goodput.Curves, g), append(p99.Curves, p), append(drops.Curves, d)
	}
	p99.Mark, p99.MarkName = ms(runs[0].Deadline.Duration()), "deadline"
	return []template.HTML{goodput.SVG(), p99.SVG(), drops.SVG()}
}

// overTime draws the series, the trigger shaded.
func overTime(runs []*measure.Run) []template.HTML {
	var triggers []page.Span
	for _, ph := range runs[0].Phases {
		if ph.Trigger {
			triggers = append(triggers, page.Span{From: ph.Start.Duration().Seconds(), To: ph.End.Duration().Seconds()})
		}
	}
	over := func(title, unit string) page.Chart {
		return page.Chart{Title: title, XLabel: "seconds", YLabel: unit, Shade: triggers, ShadeName: "trigger"}
	}
	good, attempts, gate := over("Answered in time", "per second"), over("Attempts, retries included", "per second"), over("The gate", "requests")
	p99 := over("p99 of the admitted", "ms")
	p99.Mark, p99.MarkName = ms(runs[0].Deadline.Duration()), "deadline"
	asked := series(runs[0], "asked", "asked", func(p *measure.Point, window float64) float64 { return float64(p.Asked) / window })
	good.Curves = append(good.Curves, asked)
	retried := false
	for _, r := range runs {
		sum := r.Sum(measure.Pick{})
		retried = retried || sum.Attempts > sum.Asked
		attempts.Curves = append(attempts.Curves, series(r, r.Arm, r.Arm, func(p *measure.Point, window float64) float64 { return float64(p.Attempts) / window }))
		good.Curves = append(good.Curves, series(r, r.Arm, r.Arm, func(p *measure.Point, window float64) float64 {
			return float64(p.Counts[measure.OK]) / window
		}))
		p99.Curves = append(p99.Curves, series(r, r.Arm, r.Arm, func(p *measure.Point, _ float64) float64 {
			if p.P99 == 0 {
				return math.NaN()
			}
			return float64(p.P99) / 1000
		}))
		if r.Arm == "spillway" || r.Arm == judge.Target {
			gate.Curves = append(gate.Curves,
				series(r, "limit", "limit", func(p *measure.Point, _ float64) float64 { return known(p.Limit) }),
				series(r, "in flight", "spillway", func(p *measure.Point, _ float64) float64 { return known(p.InFlight) }),
				series(r, "waiting", "waiting", func(p *measure.Point, _ float64) float64 { return known(p.Waiting) }))
		}
	}
	all := []template.HTML{good.SVG(), p99.SVG()}
	if retried {
		all = append(all, attempts.SVG())
	}
	if len(gate.Curves) > 0 && gate.Curves[0].Y[0] >= 0 {
		all = append(all, gate.SVG())
	}
	return all
}

func known(gauge int) float64 {
	if gauge < 0 {
		return math.NaN()
	}
	return float64(gauge)
}

func series(r *measure.Run, name, class string, of func(p *measure.Point, window float64) float64) page.Curve {
	l := page.Curve{Name: name, Class: class}
	window := r.Series.Window.Duration().Seconds()
	for i := range r.Series.Points {
		l.X = append(l.X, float64(i)*window)
		l.Y = append(l.Y, of(&r.Series.Points[i], window))
	}
	return l
}

// fairness draws what each client got, in the trigger where there is one, where there is more than one population.
func fairness(runs []*measure.Run) (all []template.HTML) {
	for _, r := range runs {
		pick := measure.Pick{}
		for _, ph := range r.Phases {
			if ph.Trigger {
				pick.Phase = ph.Name
			}
		}
		if len(r.Phases[0].Populations) < 2 {
			return nil
		}
		var shown []page.Bar
		var x []float64
		for _, b := range judge.Bars(r, pick) {
			if b.Share <= 0 {
				continue
			}
			name := r.Phases[0].Populations[b.Population].Name
			got := b.OK / b.Share
			x = append(x, got)
			shown = append(shown, page.Bar{Group: name, Class: fmt.Sprintf("c%d", b.Population%4), Value: got, Title: fmt.Sprintf("%s: %.0f of %.0f due, %.0f asked", name, b.OK, b.Share, b.Asked)})
		}
		if len(shown) > 1 {
			all = append(all, page.Bars(fmt.Sprintf("%s: what each client got, Jain %.3f", r.Arm, judge.Jain(x)), shown))
		}
	}
	return all
}

// percentiles are where latency distributions are drawn, evenly spaced.
var percentiles = []struct {
	q    float64
	text string
}{
	{.1, "10"}, {.25, "25"}, {.5, "50"}, {.75, "75"}, {.9, "90"}, {.95, "95"}, {.99, "99"}, {.999, "99.9"}, {1, "max"},
}

// latencies draws the distribution of latency by outcome for Spillway, or else for the first arm.
func latencies(runs []*measure.Run) []template.HTML {
	run := runs[0]
	for _, r := range runs {
		if r.Arm == "spillway" {
			run = r
		}
	}
	c := page.Chart{Title: run.Arm + ": latency by outcome", XLabel: "percentile", YLabel: "ms"}
	for i, p := range percentiles {
		c.Ticks, c.TickText = append(c.Ticks, float64(i)), append(c.TickText, p.text)
	}
	for o, name := range measure.Outcomes {
		var all measure.Latency
		for _, ph := range run.Picked(measure.Pick{}) {
			for i := range ph.Populations {
				all.Merge(&ph.Populations[i].Latency[o])
			}
		}
		if all.Count() == 0 {
			continue
		}
		l := page.Curve{Name: fmt.Sprintf("%s (%d)", name, all.Count()), Class: "o-" + name}
		for i, p := range percentiles {
			l.X, l.Y = append(l.X, float64(i)), append(l.Y, ms(all.Quantile(p.q)))
		}
		c.Curves = append(c.Curves, l)
	}
	if len(c.Curves) == 0 {
		return nil
	}
	return []template.HTML{c.SVG()}
}

func ms(d interface{ Microseconds() int64 }) float64 { return float64(d.Microseconds()) / 1000 }
