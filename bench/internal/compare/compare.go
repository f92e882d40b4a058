package compare

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/internal/measure"
)

// figure is one number that runs are compared by.
type figure struct {
	name   string
	unit   string
	higher bool // is better
	of     func(*measure.Run) float64
}

var figures = []figure{
	{"goodput", "", true, func(r *measure.Run) float64 { return judge.Goodput(r, measure.Pick{}) }},
	{"success", "", true, func(r *measure.Run) float64 { return r.Sum(measure.Pick{}).Success() }},
	{"p50", "ms", false, func(r *measure.Run) float64 { return quantile(r, .5) }},
	{"p99", "ms", false, func(r *measure.Run) float64 { return quantile(r, .99) }},
}

func quantile(r *measure.Run, q float64) float64 {
	return float64(r.Sum(measure.Pick{}).Admitted.Quantile(q).Microseconds()) / 1000
}

// group names runs that differ in nothing but their seed.
type group struct {
	Scenario, Arm, Mode string
	Level               float64
}

func groupOf(r *measure.Run) group { return group{r.Scenario, r.Arm, r.Mode, r.Level} }

// Row is one figure of one group on both sides.
type Row struct {
	Group   string
	Figure  string
	Unit    string
	A, B    Summary
	Delta   float64 // of the medians, relative to A
	P       float64
	Verdict string // "better", "worse", "~", or why there is none
}

// Rows compares the groups that both sides have. Invalid and partial runs are left out.
func Rows(a, b []*measure.Run) []Row {
	left, right := split(a), split(b)
	var groups []group
	for g := range left {
		if right[g] != nil {
			groups = append(groups, g)
		}
	}
	slices.SortFunc(groups, func(x, y group) int {
		return cmp.Or(cmp.Compare(x.Scenario, y.Scenario), cmp.Compare(x.Mode, y.Mode), cmp.Compare(x.Arm, y.Arm), cmp.Compare(x.Level, y.Level))
	})
	var rows []Row
	for _, g := range groups {
		for _, f := range figures {
			rows = append(rows, row(g, f, left[g], right[g]))
		}
	}
	return rows
}

func split(runs []*measure.Run) map[group][]*measure.Run {
	m := make(map[group][]*measure.Run)
	for _, r := range runs {
		if r.Invalid == "" && !r.Partial {
			m[groupOf(r)] = append(m[groupOf(r)], r)
		}
	}
	return m
}

func row(g group, f figure, a, b []*measure.Run) Row {
	x, y := values(a, f), values(b, f)
	name := fmt.Sprintf("%s %s/%s", g.Scenario, g.Mode, g.Arm)
	if g.Level != 1 {
		name += fmt.Sprintf(" %.3g", g.Level)
	}
	r := Row{Group: name, Figure: f.name, Unit: f.unit, P: MannWhitney(x, y), A: Summarise(x), B: Summarise(y)}
	r.Delta = (r.B.Median - r.A.Median) / r.A.Median
	switch {
	case min(r.A.N, r.B.N) < fewestRuns:
		r.Verdict = fmt.Sprintf("not enough runs (%d a side at least)", fewestRuns)
	case r.P > alpha:
		r.Verdict = "~"
	case (r.B.Median > r.A.Median) == f.higher:
		r.Verdict = "better"
	default:
		r.Verdict = "worse"
	}
	return r
}

func values(runs []*measure.Run, f figure) []float64 {
	var x []float64
	for _, r := range runs {
		x = append(x, f.of(r))
	}
	return x
}

// Print writes the rows as a table.
func Print(w io.Writer, rows []Row) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "runs\tfigure\tA\tB\tdelta\tp\tverdict")
	for _, r := range rows {
		delta := "-"
		if !math.IsNaN(r.Delta) && !math.IsInf(r.Delta, 0) {
			delta = fmt.Sprintf("%+.2f %%", 100*r.Delta)
		}
		p := fmt.Sprintf("%.3f", r.P)
		if min(r.A.N, r.B.N) < fewestRuns {
			p = "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Group, r.Figure, r.A.text(r.Unit), r.B.text(r.Unit), delta, p, r.Verdict)
	}
	return t.Flush()
}

// text is the median with its interval and the number of runs.
func (s Summary) text(unit string) string {
	if !s.HasIntervals {
		return fmt.Sprintf("%.4g%s (n=%d)", s.Median, unit, s.N)
	}
	return fmt.Sprintf("%.4g%s [%.4g, %.4g] (n=%d)", s.Median, unit, s.Low, s.High, s.N)
}
