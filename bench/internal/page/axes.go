package page

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The size of a chart in user units, and its margins.
const (
	width, height = 460.0, 210.0
	wide          = 1140.0 // of a chart across the page
	left, right   = 46.0, 14.0
	top, bottom   = 10.0, 34.0
	eventRows     = 20.0 // above a chart with events
)

// scale maps [from, to] to [a, b].
type scale struct{ from, to, a, b float64 }

func (s scale) at(v float64) float64 {
	if s.to == s.from {
		return s.a
	}
	return s.a + (v-s.from)/(s.to-s.from)*(s.b-s.a)
}

// axes draws the axes with their ticks and labels.
func (c *Chart) axes(b *strings.Builder, x, y scale) {
	for _, v := range rounds(0, y.to, 4) {
		fmt.Fprintf(b, `<path class="grid" d="M%.1f %.1fH%.1f"/>`, x.a, y.at(v), x.b)
		rowTick(b, y.at(v), number(v))
	}
	ticks := c.Ticks
	switch {
	case len(ticks) == 0 && c.Clock:
		ticks = minutes(x.from, x.to, int((x.b-x.a)/70))
	case len(ticks) == 0:
		ticks = rounds(x.from, x.to, 6)
	}
	for i, v := range ticks {
		text := number(v)
		switch {
		case i < len(c.TickText):
			text = c.TickText[i]
		case c.Clock:
			text = fmt.Sprintf("%d:%02d", int(v)/60, int(v)%60)
		}
		columnTick(b, x.at(v), html.EscapeString(text))
	}
	fmt.Fprintf(b, `<path class="axis" d="M%.1f %.1fH%.1f"/>`, x.a, y.a, x.b)
	labels(b, x, y, c.XLabel, c.YLabel)
}

// rowTick writes at the y axis, columnTick at the x axis.
func rowTick(b *strings.Builder, at float64, text string) {
	fmt.Fprintf(b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="end">%s</text>`, left-4, at+3.5, text)
}

func columnTick(b *strings.Builder, at float64, text string) {
	fmt.Fprintf(b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, at, height-bottom+13, text)
}

// labels names the axes.
func labels(b *strings.Builder, x, y scale, xLabel, yLabel string) {
	fmt.Fprintf(b, `<text class="label" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, (x.a+x.b)/2, height-5, html.EscapeString(xLabel))
	fmt.Fprintf(b, `<text class="label" transform="translate(9 %.1f) rotate(-90)" text-anchor="middle">%s</text>`, (y.a+y.b)/2, html.EscapeString(yLabel))
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

// minutes returns at most n moments in [from, to], in seconds, that are round on a clock.
func minutes(from, to float64, n int) (ticks []float64) {
	step := 10.0
	for _, s := range []float64{10, 15, 30, 60, 120, 300, 600, 1800, 3600} {
		if step = s; (to-from)/s <= float64(n) {
			break
		}
	}
	for v := math.Ceil(from/step) * step; v <= to; v += step {
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
