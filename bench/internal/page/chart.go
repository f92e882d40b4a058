package page

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
)

// Curve is a line of a Chart; it breaks where Y is not finite. Its class gives it its colour, see style.css.
type Curve struct {
	Name, Class string
	X, Y        []float64
}

// Span is a part of the x axis.
type Span struct{ From, To float64 }

// Chart is a diagram of curves over one x axis.
type Chart struct {
	Title, XLabel, YLabel string
	Curves                []Curve
	// Shade are parts of the x axis in which something was different, and ShadeName says what.
	Shade     []Span
	ShadeName string
	// YMax is the end of the y axis; 0 means what the curves need.
	YMax float64
	// Mark is a horizontal line to compare with, and MarkName says what it is; 0 means none.
	Mark     float64
	MarkName string
	// Ticks are those of the x axis, and TickText what is written at them; nil means round numbers.
	Ticks    []float64
	TickText []string
	// Clock says that the x axis is in seconds and is written as minutes and seconds.
	Clock bool
	// Wide makes the chart as wide as the page, with Events named above it.
	Wide   bool
	Events []Event
}

// Event is something that begins on the x axis.
type Event struct {
	At   float64
	Name string
}

// SVG draws the chart.
func (c *Chart) SVG() template.HTML {
	x, y := c.scales()
	var b strings.Builder
	begin(&b, c.Title, c.width())
	for _, s := range c.Shade {
		from, to := max(s.From, x.from), min(s.To, x.to)
		if from < to {
			fmt.Fprintf(&b, `<rect class="shade" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, x.at(from), y.b, x.at(to)-x.at(from), y.a-y.b)
		}
	}
	c.axes(&b, x, y)
	for i, e := range c.Events { // names in two rows, for one may be longer than its time
		at, row, anchor := x.at(e.At), 12*float64(i%2), "start"
		text := at + 3
		if at > x.b-60 { // else it may leave the chart
			text, anchor = at-3, "end"
		}
		fmt.Fprintf(&b, `<path class="event" d="M%.1f %.1fV%.1f"/><text class="tick" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`,
			at, y.a, row, text, row+9, anchor, html.EscapeString(e.Name))
	}
	marked := c.Mark > 0 && c.Mark <= y.to
	if marked {
		fmt.Fprintf(&b, `<path class="mark" d="M%.1f %.1fH%.1f"/>`, x.a, y.at(c.Mark), x.b)
	}
	for _, l := range c.Curves {
		l.draw(&b, x, y)
	}
	b.WriteString(`</svg><p class="key">`)
	for _, l := range c.Curves {
		fmt.Fprintf(&b, `<span class="%s"><i></i>%s</span> `, l.Class, html.EscapeString(l.Name))
	}
	if marked && c.MarkName != "" {
		fmt.Fprintf(&b, `<span><i class="dashed"></i>%s</span> `, html.EscapeString(c.MarkName))
	}
	if len(c.Shade) > 0 && c.ShadeName != "" {
		fmt.Fprintf(&b, `<span><i class="shaded"></i>%s</span>`, html.EscapeString(c.ShadeName))
	}
	b.WriteString(`</p></figure>`)
	return template.HTML(b.String())
}

// begin opens a figure of any kind.
func begin(b *strings.Builder, title string, width float64) {
	title = html.EscapeString(title)
	fmt.Fprintf(b, `<figure><figcaption>%s</figcaption><svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, title, width, height, title)
}

func (c *Chart) width() float64 {
	if c.Wide {
		return wide
	}
	return width
}

func (c *Chart) scales() (x, y scale) {
	x, y = scale{math.Inf(1), math.Inf(-1), left, c.width() - right}, scale{0, c.YMax, height - bottom, top}
	if len(c.Events) > 0 {
		y.b = top + eventRows
	}
	for _, l := range c.Curves {
		for i := range l.X {
			x.from, x.to = min(x.from, l.X[i]), max(x.to, l.X[i])
			if c.YMax == 0 && finite(l.Y[i]) {
				y.to = max(y.to, l.Y[i])
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

// draw draws the line, and its points where they are few.
func (l *Curve) draw(b *strings.Builder, x, y scale) {
	fmt.Fprintf(b, `<path class="line %s" d="`, l.Class)
	pen := "M"
	for i := range l.X {
		if !finite(l.Y[i]) {
			pen = "M"
			continue
		}
		fmt.Fprintf(b, "%s%.1f %.1f", pen, x.at(l.X[i]), y.at(min(l.Y[i], y.to)))
		pen = "L"
	}
	b.WriteString(`"/>`)
	if len(l.X) > 20 {
		return
	}
	for i := range l.X {
		if finite(l.Y[i]) {
			fmt.Fprintf(b, `<circle class="dot %s" cx="%.1f" cy="%.1f" r="2.5"><title>%s: %.4g at %.4g</title></circle>`,
				l.Class, x.at(l.X[i]), y.at(min(l.Y[i], y.to)), html.EscapeString(l.Name), l.Y[i], l.X[i])
		}
	}
}

func finite(v float64) bool { return !math.IsInf(v, 0) && !math.IsNaN(v) }
