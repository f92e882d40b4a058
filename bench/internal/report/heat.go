package report

import (
	"fmt"
	"html"
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/bench/internal/results"
)

// heat draws a map of recovery: one square for each load and trigger, the darker the longer it takes.
func heat(m *results.Map) (all []template.HTML) {
	if m == nil {
		return nil
	}
	for _, arm := range slices.Sorted(maps.Keys(m.Recovery)) {
		for i := range m.Recovery[arm] {
			all = append(all, plane(m, arm, i))
		}
	}
	return all
}

func plane(m *results.Map, arm string, length int) template.HTML {
	var b strings.Builder
	title := fmt.Sprintf("%s: seconds to recover from %d s of overload", arm, m.Seconds[length])
	fmt.Fprintf(&b, `<figure><figcaption>%s</figcaption><svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, html.EscapeString(title),
		chartWidth, chartHeight, html.EscapeString(title))
	x := scale{0, float64(len(m.Loads)), left, chartWidth - right}
	y := scale{0, float64(len(m.Triggers)), chartHeight - bottom, top}
	for n, row := range m.Recovery[arm][length] {
		fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="end">%g</text>`, x.a-4, (y.at(float64(n))+y.at(float64(n+1)))/2+3.5, m.Triggers[n])
		for k, v := range row {
			text, share := fmt.Sprintf("%.0f", float64(v)), min(1, float64(v)/m.Watched)
			if share >= 1 {
				text = fmt.Sprintf("> %.0f", m.Watched)
			}
			cx, cy := x.at(float64(k)), y.at(float64(n+1))
			width, height := x.at(1)-x.a, y.a-y.at(1)
			fmt.Fprintf(&b, `<rect class="cell" x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill-opacity="%.2f"/>`, cx+.5, cy+.5, width-1, height-1, .06+.84*share)
			fmt.Fprintf(&b, `<text class="tick in" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, cx+width/2, cy+height/2+3.5, text)
		}
	}
	for k, l := range m.Loads {
		fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="middle">%g</text>`, x.at(float64(k)+.5), y.a+13, l)
	}
	fmt.Fprintf(&b, `<text class="label" x="%.1f" y="%.1f" text-anchor="middle">load before and after / capacity</text>`, (x.a+x.b)/2, chartHeight-5)
	fmt.Fprintf(&b, `<text class="label" transform="translate(9 %.1f) rotate(-90)" text-anchor="middle">trigger / capacity</text></svg></figure>`, (y.a+top)/2)
	return template.HTML(b.String())
}
