package gameday

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spillway-go/spillway/bench/judge"
	"github.com/spillway-go/spillway/bench/report"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// Report is what came of a day.
type Report struct {
	Begin   time.Time
	Length  time.Duration
	Quick   bool
	Soak    time.Duration // above 0 if it was a soak
	Partial bool
	scenes  []*scene
	gauges  []gauge
}

func (d *day) report(partial bool) *Report {
	r := &Report{Begin: d.begin, Quick: d.Quick, Soak: d.Soak, Partial: partial, scenes: d.scenes}
	if !d.begin.IsZero() {
		r.Length = time.Since(d.begin)
	}
	if d.gauges != nil {
		d.gauges.stop()
		r.gauges = d.gauges.all
	}
	return r
}

// Count returns how many verdicts came out in a way.
func (r *Report) Count(status judge.Status) (n int) {
	for _, s := range r.scenes {
		for _, c := range s.checks {
			if c.Status == status {
				n++
			}
		}
	}
	return n
}

// row, section and page are what the page shows.
type row struct {
	Check
	Class string
}

type section struct {
	Name, Title, About, Expect, Clock, Noise string
	Status                                   judge.Status
	Class                                    string
	Rows                                     []row
	Marks                                    []string
	Groups                                   []groupRow
	Charts                                   []template.HTML
}

type groupRow struct {
	Name                                         string
	Asked, Served, Late, Over, Short, Left, None int
	P50, P99                                     string
}

// HTML writes the report as one page that loads nothing.
func (r *Report) HTML(w io.Writer) error {
	var sections []section
	for _, s := range r.scenes {
		sections = append(sections, r.section(s))
	}
	return pageTemplate.Execute(w, map[string]any{
		"R": r, "Sections": sections, "Length": r.Length.Round(time.Second).String(), "Begin": r.Begin.UTC().Format("2006-01-02 15:04 MST"),
		"Pass": r.Count(judge.Pass), "Fail": r.Count(judge.Fail), "Pending": r.Count(judge.Pending), "Invalid": r.Count(judge.Invalid), "Timeline": r.timeline(),
	})
}

func (r *Report) section(s *scene) section {
	out := section{
		Name: s.act.name, Title: s.act.title, About: s.act.about, Expect: s.act.expect, Clock: clock(s.begin.Sub(r.Begin)), Noise: s.noise, Status: judge.Pass,
	}
	for _, c := range s.checks {
		out.Rows = append(out.Rows, row{c, strings.ToLower(string(c.Status))})
		if c.Status == judge.Fail || c.Status == judge.Invalid && out.Status == judge.Pass {
			out.Status = c.Status
		}
	}
	out.Class = strings.ToLower(string(out.Status))
	for _, m := range s.marks {
		out.Marks = append(out.Marks, fmt.Sprintf("%s from %.1f s to %.1f s", m.text, m.from.Sub(s.begin).Seconds(), m.to.Sub(s.begin).Seconds()))
	}
	out.Groups = groupRows(s.of())
	out.Charts = append(s.charts(), s.diagrams...)
	return out
}

// groupRows says for each group what became of what it asked for.
func groupRows(shots []shot) (rows []groupRow) {
	index := map[string]int{}
	took := map[string][]time.Duration{}
	for i := range shots {
		one := &shots[i]
		at, known := index[one.group]
		if !known {
			at = len(rows)
			index[one.group] = at
			rows = append(rows, groupRow{Name: one.group})
		}
		g := &rows[at]
		g.Asked++
		switch {
		case one.ok():
			g.Served++
		case one.status >= 200 && one.status < 300:
			g.Late++
		case one.status == 429:
			g.Over++
		case one.status == 503:
			g.Short++
		case one.status == notCalled:
			g.Left++
		default:
			g.None++
		}
		if one.status >= 200 && one.status < 300 {
			took[one.group] = append(took[one.group], one.took)
		}
	}
	for i := range rows {
		all := took[rows[i].Name]
		rows[i].P50, rows[i].P99 = quantile(all, .5).Round(time.Millisecond).String(), quantile(all, .99).Round(time.Millisecond).String()
	}
	return rows
}

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
	return []template.HTML{
		report.Diagram{Title: "Both gateways together", XLabel: "seconds of the day", YLabel: "requests", Curves: []report.Curve{
			curve("limit", "limit", func(g gauge) int { return g.limit }),
			curve("in flight", "spillway", func(g gauge) int { return g.inFlight }),
			curve("waiting", "waiting", func(g gauge) int { return g.waiting }),
		}}.SVG(),
		report.Diagram{Title: "Inside of the service", XLabel: "seconds of the day", YLabel: "requests", Mark: serviceSlots, Curves: []report.Curve{
			curve("inside", "none", func(g gauge) int { return g.inside }),
		}}.SVG(),
		report.Diagram{Title: "Gateways that have their Redis", XLabel: "seconds of the day", YLabel: "gateways", Curves: []report.Curve{
			curve("store up", "spillway", func(g gauge) int { return g.store }),
		}}.SVG(),
	}
}
