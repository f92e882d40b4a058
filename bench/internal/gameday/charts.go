package gameday

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/bench/internal/page"
)

// perSecond is a curve of the shots that satisfy keep, by the second in which they were due.
func perSecond(name, class string, shots []shot, begin time.Time, seconds int, keep func(*shot) bool) page.Curve {
	c := page.Curve{Name: name, Class: class, X: make([]float64, seconds), Y: make([]float64, seconds)}
	for i := range c.X {
		c.X[i] = float64(i)
	}
	for i := range shots {
		if at := int(shots[i].at.Sub(begin).Seconds()); at >= 0 && at < seconds && keep(&shots[i]) {
			c.Y[at]++
		}
	}
	return c
}

// What shots are drawn by.
func called(one *shot) bool   { return one.status != notCalled }
func inTime(one *shot) bool   { return one.ok() }
func unserved(one *shot) bool { return called(one) && !one.ok() && !one.refused() }
func refusedWith(status int) func(*shot) bool {
	return func(one *shot) bool { return one.status == status }
}

// shades are the marked spans of the act, counted from begin.
func (s *scene) shades(begin time.Time) (all []page.Span) {
	for _, m := range s.marks {
		all = append(all, page.Span{From: m.from.Sub(begin).Seconds(), To: m.to.Sub(begin).Seconds()})
	}
	return all
}

// charts draws an act: who was served, what the rest was told, and how long customers took.
func (s *scene) charts() []template.HTML {
	seconds := int(math.Ceil(s.end.Sub(s.begin).Seconds()))
	if seconds <= 0 {
		return nil
	}
	var marks []string
	for _, m := range s.marks {
		if !slices.Contains(marks, m.text) {
			marks = append(marks, m.text)
		}
	}
	chart := func(title, unit string) page.Chart {
		return page.Chart{Title: title, XLabel: "seconds of the act", YLabel: unit, Shade: s.shades(s.begin), ShadeName: strings.Join(marks, ", ")}
	}
	curve := func(name, class string, keep func(*shot) bool) page.Curve {
		return perSecond(name, class, s.shots, s.begin, seconds, keep)
	}
	is := func(group string) func(*shot) bool {
		return func(one *shot) bool { return one.group == group && one.ok() }
	}
	served, rest, slow := chart("Answered in time", "per second"), chart("What the rest was told", "per second"), chart("p99 of those who were served", "ms")
	served.Curves = []page.Curve{
		curve("asked by all", "asked", called), curve("paying", "p0", is("paying")), curve("free", "p2", is("free")),
		curve("all others", "p3", func(one *shot) bool { return one.group != "paying" && one.group != "free" && one.ok() }),
	}
	rest.Curves = []page.Curve{curve("429", "static", refusedWith(429)), curve("503", "limit", refusedWith(503)), curve("nothing, an error, or too late", "none", unserved)}
	slow.Mark, slow.MarkName = float64(deadline.Milliseconds()), fmt.Sprintf("customers wait %v", deadline)
	for _, g := range []struct{ name, class string }{{"paying", "p0"}, {"free", "p2"}} {
		c := page.Curve{Name: g.name, Class: g.class}
		took := make([][]time.Duration, seconds)
		for _, one := range s.of(g.name) {
			if at := int(one.at.Sub(s.begin).Seconds()); one.answered() && at >= 0 && at < seconds {
				took[at] = append(took[at], one.took)
			}
		}
		for i, all := range took {
			c.X, c.Y = append(c.X, float64(i)), append(c.Y, math.NaN())
			if len(all) > 0 {
				c.Y[i] = float64(quantile(all, .99).Milliseconds())
			}
		}
		slow.Curves = append(slow.Curves, c)
	}
	return []template.HTML{served.SVG(), rest.SVG(), slow.SVG()}
}

// chart is one of the whole day.
func (r *Report) chart(title, unit string, curves ...page.Curve) page.Chart {
	c := page.Chart{Title: title, XLabel: "time of the day", YLabel: unit, Clock: true, ShadeName: "something is wrong", Curves: curves}
	for _, s := range r.scenes {
		c.Shade = append(c.Shade, s.shades(r.Begin)...)
	}
	return c
}

// customers draws what all customers saw over the whole day, with the acts.
func (r *Report) customers() (all []template.HTML) {
	seconds := int(math.Ceil(r.Length.Seconds()))
	var paying, others []shot
	var acts []page.Event
	for _, s := range r.scenes {
		acts = append(acts, page.Event{At: s.begin.Sub(r.Begin).Seconds(), Name: s.act.name})
		for _, one := range s.of() {
			if one.group == "paying" {
				paying = append(paying, one)
			} else {
				others = append(others, one)
			}
		}
	}
	if len(acts) == 0 {
		return nil
	}
	for _, some := range []struct {
		title string
		shots []shot
	}{{"Paying customers", paying}, {"All others", others}} {
		curve := func(name, class string, keep func(*shot) bool) page.Curve {
			return perSecond(name, class, some.shots, r.Begin, seconds, keep)
		}
		c := r.chart(some.title, "per second", curve("asked", "asked", called), curve("answered in time", "spillway", inTime), curve("told 429", "static", refusedWith(429)),
			curve("told 503", "limit", refusedWith(503)), curve("nothing, an error, or too late", "none", unserved))
		c.Wide, c.Events = true, acts
		all = append(all, c.SVG())
	}
	return all
}

// inside draws the whole day from behind: what the gateways let through, and what is inside of the service.
func (r *Report) inside() (all []template.HTML) {
	if len(r.gauges) == 0 {
		return nil
	}
	curve := func(name, class string, of func(gauge) int) page.Curve {
		c := page.Curve{Name: name, Class: class}
		for _, g := range r.gauges {
			c.X, c.Y = append(c.X, g.at.Sub(r.Begin).Seconds()), append(c.Y, float64(of(g)))
		}
		return c
	}
	gate := r.chart("Both gateways together", "requests",
		curve("limit", "limit", func(g gauge) int { return g.limit }),
		curve("in flight", "spillway", func(g gauge) int { return g.inFlight }),
		curve("waiting", "waiting", func(g gauge) int { return g.waiting }))
	service := r.chart("Inside of the service", "requests", curve("inside", "none", func(g gauge) int { return g.inside }))
	service.Mark, service.MarkName = serviceSlots, fmt.Sprintf("it works on %d at once", serviceSlots)
	redis := r.chart("Gateways that have their Redis", "gateways", curve("of 2", "spillway", func(g gauge) int { return g.store }))
	return []template.HTML{gate.SVG(), service.SVG(), redis.SVG()}
}
