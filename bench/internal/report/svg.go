package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
)

// The size of a chart in user units, and its margins.
const (
	chartWidth, chartHeight = 460.0, 210.0
	left, right             = 46.0, 14.0
	top, bottom             = 10.0, 34.0
)

// line is one curve. Its class gives it its colour.
type line struct {
	name  string
	class string
	x, y  []float64
}

// span is a shaded part of the x axis.
type span struct{ from, to float64 }

// chart is a diagram of curves.
type chart struct {
	title, xLabel, yLabel string
	lines                 []line
	shade                 []span
	yMax                  float64   // 0 means what the curves need
	mark                  float64   // a horizontal line to compare with; 0 means none
	markName              string    // what that is
	ticks                 []float64 // of x; empty means round numbers
	tickText              []string
}

// scale maps [from, to] to [a, b].
type scale struct{ from, to, a, b float64 }

func (s scale) at(v float64) float64 {
	if s.to == s.from {
		return s.a
	}
	return s.a + (v-s.from)/(s.to-s.from)*(s.b-s.a)
}

// svg draws the chart.
func (c *chart) svg() template.HTML {
	x, y := c.scales()
	var b strings.Builder
	fmt.Fprintf(&b, `<figure><figcaption>%s</figcaption><svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, html.EscapeString(c.title),
		chartWidth, chartHeight, html.EscapeString(c.title))
	for _, s := range c.shade {
		fmt.Fprintf(&b, `<rect class="shade" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, x.at(s.from), top, x.at(s.to)-x.at(s.from), y.a-top)
	}
	c.axes(&b, x, y)
	if c.mark > 0 && c.mark <= y.to {
		fmt.Fprintf(&b, `<path class="mark" d="M%.1f %.1fH%.1f"/>`, x.a, y.at(c.mark), x.b)
	}
	for _, l := range c.lines {
		curve(&b, l, x, y)
	}
	b.WriteString(`</svg><p class="key">`)
	for _, l := range c.lines {
		fmt.Fprintf(&b, `<span class="%s"><i></i>%s</span> `, l.class, html.EscapeString(l.name))
	}
	if c.markName != "" && c.mark > 0 && c.mark <= y.to {
		fmt.Fprintf(&b, `<span><i class="dashed"></i>%s</span> `, html.EscapeString(c.markName))
	}
	if len(c.shade) > 0 {
		b.WriteString(`<span><i class="shaded"></i>trigger</span>`)
	}
	b.WriteString(`</p></figure>`)
	return template.HTML(b.String())
}

func (c *chart) scales() (x, y scale) {
	x, y = scale{math.Inf(1), math.Inf(-1), left, chartWidth - right}, scale{0, c.yMax, chartHeight - bottom, top}
	for _, l := range c.lines {
		for i := range l.x {
			x.from, x.to = min(x.from, l.x[i]), max(x.to, l.x[i])
			if c.yMax == 0 && !math.IsInf(l.y[i], 0) && !math.IsNaN(l.y[i]) {
				y.to = max(y.to, l.y[i])
			}
		}
	}
	if math.IsInf(x.from, 0) {
		x.from, x.to = 0, 1
	}
	if y.to <= 0 { // nothing but zeros
		y.to = 1
	}
	y.to = roundUp(y.to)
	return x, y
}

// curve draws a line; it breaks where there is no value.
func curve(b *strings.Builder, l line, x, y scale) {
	fmt.Fprintf(b, `<path class="line %s" d="`, l.class)
	pen := "M"
	for i := range l.x {
		if math.IsNaN(l.y[i]) || math.IsInf(l.y[i], 0) {
			pen = "M"
			continue
		}
		fmt.Fprintf(b, "%s%.1f %.1f", pen, x.at(l.x[i]), y.at(min(l.y[i], y.to)))
		pen = "L"
	}
	b.WriteString(`"/>`)
	if len(l.x) > 20 {
		return
	}
	for i := range l.x {
		if !math.IsNaN(l.y[i]) && !math.IsInf(l.y[i], 0) {
			fmt.Fprintf(b, `<circle class="dot %s" cx="%.1f" cy="%.1f" r="2.5"><title>%s: %.4g at %.4g</title></circle>`,
				l.class, x.at(l.x[i]), y.at(min(l.y[i], y.to)), html.EscapeString(l.name), l.y[i], l.x[i])
		}
	}
}

