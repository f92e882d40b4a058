package page

import (
	"math"
	"strings"
	"testing"
)

func TestAPageBeginsWithTheStylesheet(t *testing.T) {
	var b strings.Builder
	if err := New(`{{template "head" .}}<p class="{{lower .}}">`, nil).Execute(&b, "A & B"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<title>A &amp; B</title>", "--ink: #1c2430", `<p class="a &amp; b">`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page has no %s:\n%s", want, b.String())
		}
	}
}

// A line breaks where there is no value, a shade ends with the axis, and what is named in the key is there.
func TestAChartDrawsWhatThereIs(t *testing.T) {
	c := Chart{
		Title: "<b>", Mark: 5, MarkName: "bound", Shade: []Span{{1, 99}}, ShadeName: "outage",
		Curves: []Curve{{Name: "a", Class: "p0", X: []float64{0, 1, 2, 3}, Y: []float64{1, math.NaN(), 10, 4}}},
	}
	svg := string(c.SVG())
	for _, want := range []string{"&lt;b&gt;", ">bound</span>", ">outage</span>", `width="266.7"`, `M46.0 `, `M312.7 `} {
		if !strings.Contains(svg, want) {
			t.Errorf("the chart has no %s:\n%s", want, svg)
		}
	}
	c.Mark, c.Shade = 99, nil
	if svg := string(c.SVG()); strings.Contains(svg, "bound") || strings.Contains(svg, "outage") {
		t.Errorf("the key names what is not there:\n%s", svg)
	}
}

// Events stand above the curves, each with its name inside of the chart, and a clock is read in minutes.
func TestADayHasItsEventsAndItsClock(t *testing.T) {
	c := Chart{Clock: true, Wide: true, Events: []Event{{0, "morning"}, {95, "evening"}}, Curves: []Curve{{X: []float64{0, 100}, Y: []float64{1, 2}}}}
	svg := string(c.SVG())
	for _, want := range []string{`viewBox="0 0 1140 210"`, `text-anchor="start">morning<`, `text-anchor="end">evening<`, ">1:30<"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the chart has no %s:\n%s", want, svg)
		}
	}
}

func TestHeatSaysWhatIsBeyondTheWatch(t *testing.T) {
	h := Heat{Columns: []float64{.5, 1}, Rows: []float64{2}, Cells: [][]float64{{3, 60}}, Most: 60}
	if svg := string(h.SVG()); !strings.Contains(svg, ">3<") || !strings.Contains(svg, "> 60<") {
		t.Errorf("%s", svg)
	}
}
