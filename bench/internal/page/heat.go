package page

import (
	"fmt"
	"html/template"
	"strings"
)

// Heat is a square of cells, the darker the larger their value.
type Heat struct {
	Title, XLabel, YLabel string
	// Columns and Rows are what belongs to the cells from the left and from the bottom.
	Columns, Rows []float64
	// Cells are the values, by row and column; those from Most on are written as beyond it.
	Cells [][]float64
	Most  float64
}

// SVG draws it.
func (h *Heat) SVG() template.HTML {
	x, y := scale{0, float64(len(h.Columns)), left, width - right}, scale{0, float64(len(h.Rows)), height - bottom, top}
	broad, high := x.at(1)-x.a, y.a-y.at(1)
	var b strings.Builder
	begin(&b, h.Title, width)
	for n, row := range h.Cells {
		rowTick(&b, y.at(float64(n)+.5), fmt.Sprintf("%g", h.Rows[n]))
		for k, v := range row {
			text := fmt.Sprintf("%.0f", v)
			if v >= h.Most {
				text = fmt.Sprintf("> %.0f", h.Most)
			}
			cx, cy := x.at(float64(k)), y.at(float64(n+1))
			fmt.Fprintf(&b, `<rect class="cell" x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill-opacity="%.2f"/>`, cx+.5, cy+.5, broad-1, high-1, .06+.84*min(1, v/h.Most))
			fmt.Fprintf(&b, `<text class="tick in" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, cx+broad/2, cy+high/2+3.5, text)
		}
	}
	for k, l := range h.Columns {
		columnTick(&b, x.at(float64(k)+.5), fmt.Sprintf("%g", l))
	}
	labels(&b, x, y, h.XLabel, h.YLabel)
	b.WriteString(`</svg></figure>`)
	return template.HTML(b.String())
}