// axes draws the axes with their ticks and labels.
func (c *chart) axes(b *strings.Builder, x, y scale) {
	for _, v := range rounds(0, y.to, 4) {
		fmt.Fprintf(b, `<path class="grid" d="M%.1f %.1fH%.1f"/><text class="tick" x="%.1f" y="%.1f" text-anchor="end">%s</text>`,
			x.a, y.at(v), x.b, x.a-4, y.at(v)+3.5, number(v))
	}
	ticks := c.ticks
	if len(ticks) == 0 {
		ticks = rounds(x.from, x.to, 6)
	}
	for i, v := range ticks {
		text := number(v)
		if i < len(c.tickText) {
			text = c.tickText[i]
		}
		fmt.Fprintf(b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, x.at(v), y.a+13, html.EscapeString(text))
	}
	fmt.Fprintf(b, `<path class="axis" d="M%.1f %.1fH%.1f"/>`, x.a, y.a, x.b)
	fmt.Fprintf(b, `<text class="label" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, (x.a+x.b)/2, chartHeight-5, html.EscapeString(c.xLabel))
	fmt.Fprintf(b, `<text class="label" transform="translate(9 %.1f) rotate(-90)" text-anchor="middle">%s</text>`, (y.a+top)/2, html.EscapeString(c.yLabel))
}

// roundUp is the next number of the form 1, 2, 2.5 or 5 times a power of ten.
func roundUp(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8} {
		if m*power >= v*0.999999 {
			return m * power
		}
	}
	return 10 * power
}

// rounds returns about n round numbers in [from, to].
func rounds(from, to float64, n int) (ticks []float64) {
	if to <= from {
		return []float64{from}
	}
	rough := (to - from) / float64(n)
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	step := 10 * power
	for _, m := range []float64{1, 2, 5} {
		if m*power >= rough {
			step = m * power
			break
		}
	}
	for v := math.Ceil(from/step) * step; v <= to+step/1e6; v += step {
		ticks = append(ticks, v)
	}
	return ticks
}

func number(v float64) string {
	if v >= 10_000 {
		return fmt.Sprintf("%gk", math.Round(v/100)/10)
	}
	return fmt.Sprintf("%.4g", v)
}

// bar is one client: what it got of what was due to it.
type bar struct {
	group string // its population
	class string
	value float64
	title string
}

// bars draws one bar for each client, and the line of what was due.
func bars(title string, all []bar) template.HTML {
	y := scale{0, 1.2, chartHeight - bottom, top}
	for _, v := range all {
		y.to = max(y.to, min(v.value, 3))
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<figure><figcaption>%s</figcaption><svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, html.EscapeString(title),
		chartWidth, chartHeight, html.EscapeString(title))
	y.to = roundUp(y.to)
	c := chart{xLabel: "clients", yLabel: "got / fair share", ticks: []float64{0}, tickText: []string{""}}
	x := scale{0, float64(len(all)), left, chartWidth - right}
	c.axes(&b, x, y)
	fmt.Fprintf(&b, `<path class="mark" d="M%.1f %.1fH%.1f"/>`, x.a, y.at(1), x.b)
	width := max(1, (x.b-x.a)/float64(max(1, len(all)))-1)
	for i, v := range all {
		h := y.a - y.at(min(v.value, y.to))
		fmt.Fprintf(&b, `<rect class="bar %s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s</title></rect>`,
			v.class, x.at(float64(i))+.5, y.a-h, width, max(h, .5), html.EscapeString(v.title))
	}
	b.WriteString(`</svg><p class="key">`)
	for i, v := range all {
		if i == 0 || v.group != all[i-1].group {
			fmt.Fprintf(&b, `<span class="%s"><i></i>%s</span> `, v.class, html.EscapeString(v.group))
		}
	}
	b.WriteString(`<span><i class="dashed"></i>fair share</span></p></figure>`)
	return template.HTML(b.String())
}
