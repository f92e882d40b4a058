package report

import "html/template"

// Curve is a line of a Diagram. Its class gives it its colour, see page.html.
type Curve struct {
	Name, Class string
	X, Y        []float64
}

// Diagram is a chart for pages that are not about runs of scenarios.
type Diagram struct {
	Title, XLabel, YLabel string
	Curves                []Curve
	// Shade are parts of the x axis, each from its first number to its second.
	Shade [][2]float64
	// Mark is a horizontal line to compare with; 0 means none.
	Mark float64
}

// SVG draws it.
func (d Diagram) SVG() template.HTML {
	c := chart{title: d.Title, xLabel: d.XLabel, yLabel: d.YLabel, mark: d.Mark}
	for _, l := range d.Curves {
		c.lines = append(c.lines, line{name: l.Name, class: l.Class, x: l.X, y: l.Y})
	}
	for _, s := range d.Shade {
		c.shade = append(c.shade, span{s[0], s[1]})
	}
	return c.svg()
}
