package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"

	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/internal/measure"
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
	goodput := chart{title: "Goodput against offered load", xLabel: "offered load / capacity", yLabel: "goodput / capacity", mark: 1, yMax: 1.2}
	p99 := chart{title: "p99 of the admitted against offered load", xLabel: "offered load / capacity", yLabel: "ms"}
	drops := chart{title: "Refused, timed out or failed", xLabel: "offered load / capacity", yLabel: "share of requests", yMax: 1}
	arms, groups := byArm(runs)
	for _, arm := range arms {
		g, p, d := line{name: arm, class: arm}, line{name: arm, class: arm}, line{name: arm, class: arm}
		slices.SortFunc(groups[arm], func(a, b *measure.Run) int { return cmp.Compare(a.Level, b.Level) })
		for _, r := range groups[arm] {
			s := r.Sum(measure.Pick{})
			seconds := max(s.Length.Duration().Seconds(), 1e-9)
			g.x = append(g.x, float64(s.Asked)/seconds/r.Capacity)
			g.y = append(g.y, float64(s.Counts[measure.OK])/seconds/r.Capacity)
			p.y = append(p.y, ms(s.Admitted.Quantile(.99)))
			d.y = append(d.y, 1-float64(s.Counts[measure.OK]+s.Counts[measure.Late])/float64(max(1, s.Attempts)))
		}
		p.x, d.x = g.x, g.x
		goodput.lines, p99.lines, drops.lines = append(goodput.lines, g), append(p99.lines, p), append(drops.lines, d)
	}
	p99.mark, p99.markName = ms(runs[0].Deadline.Duration()), "deadline"
	return []template.HTML{goodput.svg(), p99.svg(), drops.svg()}
}

// overTime draws the series, the trigger shaded.
func overTime(runs []*measure.Run) []template.HTML {
	good := chart{title: "Answered in time", xLabel: "seconds", yLabel: "per second"}
	p99 := chart{title: "p99 of the admitted", xLabel: "seconds", yLabel: "ms", mark: ms(runs[0].Deadline.Duration()), markName: "deadline"}
	attempts := chart{title: "Attempts, retries included", xLabel: "seconds", yLabel: "per second"}
	gate := chart{title: "The gate", xLabel: "seconds", yLabel: "requests"}
	for _, ph := range runs[0].Phases {
		if ph.Trigger {
			s := span{ph.Start.Duration().Seconds(), ph.End.Duration().Seconds()}
			good.shade, p99.shade, gate.shade = append(good.shade, s), append(p99.shade, s), append(gate.shade, s)
			attempts.shade = append(attempts.shade, s)
		}
	}
	asked := series(runs[0], "asked", "asked", func(p *measure.Point, window float64) float64 { return float64(p.Asked) / window })
	good.lines = append(good.lines, asked)
	retried := false
	for _, r := range runs {
		sum := r.Sum(measure.Pick{})
		retried = retried || sum.Attempts > sum.Asked
		attempts.lines = append(attempts.lines, series(r, r.Arm, r.Arm, func(p *measure.Point, window float64) float64 { return float64(p.Attempts) / window }))
		good.lines = append(good.lines, series(r, r.Arm, r.Arm, func(p *measure.Point, window float64) float64 {
			return float64(p.Counts[measure.OK]) / window
		}))
		p99.lines = append(p99.lines, series(r, r.Arm, r.Arm, func(p *measure.Point, _ float64) float64 {
			if p.P99 == 0 {
				return math.NaN()
			}
			return float64(p.P99) / 1000
		}))
		if r.Arm == "spillway" || r.Arm == judge.Target {
			gate.lines = append(gate.lines,
				series(r, "limit", "limit", func(p *measure.Point, _ float64) float64 { return known(p.Limit) }),
				series(r, "in flight", "spillway", func(p *measure.Point, _ float64) float64 { return known(p.InFlight) }),
				series(r, "waiting", "waiting", func(p *measure.Point, _ float64) float64 { return known(p.Waiting) }))
		}
	}
	all := []template.HTML{good.svg(), p99.svg()}
	if retried {
		all = append(all, attempts.svg())
	}
	if len(gate.lines) > 0 && gate.lines[0].y[0] >= 0 {
		all = append(all, gate.svg())
	}
	return all
}

func known(gauge int) float64 {
	if gauge < 0 {
		return math.NaN()
	}
	return float64(gauge)
}

func series(r *measure.Run, name, class string, of func(p *measure.Point, window float64) float64) line {
	l := line{name: name, class: class}
	window := r.Series.Window.Duration().Seconds()
	for i := range r.Series.Points {
		l.x = append(l.x, float64(i)*window)
		l.y = append(l.y, of(&r.Series.Points[i], window))
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
		var shown []bar
		var x []float64
		for _, b := range judge.Bars(r, pick) {
			if b.Share <= 0 {
				continue
			}
			name := r.Phases[0].Populations[b.Population].Name
			got := b.OK / b.Share
			x = append(x, got)
			shown = append(shown, bar{name, fmt.Sprintf("c%d", b.Population%4), got, fmt.Sprintf("%s: %.0f of %.0f due, %.0f asked", name, b.OK, b.Share, b.Asked)})
		}
		if len(shown) > 1 {
			all = append(all, bars(fmt.Sprintf("%s: what each client got, Jain %.3f", r.Arm, judge.Jain(x)), shown))
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
	c := chart{title: run.Arm + ": latency by outcome", xLabel: "percentile", yLabel: "ms"}
	for i, p := range percentiles {
		c.ticks, c.tickText = append(c.ticks, float64(i)), append(c.tickText, p.text)
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
		l := line{name: fmt.Sprintf("%s (%d)", name, all.Count()), class: "o-" + name}
		for i, p := range percentiles {
			l.x, l.y = append(l.x, float64(i)), append(l.y, ms(all.Quantile(p.q)))
		}
		c.lines = append(c.lines, l)
	}
	if len(c.lines) == 0 {
		return nil
	}
	return []template.HTML{c.svg()}
}

func ms(d interface{ Microseconds() int64 }) float64 { return float64(d.Microseconds()) / 1000 }
