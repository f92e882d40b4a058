package gameday

import (
	"html/template"
	"math"
	"time"

	"github.com/spillway-go/spillway/bench/internal/report"
)

// perSecond counts shots that satisfy keep by the second in which they were due.
func perSecond(shots []shot, begin time.Time, seconds int, keep func(*shot) bool) (x, y []float64) {
	x, y = make([]float64, seconds), make([]float64, seconds)
	for i := range x {
		x[i] = float64(i)
	}
	for i := range shots {
		if at := int(shots[i].at.Sub(begin).Seconds()); at >= 0 && at < seconds && keep(&shots[i]) {
			y[at]++
		}
	}
	return x, y
}

// charts draws an act: who was served, what the rest was told, and how long paying clients took.
func (s *scene) charts() []template.HTML {
	seconds := int(math.Ceil(s.end.Sub(s.begin).Seconds()))
	if seconds <= 0 {
		return nil
	}
	var shade [][2]float64
	for _, m := range s.marks {
		shade = append(shade, [2]float64{m.from.Sub(s.begin).Seconds(), m.to.Sub(s.begin).Seconds()})
	}
	curve := func(name, class string, keep func(*shot) bool) report.Curve {
		x, y := perSecond(s.shots, s.begin, seconds, keep)
		return report.Curve{Name: name, Class: class, X: x, Y: y}
	}
	is := func(group string) func(*shot) bool {
		return func(one *shot) bool { return one.group == group && one.ok() }
	}
	served := report.Diagram{Title: "Answered in time", XLabel: "seconds", YLabel: "per second", Shade: shade, Curves: []report.Curve{
		curve("asked by all", "asked", func(*shot) bool { return true }),
		curve("paying", "p0", is("paying")), curve("free", "p2", is("free")),
		curve("all others", "p3", func(one *shot) bool { return one.group != "paying" && one.group != "free" && one.ok() }),
	}}
	rest := report.Diagram{Title: "What the rest was told", XLabel: "seconds", YLabel: "per second", Shade: shade, Curves: []report.Curve{
		curve("429", "static", func(one *shot) bool { return one.status == 429 }),
		curve("503", "limit", func(one *shot) bool { return one.status == 503 }),
		curve("nothing, or too late", "none", func(one *shot) bool { return !one.ok() && !one.refused() && one.status != notCalled }),
	}}
	slow := report.Diagram{Title: "p99 of those who were served", XLabel: "seconds", YLabel: "ms", Shade: shade, Mark: float64(deadline.Milliseconds())}
	for _, g := range []struct{ name, class string }{{"paying", "p0"}, {"free", "p2"}} {
		c := report.Curve{Name: g.name, Class: g.class}
		for i := range seconds {
			var all []time.Duration
			for j := range s.shots {
				one := &s.shots[j]
				if one.group == g.name && one.status >= 200 && one.status < 300 && int(one.at.Sub(s.begin).Seconds()) == i {
					all = append(all, one.took)
				}
			}
			c.X = append(c.X, float64(i))
			if len(all) == 0 {
				c.Y = append(c.Y, math.NaN())
			} else {
				c.Y = append(c.Y, float64(quantile(all, .99).Milliseconds()))
			}
		}
		slow.Curves = append(slow.Curves, c)
	}
	return []template.HTML{served.SVG(), rest.SVG(), slow.SVG()}
}

// timeline draws the whole day from behind: what the gateways let through, and what is inside of the service.
func (r *Report) timeline() []template.HTML {
	if len(r.gauges) == 0 {
		return nil
	}
	curve := func(name, class string, of func(gauge) int) report.Curve {
		c := report.Curve{Name: name, Class: class}
		for _, g := range r.gauges {
			c.X, c.Y = append(c.X, g.at.Sub(r.Begin).Seconds()), append(c.Y, float64(of(g)))
		}
		return c
	}
	var shade [][2]float64
	for _, s := range r.scenes {
		for _, m := range s.marks {
			shade = append(shade, [2]float64{m.from.Sub(r.Begin).Seconds(), m.to.Sub(r.Begin).Seconds()})
		}
	}
	return []template.HTML{
		report.Diagram{Title: "Both gateways together", XLabel: "seconds of the day", Shade: shade, YLabel: "requests", Curves: []report.Curve{
			curve("limit", "limit", func(g gauge) int { return g.limit }),
			curve("in flight", "spillway", func(g gauge) int { return g.inFlight }),
			curve("waiting", "waiting", func(g gauge) int { return g.waiting }),
		}}.SVG(),
		report.Diagram{Title: "Inside of the service", XLabel: "seconds of the day", Shade: shade, YLabel: "requests", Mark: serviceSlots, Curves: []report.Curve{
			curve("inside", "none", func(g gauge) int { return g.inside }),
		}}.SVG(),
		report.Diagram{Title: "Gateways that have their Redis", XLabel: "seconds of the day", Shade: shade, YLabel: "gateways", Curves: []report.Curve{
			curve("store up", "spillway", func(g gauge) int { return g.store }),
		}}.SVG(),
	}
}
