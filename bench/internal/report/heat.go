package report

import (
	"fmt"
	"html/template"
	"maps"
	"slices"

	"github.com/spillway-go/spillway/bench/internal/page"
	"github.com/spillway-go/spillway/bench/internal/results"
)

// heat draws a map of recovery: one square for each arm and each length of the trigger, the darker the longer it takes.
func heat(m *results.Map) (all []template.HTML) {
	if m == nil {
		return nil
	}
	for _, arm := range slices.Sorted(maps.Keys(m.Recovery)) {
		for i, rows := range m.Recovery[arm] {
			h := page.Heat{
				Title:  fmt.Sprintf("%s: seconds to recover from %d s of overload", arm, m.Seconds[i]),
				XLabel: "load before and after / capacity", YLabel: "trigger / capacity",
				Columns: m.Loads, Rows: m.Triggers, Most: m.Watched,
			}
			for _, row := range rows {
				cells := make([]float64, len(row))
				for k, v := range row {
					cells[k] = float64(v)
				}
				h.Cells = append(h.Cells, cells)
			}
			all = append(all, h.SVG())
		}
	}
	return all
}
