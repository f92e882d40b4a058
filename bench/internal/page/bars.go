package page

import (
	"fmt"
	"html"
	"html/template"
	"strings"
)

// Bar is one client: what it got of what was due to it. Bars of one group stand together.
type Bar struct {
	Group, Class string
	Value        float64
	Title        string
}

// Bars draws one bar for each client, and the line of what was due.
func Bars(title string, all []Bar) template.HTML {
	x, y := scale{0, float64(len(all)), left, width - right}, scale{0, 1.2, height - bottom, top}
	for _, v := range all {
		y.to = max(y.to, min(v.Value, 3))
	}
	y.to = roundUp(y.to)
	var b strings.Builder
	begin(&b, title, width)
	c := Chart{XLabel: "clients", YLabel: "got / fair share", Ticks: []float64{0}, TickText: []string{""}}
	c.axes(&b, x, y)
	fmt.Fprintf(&b, `<path class="mark" d="M%.1f %.1fH%.1f"/>`, x.a, y.at(1), x.b)
	thick := max(1, (x.b-x.a)/float64(max(1, len(all)))-1)
	for i, v := range all {
		h := y.a - y.at(min(v.Value, y.to))
		fmt.Fprintf(&b, `<rect class="bar %s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s</title></rect>`,
			v.Class, x.at(float64(i))+.5, y.a-h, thick, max(h, .5), html.EscapeString(v.Title))
	}
	b.WriteString(`</svg><p class="key">`)
	for i, v := range all {
		if i == 0 || v.Group != all[i-1].Group {
			fmt.Fprintf(&b, `<span class="%s"><i></i>%s</span> `, v.Class, html.EscapeString(v.Group))
		}
	}
	b.WriteString(`<span><i class="dashed"></i>fair share</span></p></figure>`)
	return template.HTML(b.String())
}
